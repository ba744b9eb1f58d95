"""The privacy statement that every result carries: each guarantee with its unit and its neighbouring relation."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.discovery.keep_rules import KeepRule
from hushcount.errors import UsageError
from hushcount.privacy.amplification import Amplified, amplify, closed_form_epsilon
from hushcount.privacy.guarantees import Discovery, Local, Shuffled, Statement, Total
from hushcount.privacy.odds import odds_of_pair, odds_of_points, of_group
from hushcount.privacy.plain_words import plain_sentences
from hushcount.privacy.rounding import rounded_up
from hushcount.privacy.unit import NAMES, Unit, Units, repeats_of, rule_of, units_of
from hushcount.senders import Senders

_EXACT = " How many reports there were is published exactly, and shows that a client was added or removed."


def statement(
    campaign: Campaign,
    reports: int | None,
    senders: Senders,
    streams: Collection[Stream] | None = None,
) -> Statement:
    """Return the statement for a run: figures, plain sentences, and exact ones for engineers.

    Args:
        campaign: what clients were told.
        reports: frequency reports that were opened and accepted; None before that is known, and no amplification is
            stated: what was merely forwarded may be anything.
        senders: by which way they were told apart: where that tells no client from another, the cap binds nobody, and
            every guarantee is for one report. And how many times a client gets the cap: all of these are bounded.
        streams: what the run read, and the statement is about; all that the campaign carries if None.

    Where no keep rule has the campaign's epsilon and delta for so many reports, nothing is stated of discovery, and
    `hushcount discover` refuses the batch.

    Privacy: epsilons compose by addition; a client with l reports by group privacy, `(l e, d (1 + exp(e) + ...))`. The
    shuffled epsilon of one report is the smaller of two certified bounds, on the reports that arrived: the general one,
    and the blanket bound of the mechanism, which all have but those of unary responses (`amplification.amplify`).
    Clients that remember repeat their answers, which link their reports: a gain is then stated for the only batch of an
    epoch and one report a client, and all reports of an epoch have the local epsilon `epoch_epsilon` (docs/adr/0010).
    `odds` is what the plain sentences say: by how much odds change, but for a chance (`odds.Odds`).
    """
    covered = campaign.streams if streams is None else streams
    units = units_of(campaign, senders)
    rule, refusal = _rule(campaign, senders) if "discovery" in covered else (None, None)
    local = gained = total = None
    if "reports" in covered:
        gained = None if reports is None else _gained(campaign, senders, units.reports, reports)
        local = _local(campaign, units.reports)
    shuffled = None if gained is None else _shuffled(units.reports, gained)
    found = None if rule is None else _discovery(rule, units.discovery)
    if local is not None and found is not None and reports is not None:
        total = _total(units, local, shuffled, found, gained)
    result = Statement(_unit_text(units, covered), units.per, senders.way, local, shuffled, found, total)
    sentences = [*_of_whom(result, units, covered), *_sentences(result, reports)]
    if refusal is not None:
        sentences.append(f"Discovery is refused: {refusal}.")
    return replace(result, plain=tuple(plain_sentences(result, units)), sentences=tuple(sentences))


def _unit_text(units: Units, covered: Collection[Stream]) -> str:
    if len(covered) > 1:
        return units.text
    return units.reports.text if "reports" in covered else units.discovery.text


def _rule(campaign: Campaign, senders: Senders) -> tuple[KeepRule | None, str | None]:
    """Return the keep rule; or why there is none for so many reports of a client."""
    try:
        return rule_of(campaign, senders), None
    except UsageError as error:
        return None, str(error)


def _local(campaign: Campaign, unit: Unit) -> Local:
    epsilon = campaign.require_frequency().epsilon
    return Local(
        epsilon_per_report=epsilon,
        epsilon=unit.answers * epsilon,
        epoch_epsilon=campaign.epoch_epsilon,
        values=campaign.memory_values if campaign.memory else None,
        delta=0.0,
        relation="replace-one",
        unit=unit.text,
        against="everyone, all parties together included",
    )


def _gained(campaign: Campaign, senders: Senders, unit: Unit, reports: int) -> Amplified | None:
    """What shuffling gains, or None where nothing can be claimed.

    That is below the minimum batch, where less than 1 % is gained, where the delta of a client's reports is 1, and
    where several of its reports may be one answer, which links them: a client that remembers and is not held to its
    cap may repeat its answer as often as it likes.
    """
    links = campaign.memory and (repeats_of(campaign, senders) > 1 or not senders.told_apart)
    if links or reports < campaign.shuffle.minimum_batch:
        return None
    gained = amplify(campaign.require_frequency(), reports, campaign.shuffle.delta)
    return None if gained.bound is None or _group_delta(unit, gained) >= 1.0 else gained


def _group_delta(unit: Unit, gained: Amplified) -> float:
    return of_group(lambda _: gained.delta, unit.reports)(unit.reports * gained.epsilon)


def _shuffled(unit: Unit, gained: Amplified) -> Shuffled:
    one, group = gained.epsilon, unit.reports
    return Shuffled(
        epsilon_per_report=one,
        epsilon=group * one,
        delta=_group_delta(unit, gained),
        odds=odds_of_points(gained.points(group), gained.delta),
        relation="replace-one",
        unit=unit.text,
        reports=gained.reports,
        bound=gained.bound,
        closed_form=closed_form_epsilon(gained.local, gained.reports, gained.delta),
        against="the analyzer, if the shuffler is honest and the counted reports are",
    )


def _discovery(rule: KeepRule, unit: Unit) -> Discovery:
    return Discovery(
        epsilon=rule.epsilon,
        delta=rule.delta,
        odds=odds_of_pair(rule.epsilon, rule.delta),
        relation=rule.relation,
        unit=unit.text,
        rule=rule.name,
        clients_for_even_chance=rule.count_for(0.5),
        clients_for_95_percent=rule.count_for(0.95),
        against="the analyzer, if the auxiliary server and the shuffler are honest",
    )


def _total(units: Units, local: Local, shuffled: Shuffled | None, found: Discovery, gained: Amplified | None) -> Total:
    """What the analyzer learns from both streams of one client, under replace-one.

    The odds are those of the sum of both curves: a frequency report and a discovery report of one client are drawn
    independently, so a point of the one and a point of the other add up.
    """
    lasting, counts = local.epoch_epsilon, shuffled or local
    counted, lost = (lasting, 0.0) if lasting else (counts.epsilon, counts.delta)
    sides = 1 if found.relation == "replace-one" else 2
    epsilon, delta = sides * found.epsilon, sides * found.delta
    odds = odds_of_pair(counted + epsilon, delta)
    if gained is not None and not lasting:
        both = [(point + epsilon, spent + delta) for point, spent in gained.points(units.reports.reports)]
        odds = odds_of_points(both, gained.delta + odds.chance)
    return Total(
        epsilon=counted + epsilon,
        delta=lost + delta,
        odds=odds,
        relation="replace-one",
        unit=units.text if units.per == "client" else "one report of each stream",
        against="the analyzer, if the shuffler and the auxiliary server are honest",
    )


def _of_whom(result: Statement, units: Units, covered: Collection[Stream]) -> Iterator[str]:
    if result.per == "report":
        yield (
            f"Senders were told apart by authentication {result.authentication}, which tells no client from another: "
            "the cap bound nobody, each guarantee is for one report, and a client that sent several pays for each of "
            "them."
        )
        return
    both: tuple[tuple[Stream, Unit], ...] = (("reports", units.reports), ("discovery", units.discovery))
    for stream, unit in both:
        if stream in covered and unit.allotments > 1:
            yield (
                f"The {NAMES[stream]} are of {unit.allotments:,} collector windows, windows at one collector each: a "
                f"client may have the cap of {unit.cap:,} in each of them, {unit.reports:,} in all, which every "
                "guarantee is for."
            )


def _sentences(result: Statement, reports: int | None) -> list[str]:
    sentences = []
    local, shuffled, part, total = result.local, result.shuffled, result.discovery, result.total
    if local is not None:
        sentences.append(
            f"Every frequency report is randomised on the client: whoever sees it, even all parties together, can tell "
            f"any two values apart only by a factor of e^{rounded_up(local.epsilon_per_report)} for one report "
            f"(local epsilon {rounded_up(local.epsilon)} for {local.unit}, replace-one)."
        )
        lasting = local.epoch_epsilon
        if lasting:
            sentences.append(
                "Clients repeat their answers within the epoch: all frequency reports that a client sends in it, "
                f"however many, have local epsilon {rounded_up(lasting)} together, replace-one; the analyzer sees "
                f"which of them are alike{', and so when a value changed' if (local.values or 0) > 1 else ''}."
            )
        if shuffled is not None:
            only = ", and as long as it gets no other batch of the epoch, counted or not" if lasting else ""
            sentences.append(
                f"Mixed among {shuffled.reports:,} reports, what the analyzer receives is "
                f"{_pair(shuffled)}-private for {shuffled.unit}, replace-one, if the shuffler is honest and those "
                f"reports are{only}."
            )
        elif reports is not None:
            sentences.append(
                f"For {reports:,} reports no gain by shuffling is claimed: the local guarantee is the whole guarantee."
            )
    if part is not None:
        enough = "clients sent" if result.per == "client" else "reports hold"
        sentences.append(
            f"Discovery reports are not randomised: the auxiliary server reveals a value only when enough {enough} "
            f"it (about {part.clients_for_even_chance} for an even chance), which is {_pair(part)}"
            f"-private for {part.unit}, {part.relation}, if the shuffler and the auxiliary server are honest; "
            "the auxiliary server can test a value that it guesses." + (_EXACT if part.relation == "add-remove" else "")
        )
    if total is not None:
        who = "A client that sends both" if result.per == "client" else "Whoever sends one report of each stream"
        sentences.append(f"{who} pays for both: {_pair(total)}, replace-one.")
    return sentences


def _pair(part: Shuffled | Discovery | Total) -> str:
    return f"({rounded_up(part.epsilon)}, {rounded_up(part.delta)})"
