"""hushcount privacy: the epsilon after shuffling, and how many clients must send an item before it is discovered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.console import RenderableType
from typer import Option

from hushcount.campaigns.campaign import Campaign
from hushcount.discovery.keep_rules import KeepRule
from hushcount.errors import UsageError
from hushcount.maths.figures import rounded_up
from hushcount.maths.probability import require_epsilon
from hushcount.oracles.catalogue import ANY_SEED, build, plan
from hushcount.oracles.mechanism import Mechanism
from hushcount.privacy import queries
from hushcount.privacy.amplification import Amplified, amplify, amplify_any
from hushcount.privacy.joint import MOST_PARTS
from hushcount.privacy.layers import Paid, of_person, paid_for
from hushcount.privacy.statement import statement, window_of
from hushcount.privacy.unit import repeats_of
from hushcount.senders import UNBOUND, Senders
from pipelines.console import options
from pipelines.console.answer import Answer, Sentence, note
from pipelines.console.guarantees import guarantee, in_short
from pipelines.console.tables import Table

_EPSILONS = ("epsilon", "discovery", "noise")


@dataclass(frozen=True)
class _Subject:
    """What an answer is about: a local epsilon, with its mechanism and its campaign if they are known."""

    epsilon: float
    mechanism: Mechanism | None = None
    campaign: Campaign | None = None

    def amplified(self, reports: int, delta: float) -> Amplified:
        if self.mechanism is None:
            return amplify_any(self.epsilon, reports, delta)
        return amplify(self.mechanism, reports, delta)

    @property
    def floor(self) -> int:
        """The campaign's minimum batch."""
        return 1 if self.campaign is None else self.campaign.shuffle.minimum_batch


def privacy(
    epsilon: Annotated[
        float | None, Option(help="Local budget of one report; with --discovery, epsilon of discovery.")
    ] = None,
    reports: Annotated[
        int | None,
        options.whole("Number of reports in one shuffle, as 1e6."),
    ] = None,
    delta: Annotated[float | None, Option(help="In (0, 1), far below 1/reports.")] = None,
    mechanism: Annotated[
        str | None, Option(help="Show this mechanism's bound beside the bound of any mechanism.")
    ] = None,
    dictionary_size: Annotated[int | None, Option(help="Items, including 'other'; default: any string.")] = None,
    set_: options.Settings = None,
    campaign: Annotated[
        list[Path] | None,
        Option(help="Campaign file, instead of --mechanism and --epsilon; several: what one device pays for all."),
    ] = None,
    windows: Annotated[
        int | None,
        Option(help="Windows in which a client reports: adds their total cost.", min=1, max=MOST_PARTS),
    ] = None,
    discovery: Annotated[bool, Option("--discovery", help="Answer for discovery, not for shuffling.")] = False,
    cap: Annotated[int | None, Option(help="Discovery: most reports of one client.", show_default="1")] = None,
    relation: Annotated[str | None, Option(help="Discovery: replace-one (default) or add-remove.")] = None,
    rule: Annotated[str | None, Option(help="Discovery: optimal (default) or laplace.")] = None,
    counts: Annotated[bool, Option("--counts", help="Discovery: values are revealed with noisy counts.")] = False,
    explain: options.Explain = False,
) -> Answer:
    """Use it before you fix epsilon and the minimum batch, or to explain a campaign's guarantee.

    --windows N adds the cost for a client that reports in N windows: the sum, and the lower joint cost that holds if
    parameters are fixed.

    Example: hushcount privacy --epsilon 1 --reports 100000 --delta 1e-8 --mechanism ais --dictionary-size 26000
    """
    of_mechanism = {"--mechanism": mechanism, "--dictionary-size": dictionary_size, "--set": set_ or None}
    of_shuffling = {"--reports": reports, **of_mechanism, "--windows": windows}
    of_discovery = {"--cap": cap, "--relation": relation, "--rule": rule, "--counts": counts or None}
    one = campaign[0] if campaign else None
    try:
        if campaign and len(campaign) > 1:
            others = {**of_shuffling, **of_discovery, "--epsilon": epsilon, "--delta": delta}
            _refuse(others | {"--discovery": discovery or None}, "with several --campaign")
            return _together([Campaign.read(path) for path in campaign])
        if discovery:
            _refuse(of_shuffling, "with --discovery")
            found = queries.discovery_answer(_rule(one, epsilon, delta, of_discovery))
        else:
            _refuse(of_discovery, "without --discovery")
            if one is not None:
                _refuse({"--epsilon": epsilon, **of_mechanism}, "with --campaign, which fixes mechanism and epsilon")
            read = None if one is None else Campaign.read(one)
            if read is not None and read.noise is not None:
                _refuse({"--reports": reports, "--delta": delta}, "with noise, which depends on no number of reports")
                found = _of_noise(read, windows or 1)
            else:
                subject = (
                    _of_options(epsilon, mechanism, dictionary_size, set_ or []) if read is None else _of_campaign(read)
                )
                found = _answer(subject, reports, delta, windows)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return Answer(found, _explained(found) if explain else in_short(found))


def _together(campaigns: Sequence[Campaign]) -> Answer:
    """Return what one installation pays for several campaigns, in which a layer's campaigns ask different clients."""
    each, total = paid_for(campaigns)
    rows = [(one.name, one.layer or "", f"{one.share:.2%}", *map(rounded_up, _epsilons(one))) for one in each]
    heads = ("campaign", "layer", "asks", *_EPSILONS)
    data = {"campaigns": [asdict(one) for one in each], **dict(zip(_EPSILONS, _epsilons(total), strict=True))}
    return Answer(data, [Table("", heads, rows, words=("campaign", "layer")), *map(Sentence, of_person(total))])


def _epsilons(paid: Paid) -> tuple[float, float, float]:
    return paid.epsilon, paid.discovery_epsilon, paid.noise_epsilon


def _refuse(options: dict[str, Any], where: str) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise UsageError(f"{', '.join(given)} {'is' if len(given) == 1 else 'are'} not allowed {where}: leave it out")


def _of_noise(campaign: Campaign, windows: int) -> dict[str, Any]:
    senders = Senders("client-token")
    stated = statement(campaign, None, senders)
    for sentence in stated.plain:
        note(f"note: {sentence}")
    noisy, moved = stated.noisy, window_of(campaign, senders, 1)
    if noisy is None or moved is None:
        raise ValueError(f"the noise of campaign {campaign.id} does not hide {campaign.shuffle.cap} reports")
    return queries.noise_answer(noisy, moved, windows)


def _of_campaign(campaign: Campaign) -> _Subject:
    mechanism = campaign.require_frequency()
    repeats = repeats_of(campaign, UNBOUND)
    if repeats > 1:
        raise UsageError(
            f"a client may send {repeats} reports a batch, and its equal answers link them: shuffling gains nothing, "
            f"and all its reports of an epoch together have local epsilon {rounded_up(campaign.epoch_epsilon or 0.0)}"
        )
    return _Subject(mechanism.epsilon, mechanism, campaign)


def _of_options(epsilon: float | None, name: str | None, domain: int | None, pairs: list[str]) -> _Subject:
    if epsilon is None:
        raise UsageError(
            "give --epsilon, --reports and --delta, or --campaign FILE and --reports; hushcount plan "
            "--shuffled-epsilon computes an epsilon"
        )
    require_epsilon(epsilon)
    if name is None:
        _refuse({"--dictionary-size": domain, "--set": pairs or None}, "without --mechanism")
        return _Subject(epsilon)
    settings, objective = options.parse_settings(pairs)
    complete = plan(name, epsilon, domain, settings, objective, ANY_SEED)
    return _Subject(epsilon, build(name, epsilon, domain, complete))


def _answer(subject: _Subject, reports: int | None, delta: float | None, windows: int | None) -> dict[str, Any]:
    campaign = subject.campaign
    if delta is None and campaign is not None:
        delta = campaign.shuffle.delta
    if reports is None or delta is None:
        needed = {"--reports (shuffled together)": reports, "--delta (in (0, 1), far below 1/reports)": delta}
        raise UsageError(f"give {' and '.join(name for name, value in needed.items() if value is None)}")
    if reports < 1:
        raise UsageError(f"reports is {reports}, must be at least 1")
    if not 0.0 < delta < 1.0:
        raise UsageError(f"delta is {delta}, must be in (0, 1)")
    hides_among = reports if campaign is None else campaign.hides_among(reports)
    floor = subject.floor
    if campaign is not None and campaign.public_strata > 1:
        if campaign.passes is None:
            # Whoever invents all other reports of an atom leaves nobody to hide among.
            hides_among = floor = 1
        note(
            "note: with public axes a report hides among those of its atom, the minimum batch at least, if an issuer "
            "authenticates senders (campaign new --passes), and otherwise among none"
        )
    gained = subject.amplified(hides_among, delta)
    lasting = None if campaign is None else campaign.epoch_epsilon
    for sentence in queries.shuffled_notes(gained, floor, lasting):
        note(f"note: {sentence}")
    answer = queries.shuffled_answer(gained, floor)
    if lasting is not None:
        answer |= {"epoch_epsilon": lasting}
    if windows is not None:
        if lasting is not None:
            raise UsageError(
                "leave --windows out: clients repeat their answers, which links windows, so all reports of an epoch "
                f"together have local epsilon {rounded_up(lasting)}, however many windows there are"
            )
        if reports < subject.floor:
            raise UsageError(f"reports is {reports}, must be at least the minimum batch, {subject.floor}")
        answer |= queries.windows_answer(gained, windows)
        for sentence in queries.windows_notes(windows):
            note(f"note: {sentence}")
    return answer


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
    counts = bool(given["--counts"])
    return KeepRule(given["--rule"] or "optimal", epsilon, delta, given["--relation"] or "replace-one", cap, counts)


def _explained(answer: dict[str, Any]) -> Iterator[RenderableType]:
    kept = answer.get("keep_probability", {})
    yield guarantee("", {name: value for name, value in answer.items() if value is not kept})
    if not kept:
        return
    yield ""
    rows = [(f"{count:,}", f"{probability:.3g}") for count, probability in kept.items()]
    yield Table("", ("clients with the item", "probability that it is found"), rows)
    even, sure = answer["clients_for_even_chance"], answer["clients_for_95_percent"]
    yield f"  an item needs about {even:,} clients to be found with probability 50 %, {sure:,} with 95 %"
    if answer["counts"]:
        spread = f"{answer['count_deviation']:.3g}"
        yield f"  its count is shown with a standard deviation of {spread}; near the threshold it is mostly too high"
    yield "  for a batch of one window at one collector; with several, a client has its cap in each, so more are needed"
