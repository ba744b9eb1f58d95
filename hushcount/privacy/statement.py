"""The privacy statement that every result carries: each guarantee with its unit and its neighbouring relation."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from hushcount.campaign import Campaign, Stream
from hushcount.privacy.amplification import Amplified, amplify, closed_form_epsilon
from hushcount.privacy.odds import odds_of_pair, odds_of_points, of_group
from hushcount.privacy.plain import plain_sentences
from hushcount.privacy.rounding import rounded_up
from hushcount.privacy.unit import Unit, unit_of
from hushcount.senders import KEY, Authentication

Guarantee = dict[str, Any]


def statement(
    campaign: Campaign,
    reports: int | None,
    authentication: Authentication,
    streams: Collection[Stream] | None = None,
) -> dict[str, Any]:
    """Return the statement for a run, as JSON data: figures, plain sentences, and exact ones for engineers.

    Args:
        campaign: what clients were told.
        reports: frequency reports that were opened and accepted; None before that is known, and no amplification is
            stated: what was merely forwarded may be anything.
        authentication: by which senders were told apart. Where that tells no client from another, the cap binds nobody,
            and every guarantee is for one report.
        streams: what the run read, and the statement is about; all that the campaign carries if None.

    Privacy: epsilons compose by addition; a client with l reports by group privacy, `(l e, d (1 + exp(e) + ...))`. The
    shuffled epsilon of one report is the smaller of two certified bounds, on the reports that arrived: the general one,
    and the blanket bound of the mechanism, which all have but those of unary responses (`amplification.amplify`).
    Clients that remember repeat their answers, which link their reports: a gain is then stated for the only batch of an
    epoch and one report a client, and all reports of an epoch have the local epsilon `epoch_epsilon` (docs/adr/0010).
    `odds` is what the plain sentences say: by how much odds change, but for a chance (`odds.Odds`).
    """
    covered = campaign.streams if streams is None else streams
    unit = unit_of(campaign, authentication)
    result: dict[str, Any] = {
        "unit": unit.text,
        "per": unit.per,
        KEY: authentication,
        "relation": "replace-one",
        "sentences": [],
    }
    gained = None
    if "reports" in covered:
        gained = None if reports is None else _gained(campaign, unit, reports)
        result["local"] = _local(campaign, unit)
        result["shuffled"] = None if gained is None else _shuffled(unit, gained)
    if "discovery" in covered:
        result["discovery"] = _discovery(campaign, unit)
    if "discovery" in covered and reports is not None:
        result["total"] = _total(unit, result, gained)
    result["plain"] = list(plain_sentences(result, unit))
    result["sentences"] = _sentences(result, reports)
    return result


def _local(campaign: Campaign, unit: Unit) -> Guarantee:
    epsilon = campaign.require_frequency().epsilon
    return {
        "epsilon_per_report": epsilon,
        "epsilon": unit.answers * epsilon,
        "epoch_epsilon": campaign.epoch_epsilon,
        "values": campaign.memory_values if campaign.memory else None,
        "delta": 0.0,
        "relation": "replace-one",
        "unit": unit.text,
        "against": "everyone, all parties together included",
    }


def _gained(campaign: Campaign, unit: Unit, reports: int) -> Amplified | None:
    """What shuffling gains, or None where nothing can be claimed.

    That is below the minimum batch, where less than 1 % is gained, where the delta of a client's reports is 1, and
    where several of its reports may be one answer, which links them.
    """
    if reports < campaign.shuffle.minimum_batch or campaign.repeats > 1:
        return None
    gained = amplify(campaign.require_frequency(), reports, campaign.shuffle.delta)
    return None if gained.bound is None or _group_delta(unit, gained) >= 1.0 else gained


def _group_delta(unit: Unit, gained: Amplified) -> float:
    return of_group(lambda _: gained.delta, unit.reports)(unit.reports * gained.epsilon)


def _shuffled(unit: Unit, gained: Amplified) -> Guarantee:
    one, group = gained.epsilon, unit.reports
    return {
        "epsilon_per_report": one,
        "epsilon": group * one,
        "delta": _group_delta(unit, gained),
        "odds": asdict(odds_of_points(gained.points(group), gained.delta)),
        "relation": "replace-one",
        "unit": unit.text,
        "reports": gained.reports,
        "bound": gained.bound,
        "closed_form": closed_form_epsilon(gained.local, gained.reports, gained.delta),
        "against": "the analyzer, if the shuffler is honest and the counted reports are",
    }


def _discovery(campaign: Campaign, unit: Unit) -> Guarantee:
    rule = campaign.require_keep_rule()
    return {
        "epsilon": rule.epsilon,
        "delta": rule.delta,
        "odds": asdict(odds_of_pair(rule.epsilon, rule.delta)),
        "relation": rule.relation,
        "unit": unit.text,
        "rule": rule.name,
        "clients_for_even_chance": rule.count_for(0.5),
        "clients_for_95_percent": rule.count_for(0.95),
        "against": "the analyzer, if the auxiliary server and the shuffler are honest",
    }


def _total(unit: Unit, result: dict[str, Any], gained: Amplified | None) -> Guarantee:
    """What the analyzer learns from both streams of one client, under replace-one.

    The odds are those of the sum of both curves: a frequency report and a discovery report of one client are drawn
    independently, so a point of the one and a point of the other add up.
    """
    lasting = result["local"]["epoch_epsilon"]
    counts = {"epsilon": lasting, "delta": 0.0} if lasting else result["shuffled"] or result["local"]
    found = result["discovery"]
    sides = 1 if found["relation"] == "replace-one" else 2
    epsilon, delta = sides * found["epsilon"], sides * found["delta"]
    odds = odds_of_pair(counts["epsilon"] + epsilon, delta)
    if gained is not None and not lasting:
        both = [(point + epsilon, spent + delta) for point, spent in gained.points(unit.reports)]
        odds = odds_of_points(both, gained.delta + odds.chance)
    return {
        "epsilon": counts["epsilon"] + epsilon,
        "delta": counts["delta"] + delta,
        "odds": asdict(odds),
        "relation": "replace-one",
        "unit": unit.text if unit.per == "client" else "one report of each stream",
        "against": "the analyzer, if the shuffler and the auxiliary server are honest",
    }


def _sentences(result: dict[str, Any], reports: int | None) -> list[str]:
    sentences = []
    if result["per"] == "report":
        sentences.append(
            f"Senders were told apart by authentication {result[KEY]}, which tells no client from another: the cap "
            "bound nobody, each guarantee is for one report, and a client that sent several pays for each of them."
        )
    if "local" in result:
        local, shuffled = result["local"], result["shuffled"]
        sentences.append(
            f"Every frequency report is randomised on the client: whoever sees it, even all parties together, can tell "
            f"any two values apart only by a factor of e^{rounded_up(local['epsilon_per_report'])} for one report "
            f"(local epsilon {rounded_up(local['epsilon'])} for {local['unit']}, replace-one)."
        )
        lasting = local["epoch_epsilon"]
        if lasting:
            sentences.append(
                "Clients repeat their answers within the epoch: all frequency reports that a client sends in it, "
                f"however many, have local epsilon {rounded_up(lasting)} together, replace-one; the analyzer sees "
                f"which of them are alike{', and so when a value changed' if local['values'] > 1 else ''}."
            )
        if shuffled:
            only = ", and as long as no other batch of the epoch is counted" if lasting else ""
            sentences.append(
                f"Mixed among {shuffled['reports']:,} reports, what the analyzer receives is "
                f"{_pair(shuffled)}-private for {shuffled['unit']}, replace-one, if the shuffler is honest and those "
                f"reports are{only}."
            )
        elif reports is not None:
            sentences.append(
                f"For {reports:,} reports no gain by shuffling is claimed: the local guarantee is the whole guarantee."
            )
    if "discovery" in result:
        part = result["discovery"]
        enough = "clients sent" if result["per"] == "client" else "reports hold"
        sentences.append(
            f"Discovery reports are not randomised: the auxiliary server reveals a value only when enough {enough} "
            f"it (about {part['clients_for_even_chance']} for an even chance), which is {_pair(part)}"
            f"-private for {part['unit']}, {part['relation']}, if the shuffler and the auxiliary server are honest; "
            "the auxiliary server can test a value that it guesses."
        )
    if "total" in result:
        total = result["total"]
        who = "A client that sends both" if result["per"] == "client" else "Whoever sends one report of each stream"
        sentences.append(f"{who} pays for both: {_pair(total)}, replace-one.")
    return sentences


def _pair(part: Guarantee) -> str:
    return f"({rounded_up(part['epsilon'])}, {rounded_up(part['delta'])})"
