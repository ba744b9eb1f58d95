"""hushcount privacy: what shuffling makes of a local epsilon, and how many clients it takes to discover an item."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from hushcount.campaigns.campaign import Campaign
from hushcount.discovery.keep_rules import KeepRule
from hushcount.errors import UsageError
from hushcount.maths.probability import require_epsilon
from hushcount.oracles.catalogue import ANY_SEED, build, plan
from hushcount.oracles.mechanism import Mechanism
from hushcount.privacy.amplification import Amplified, amplify, amplify_any, largest_local_epsilon
from hushcount.privacy.blanket import BlanketLaw, blanket_law
from hushcount.privacy.queries import Answer, delta_answer, discovery_answer, shuffled_answer, shuffled_notes
from hushcount.privacy.unit import repeats_of
from hushcount.privacy.words import rounded_up
from hushcount.senders import UNBOUND
from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, out_console, progress_console, reported, show_json
from pipelines.console.mechanism_options import parse_settings
from pipelines.console.numbers import MOST_EPSILON, MOST_REPORTS
from pipelines.console.tables import show_facts, show_table

app = new_app()


@dataclass(frozen=True)
class _Subject:
    """Whose privacy is asked about.

    Attributes:
        mechanism: at a local epsilon; None for any mechanism.
        epsilon: local; None where it is to be solved for.
        floor: the campaign's minimum batch.
        delta: the campaign's.
        epoch_epsilon: the campaign's, where clients repeat their answers.
        repeats: how many reports of a batch may be one answer.
    """

    mechanism: Callable[[float], Mechanism] | None
    epsilon: float | None
    floor: int = 1
    delta: float | None = None
    epoch_epsilon: float | None = None
    repeats: int = 1

    def law(self, epsilon: float) -> BlanketLaw | None:
        """Return the mechanism's own law at a local epsilon, None where it has none."""
        return None if self.mechanism is None else blanket_law(self.mechanism(epsilon))

    def amplified(self, epsilon: float, reports: int, delta: float) -> Amplified:
        """Return what shuffling gains at a local epsilon."""
        if self.mechanism is None:
            return amplify_any(epsilon, reports, delta)
        return amplify(self.mechanism(epsilon), reports, delta)


@app.command("privacy")
@reported
def privacy(
    epsilon: Annotated[
        float | None, typer.Option(help="Local budget of one report; that of discovery with it.")
    ] = None,
    reports: Annotated[
        int | None, typer.Option(help="How many reports are shuffled together.", max=MOST_REPORTS)
    ] = None,
    delta: Annotated[float | None, typer.Option(help="In (0, 1), far below 1/reports.")] = None,
    mechanism: Annotated[str | None, typer.Option(help="For its own bound beside that of any mechanism.")] = None,
    dictionary_size: Annotated[
        int | None, typer.Option(help="Items of the mechanism, 'other' among them; an open domain if not given.")
    ] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="name=value: a parameter of the mechanism.")] = None,
    campaign: Annotated[Path | None, typer.Option(help="Campaign file, in place of mechanism and epsilon.")] = None,
    want_epsilon: Annotated[
        float | None,
        typer.Option(help="Shuffled epsilon: solves for the local one, in place of --epsilon.", max=MOST_EPSILON),
    ] = None,
    at_epsilon: Annotated[
        float | None, typer.Option(help="Shuffled epsilon: solves for delta, in place of --delta.", max=MOST_EPSILON)
    ] = None,
    discovery: Annotated[bool, typer.Option("--discovery", help="About discovery in place of shuffling.")] = False,
    cap: Annotated[int | None, typer.Option(help="Discovery: reports of one client; 1 if not given.")] = None,
    relation: Annotated[str | None, typer.Option(help="Discovery: replace-one, if not given, or add-remove.")] = None,
    rule: Annotated[str | None, typer.Option(help="Discovery: optimal, if not given, or laplace.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what epsilon shuffled reports have, or how many clients it takes to discover an item.

    Example: hushcount privacy --epsilon 1 --reports 100000 --delta 1e-8 --mechanism ais --dictionary-size 26000
    """
    of_mechanism = {"--mechanism": mechanism, "--dictionary-size": dictionary_size, "--set": set_ or None}
    of_shuffling = {"--reports": reports, **of_mechanism, "--want-epsilon": want_epsilon, "--at-epsilon": at_epsilon}
    of_discovery = {"--cap": cap, "--relation": relation, "--rule": rule}
    try:
        if discovery:
            _refuse(of_shuffling, "with --discovery")
            _show(discovery_answer(_rule(campaign, epsilon, delta, of_discovery)), as_json)
            return
        _refuse(of_discovery, "without --discovery")
        if campaign is not None:
            fixed = {"--epsilon": epsilon, **of_mechanism, "--want-epsilon": want_epsilon}
            _refuse(fixed, "with --campaign, which fixes mechanism and epsilon")
            subject = _of_campaign(Campaign.read(campaign))
        else:
            subject = _of_options(epsilon, want_epsilon, mechanism, dictionary_size, set_ or [])
        _show(_answer(subject, _checked(reports), delta, want_epsilon, at_epsilon), as_json)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _refuse(options: dict[str, Any], where: str) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise UsageError(f"{', '.join(given)} {'is' if len(given) == 1 else 'are'} of no use {where}")


def _of_campaign(campaign: Campaign) -> _Subject:
    mechanism = campaign.require_frequency()
    return _Subject(
        lambda _: mechanism,
        mechanism.epsilon,
        campaign.shuffle.minimum_batch,
        campaign.shuffle.delta,
        campaign.epoch_epsilon,
        repeats_of(campaign, UNBOUND),
    )


def _of_options(
    epsilon: float | None, want: float | None, name: str | None, domain: int | None, pairs: list[str]
) -> _Subject:
    if (epsilon is None) == (want is None):
        raise UsageError("give --epsilon, or --want-epsilon to solve for it")
    if epsilon is not None:
        require_epsilon(epsilon)
    if name is None:
        _refuse({"--dictionary-size": domain, "--set": pairs or None}, "without --mechanism")
        return _Subject(None, epsilon)
    settings, objective = parse_settings(pairs)

    def make(local: float) -> Mechanism:
        return build(name, local, domain, plan(name, local, domain, settings, objective, ANY_SEED))

    return _Subject(make, epsilon)


def _checked(reports: int | None) -> int:
    if reports is None:
        raise UsageError("give --reports N, the number of reports that are shuffled together")
    if reports < 1:
        raise UsageError(f"reports is {reports}, must be at least 1")
    return reports


def _answer(subject: _Subject, reports: int, delta: float | None, want: float | None, at: float | None) -> Answer:
    if subject.repeats > 1:
        raise UsageError(
            f"clients remember and send up to {subject.repeats} reports a batch, which equal answers link: shuffling "
            f"gains nothing, all reports of an epoch have local epsilon {rounded_up(subject.epoch_epsilon or 0.0)}"
        )
    if at is not None:
        if delta is not None or want is not None:
            raise UsageError("give --at-epsilon, which solves for delta, without --delta and --want-epsilon")
        return _delta_at(subject, reports, at)
    chosen = subject.delta if delta is None else delta
    if chosen is None:
        raise UsageError("give --delta, or --at-epsilon to solve for it")
    if not 0.0 < chosen < 1.0:
        raise UsageError(f"delta is {chosen}, must be in (0, 1)")
    local = subject.epsilon
    if want is not None:
        local = largest_local_epsilon(want, reports, chosen, subject.law)
    gained = subject.amplified(float(local or 0.0), reports, chosen)
    lasting = subject.epoch_epsilon
    for sentence in shuffled_notes(gained, subject.floor, lasting):
        progress_console().print(f"note: {sentence}", markup=False, soft_wrap=True)
    answer = shuffled_answer(gained, subject.floor) | ({} if lasting is None else {"epoch_epsilon": lasting})
    return answer | ({} if want is None else {"wanted_epsilon": want})


def _delta_at(subject: _Subject, reports: int, epsilon: float) -> Answer:
    if not (math.isfinite(epsilon) and epsilon > 0.0):
        raise UsageError(f"at_epsilon is {epsilon}, must be above 0 and finite")
    if reports < subject.floor:
        raise UsageError(f"reports is {reports}, must be at least the campaign's minimum batch of {subject.floor}")
    local = float(subject.epsilon or 0.0)
    if subject.mechanism is None:
        return delta_answer(None, local, reports, epsilon)
    mechanism = subject.mechanism(local)
    return delta_answer(mechanism, mechanism.epsilon, reports, epsilon)


def _rule(campaign: Path | None, epsilon: float | None, delta: float | None, given: dict[str, Any]) -> KeepRule:
    if campaign is not None:
        _refuse({"--epsilon": epsilon, "--delta": delta, **given}, "with --campaign, which fixes the rule")
        return Campaign.read(campaign).require_keep_rule()
    if epsilon is None or delta is None:
        raise UsageError("give --epsilon and --delta of discovery, or --campaign FILE")
    for option, names in (("--rule", ("optimal", "laplace")), ("--relation", ("replace-one", "add-remove"))):
        if given[option] not in (None, *names):
            raise UsageError(f"{option[2:]} is {given[option]!r}, must be {names[0]} or {names[1]}")
    cap = 1 if given["--cap"] is None else given["--cap"]
    return KeepRule(given["--rule"] or "optimal", epsilon, delta, given["--relation"] or "replace-one", cap)


def _show(answer: Answer, as_json: bool) -> None:
    if as_json:
        show_json(answer)
        return
    console, kept = out_console(), answer.get("keep_probability", {})
    facts = [(name.replace("_", " "), _text(value)) for name, value in answer.items() if value is not kept]
    show_facts(console, "", facts)
    if not kept:
        return
    rows = [(f"{count:,}", f"{probability:.3g}") for count, probability in kept.items()]
    console.print()
    show_table(console, ("clients with the item", "it is found with probability"), rows, words=())
    console.print()
    even, sure = answer["clients_for_even_chance"], answer["clients_for_95_percent"]
    sentence = f"  an item needs about {even:,} clients to be found with probability 50 %, {sure:,} with 95 %"
    console.print(sentence, soft_wrap=True)
    console.print(
        "  in a batch of one window at one collector; of several, a client has its cap in each, and it needs more",
        soft_wrap=True,
    )


def _text(value: object) -> str:
    if isinstance(value, float):
        return rounded_up(value)
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
