"""The privacy statement that every result carries: each guarantee with its unit and its neighbouring relation."""

from __future__ import annotations

import math
from typing import Any

from hushcount.campaign import Campaign
from hushcount.privacy.amplification import amplify, closed_form_epsilon
from hushcount.privacy.plain import plain_sentences
from hushcount.privacy.rounding import rounded_up

Guarantee = dict[str, Any]


def statement(campaign: Campaign, reports: int | None) -> dict[str, Any]:
    """Return the statement for a run, as JSON data: figures, two plain sentences, and exact ones for engineers.

    Args:
        campaign: what clients were told.
        reports: frequency reports that were opened and accepted; None before that is known, and no amplification is
            stated: what was merely forwarded may be anything.

    Privacy: epsilons compose by addition; a client with l reports by group privacy, `(l e, d (1 + exp(e) + ...))`. The
    shuffled epsilon of one report is the smaller of two certified bounds, on the reports that arrived: the general one,
    and the blanket bound of the mechanism, which all have but those of unary responses (`amplification.amplify`).
    """
    result: dict[str, Any] = {"unit": _unit(campaign), "relation": "replace-one", "sentences": []}
    if campaign.frequency is not None:
        result["local"] = _local(campaign)
        result["shuffled"] = None if reports is None else _shuffled(campaign, reports)
    if campaign.discovery is not None:
        result["discovery"] = _discovery(campaign)
    if campaign.frequency is not None and campaign.discovery is not None:
        result["total"] = _total(result)
    result["plain"] = list(plain_sentences(result))
    result["sentences"] = _sentences(campaign, result, reports)
    return result


def _unit(campaign: Campaign) -> str:
    cap = campaign.shuffle.cap
    return f"one client that sends at most {cap} {'report' if cap == 1 else 'reports'} a stream"


def _local(campaign: Campaign) -> Guarantee:
    epsilon = campaign.require_frequency().epsilon
    return {
        "epsilon_per_report": epsilon,
        "epsilon": campaign.shuffle.cap * epsilon,
        "delta": 0.0,
        "relation": "replace-one",
        "unit": _unit(campaign),
        "against": "everyone, all parties together included",
    }


def _shuffled(campaign: Campaign, reports: int) -> Guarantee | None:
    """The amplified guarantee, or None where none can be claimed: batch floor missed, or less than 1 % to be gained."""
    if reports < campaign.shuffle.minimum_batch:
        return None
    delta, cap = campaign.shuffle.delta, campaign.shuffle.cap
    gained = amplify(campaign.require_frequency(), reports, delta)
    if gained.bound is None:
        return None
    one = gained.epsilon
    return {
        "epsilon_per_report": one,
        "epsilon": cap * one,
        "delta": delta * sum(math.exp(step * one) for step in range(cap)),
        "relation": "replace-one",
        "unit": _unit(campaign),
        "reports": reports,
        "bound": gained.bound,
        "closed_form": closed_form_epsilon(gained.local, reports, delta),
        "against": "the analyzer, if the shuffler is honest and the counted reports are",
    }


def _discovery(campaign: Campaign) -> Guarantee:
    rule = campaign.require_keep_rule()
    return {
        "epsilon": rule.epsilon,
        "delta": rule.delta,
        "relation": rule.relation,
        "unit": _unit(campaign),
        "rule": rule.name,
        "clients_for_even_chance": rule.count_for(0.5),
        "clients_for_95_percent": rule.count_for(0.95),
        "against": "the analyzer, if the auxiliary server and the shuffler are honest",
    }


def _total(result: dict[str, Any]) -> Guarantee:
    """What the analyzer learns from both streams of one client, under replace-one."""
    frequency = result["shuffled"] or result["local"]
    discovery = result["discovery"]
    sides = 1 if discovery["relation"] == "replace-one" else 2
    return {
        "epsilon": frequency["epsilon"] + sides * discovery["epsilon"],
        "delta": frequency["delta"] + sides * discovery["delta"],
        "relation": "replace-one",
        "unit": result["unit"],
        "against": "the analyzer, if the shuffler and the auxiliary server are honest",
    }


def _sentences(campaign: Campaign, result: dict[str, Any], reports: int | None) -> list[str]:
    sentences = []
    if campaign.frequency is not None:
        local, shuffled = result["local"], result["shuffled"]
        sentences.append(
            f"Every frequency report is randomised on the client: whoever sees it, even all parties together, can tell "
            f"any two values apart only by a factor of e^{rounded_up(local['epsilon_per_report'])} for one report "
            f"(local epsilon {rounded_up(local['epsilon'])} for {local['unit']}, replace-one)."
        )
        if shuffled:
            sentences.append(
                f"Mixed among {shuffled['reports']:,} reports, what the analyzer receives is "
                f"{_pair(shuffled)}-private for {shuffled['unit']}, replace-one, if the shuffler is honest and those "
                "reports are."
            )
        elif reports is not None:
            sentences.append(
                f"For {reports:,} reports no gain by shuffling is claimed: the local guarantee is the whole guarantee."
            )
    if campaign.discovery is not None:
        part = result["discovery"]
        sentences.append(
            f"Discovery reports are not randomised: the auxiliary server reveals a value only when enough clients sent "
            f"it (about {part['clients_for_even_chance']} for an even chance), which is {_pair(part)}"
            f"-private for {part['unit']}, {part['relation']}, if the shuffler and the auxiliary server are honest; "
            "the auxiliary server can test a value that it guesses."
        )
    if "total" in result:
        total = result["total"]
        sentences.append(f"A client that sends both pays for both: {_pair(total)}, replace-one.")
    return sentences


def _pair(part: Guarantee) -> str:
    return f"({rounded_up(part['epsilon'])}, {rounded_up(part['delta'])})"
