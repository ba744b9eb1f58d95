"""The privacy statement that every result carries: each guarantee with its unit and its neighbouring relation."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.discovery.keep_rules import KeepRule
from hushcount.errors import UsageError
from hushcount.maths.odds import Odds, odds_of_pair, odds_of_points, of_group
from hushcount.privacy.amplification import Amplified, amplify, closed_form_epsilon
from hushcount.privacy.guarantees import Discovery, Local, Noisy, Released, Shuffled, Statement
from hushcount.privacy.joint import Curved, Window, part_of
from hushcount.privacy.moved import Moved
from hushcount.privacy.unit import Unit, Units, repeats_of, rule_of, unit_of
from hushcount.privacy.words import axes_sentences, exact_sentences, plain_sentences, sample_sentence
from hushcount.senders import Senders

_BITS = 6


def statement(
    campaign: Campaign, reports: int | None, senders: Senders, streams: Collection[Stream] | None = None
) -> Statement:
    """Return the statement for a run: figures, plain sentences, and exact sentences for engineers.

    Args:
        campaign: the campaign as its clients know it.
        reports: the number of frequency reports that were opened and accepted; None before the number is known. Without
            this number no gain by shuffling is stated, because a report that was only forwarded may be any bytes.
        senders: how senders were told apart, and how many times a client gets the cap. If clients cannot be told
            apart, the cap binds nobody, and every guarantee is for one report.
        streams: the streams that the run read, and that the statement is about; None for all streams of the campaign.

    If no keep rule has the campaign's epsilon and delta for all reports that one client may have in the batch, the
    statement has no guarantee of discovery, and `hushcount job discover` refuses the batch. With noise of the mixes,
    a client with more reports in the batch than the cap pays for all of them; above `CountLaw.threshold` reports delta
    would exceed 1/2, and the statement has no guarantee.

    Privacy: epsilons compose by addition; the guarantee of a client with l reports follows by group privacy,
    `(l e, d (1 + exp(e) + ...))`. `amplification.amplify` gives the shuffled epsilon of one report, for the number of
    reports that arrived. Clients with a memory repeat their answers, and equal answers link their reports. With a
    memory, a gain is stated only for the only batch of an epoch and for one report of each client, and all reports of
    an epoch have the local epsilon `epoch_epsilon` (docs/adr/0010).
    """
    covered = campaign.streams if streams is None else streams
    units = Units(unit_of(campaign, senders, "reports"), unit_of(campaign, senders, "discovery"))
    local = gained = shuffled = noisy = found = total = None
    refusals = []
    if "reports" in covered and campaign.noise is not None:
        noisy = _noisy(campaign, units.reports)
        if noisy is None:
            number = units.reports.reports
            refusals.append(f"Counts are refused: a client may have {number:,} reports, which the noise does not hide.")
    elif "reports" in covered:
        local = _local(campaign, units.reports)
        gained = None if reports is None else _gained(campaign, senders, units.reports, reports)
        shuffled = None if gained is None else _shuffled(units.reports, gained)
    if "discovery" in covered:
        try:
            found = _discovery(campaign, rule_of(campaign, senders), units.discovery)
        except UsageError as error:
            refusals.append(f"Discovery is refused: {error}.")
    if noisy is not None and found is not None:
        total = _total(units, noisy, None, found, None)
    elif local is not None and found is not None and reports is not None:
        total = _total(units, shuffled or local, local.epoch_epsilon, found, gained)
    unit = units.text if len(covered) > 1 else units.reports.text if "reports" in covered else units.discovery.text
    result = Statement(unit, units.reports.per, senders.way, local, shuffled, found, total, noisy)
    asked = [] if campaign.sample is None else [sample_sentence(campaign.sample)]
    if "reports" in covered:
        asked += axes_sentences(*(campaign.axes_that_are(public=public) for public in (False, True)))
    sentences = [*exact_sentences(result, units, covered, reports), *refusals, *asked]
    return replace(result, plain=(*plain_sentences(result, units), *asked), sentences=tuple(sentences))


def moved_of(campaign: Campaign, unit: Unit) -> Moved:
    """Return what a batch with noise of the mixes releases, for a unit; each mix alone hides this much."""
    noise = campaign.require_frequency().encoder.noise
    if noise is None:
        raise ValueError(f"campaign {campaign.id} has no noise")
    return Moved(noise.law, unit.reports)


def window_of(campaign: Campaign, senders: Senders, reports: int | None) -> Curved | None:
    """Return a batch of counts for joint composition; None if only its epsilon and delta can be composed.

    The result is None if clients have a memory, which links their batches; if clients are not told apart; or if the
    statement claims no gain by shuffling, or no guarantee of noise. The number of reports is rounded down by a few per
    cent, so that batches of similar size are equal; noise of the mixes does not depend on it.
    """
    if reports is None or campaign.memory or not senders.told_apart:
        return None
    unit = unit_of(campaign, senders, "reports")
    if campaign.noise is not None:
        moved = moved_of(campaign, unit)
        return moved if moved.hides else None
    gained = _gained(campaign, senders, unit, reports)
    among = campaign.hides_among(reports)
    coarse = among >> max(0, among.bit_length() - _BITS) << max(0, among.bit_length() - _BITS)
    part = None if gained is None else part_of(replace(gained, reports=coarse), unit.reports)
    return part if isinstance(part, Window) else None


def _local(campaign: Campaign, unit: Unit) -> Local:
    epsilon = campaign.require_frequency().epsilon
    return Local(
        epsilon_per_report=epsilon,
        epsilon=unit.answers * epsilon,
        epoch_epsilon=campaign.epoch_epsilon,
        values=campaign.memory_values if campaign.memory else None,
        delta=0.0,
        unit=unit.text,
        against="everyone, all parties together included",
    )


def _noisy(campaign: Campaign, unit: Unit) -> Noisy | None:
    """Return the guarantee of noise for all reports of the unit: not less than (epsilon, delta) of the cap's reports.

    If one of both mixes is honest, the noise of this mix has the whole guarantee.
    """
    noise, mixes, moved = campaign.noise, campaign.require_frequency().encoder.noise, moved_of(campaign, unit)
    if noise is None or mixes is None or not moved.hides:
        return None
    epsilon, delta = noise.epsilon * unit.reports / campaign.shuffle.cap, max(noise.delta, moved.lost)
    return Noisy(
        epsilon=epsilon,
        delta=delta,
        odds=Odds(epsilon, delta),
        unit=unit.text,
        count_deviation=math.sqrt(mixes.variance),
        against="everyone, if the shuffler or the auxiliary server is honest",
    )


def _gained(campaign: Campaign, senders: Senders, unit: Unit, reports: int) -> Amplified | None:
    """Return the gain by shuffling; None below the minimum batch, below 1 %, or if a client's reports have delta 1.

    The gain is also None if several reports of a client may repeat one answer, because equal answers link reports. A
    client with a memory may repeat its answer any number of times if nobody enforces the cap.

    With public axes a report hides among those of its atom, which are the minimum batch at least. If nobody
    authenticates senders, invented reports may be all others of an atom, so nothing is gained then.
    """
    links = campaign.memory and (repeats_of(campaign, senders) > 1 or not senders.told_apart)
    if links or not campaign.reaches_minimum(reports):
        return None
    if campaign.public_strata > 1 and senders.way != "privacy-pass":
        return None
    gained = amplify(campaign.require_frequency(), campaign.hides_among(reports), campaign.shuffle.delta)
    return None if gained.bound is None or _group_delta(unit, gained) >= 1.0 else gained


def _group_delta(unit: Unit, gained: Amplified) -> float:
    return of_group(lambda _: gained.delta, unit.reports)(unit.reports * gained.epsilon)


def _shuffled(unit: Unit, gained: Amplified) -> Shuffled:
    return Shuffled(
        epsilon_per_report=gained.epsilon,
        epsilon=unit.reports * gained.epsilon,
        delta=_group_delta(unit, gained),
        odds=odds_of_points(gained.points(unit.reports), gained.delta),
        unit=unit.text,
        reports=gained.reports,
        bound=gained.bound,
        closed_form=closed_form_epsilon(gained.local, gained.reports, gained.delta),
        against="the analyzer, if the shuffler is honest and the counted reports are",
    )


def _discovery(campaign: Campaign, rule: KeepRule, unit: Unit) -> Discovery:
    return Discovery(
        epsilon=rule.epsilon,
        delta=rule.delta,
        odds=_found_odds(rule.epsilon, rule.delta, counts=rule.counts),
        relation=rule.relation,
        unit=unit.text,
        rule=rule.name,
        names="oblivious" if campaign.is_oblivious else "keyed",
        clients_for_even_chance=rule.count_for(0.5),
        clients_for_95_percent=rule.count_for(0.95),
        count_deviation=rule.count_deviation,
        against="the analyzer, if the auxiliary server and the shuffler are honest",
    )


def _found_odds(epsilon: float, delta: float, *, counts: bool) -> Odds:
    """Return the odds of revealed values; with counts, epsilon is exceeded with probability delta at most."""
    return Odds(epsilon, delta) if counts else odds_of_pair(epsilon, delta)


def _total(
    units: Units, counts: Local | Shuffled | Noisy, lasting: float | None, found: Discovery, gained: Amplified | None
) -> Released:
    """Return what the analyzer learns from both streams of one client, under replace-one.

    A frequency report and a discovery report of one client are drawn independently, so the epsilons and the deltas of
    both curves add up point by point.

    Args:
        counts: the guarantee of the frequency reports.
        lasting: epsilon of all frequency reports of the epoch, if clients repeat their answers.
        gained: the gain by shuffling, if it is claimed.
    """
    counted, lost = (lasting, 0.0) if lasting else (counts.epsilon, counts.delta)
    sides, shown = 1 if found.relation == "replace-one" else 2, found.count_deviation is not None
    epsilon, delta = sides * found.epsilon, sides * found.delta
    if shown or isinstance(counts, Noisy):
        own = Odds(counted, 0.0) if lasting or isinstance(counts, Local) else counts.odds
        odds = own.with_other(_found_odds(epsilon, delta, counts=shown))
    elif gained is not None and not lasting:
        both = [(point + epsilon, spent + delta) for point, spent in gained.points(units.reports.reports)]
        odds = odds_of_points(both, gained.delta + odds_of_pair(epsilon, delta).chance)
    else:
        odds = odds_of_pair(counted + epsilon, delta)
    return Released(
        epsilon=counted + epsilon,
        delta=lost + delta,
        odds=odds,
        unit=units.text if units.reports.per == "client" else "one report of each stream",
        against="the analyzer, if the shuffler and the auxiliary server are honest",
    )
