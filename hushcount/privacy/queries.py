"""Answers about privacy as JSON data: what `hushcount privacy` prints, with what should be noted about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hushcount.discovery.keep_rules import KeepRule
from hushcount.oracles.mechanism import Mechanism
from hushcount.privacy.amplification import Amplified, closed_form_epsilon, shuffled_delta
from hushcount.privacy.blanket import blanket_law, general_law

Answer = dict[str, Any]


def shuffled_answer(gained: Amplified, floor: int = 1) -> Answer:
    """Return what shuffling gains, for one report, replace-one.

    Args:
        gained: of all bounds.
        floor: the campaign's minimum batch, below which no gain is claimed: bound is None, epsilon the local one.
    """
    claimed = gained.reports >= floor and gained.bound is not None
    return {
        "local_epsilon": gained.local,
        "shuffled_epsilon": gained.epsilon if claimed else gained.local,
        "bound": gained.bound if claimed else None,
        "shuffled_epsilon_general": gained.general,
        "shuffled_epsilon_blanket": gained.blanket,
        "shuffled_epsilon_closed_form": closed_form_epsilon(gained.local, gained.reports, gained.delta),
        "reports": gained.reports,
        "delta": gained.delta,
        "relation": "replace-one",
    }


def shuffled_notes(gained: Amplified, floor: int = 1) -> Iterator[str]:
    """Yield a sentence for each thing that is odd about a question or its answer."""
    if gained.delta >= 1.0 / gained.reports:
        yield (
            f"delta is {gained.delta:g}, not below 1/reports, {1.0 / gained.reports:.3g}: it allows that one whole "
            "report is revealed"
        )
    if gained.reports < floor:
        yield (
            f"reports is {gained.reports:,}, below the campaign's minimum batch of {floor:,}: nothing is released and "
            "no gain by shuffling is claimed; the local epsilon is the whole guarantee"
        )
    elif gained.bound is None:
        yield (
            f"shuffling {gained.reports:,} reports gains less than 1 % at a local epsilon of {gained.local:g} and a "
            f"delta of {gained.delta:g}: no gain is claimed, the local epsilon is the whole guarantee"
        )


def epoch_notes(epsilon: float | None) -> Iterator[str]:
    """Yield what holds over an epoch whose clients repeat their answers, of this local epsilon together; else None."""
    if epsilon is not None:
        yield (
            "clients repeat their answers: the shuffled epsilon is that of the only batch of an epoch; with a second "
            f"batch, all together have the local epsilon {epsilon:g}"
        )


def delta_answer(mechanism: Mechanism | None, local: float, reports: int, epsilon: float) -> Answer:
    """Return the delta of shuffled reports at an epsilon, for one report, replace-one.

    Args:
        mechanism: None for any of this local epsilon.
        local: the local epsilon.
        reports: n, at least 1.
        epsilon: the shuffled one, above 0.
    """
    law = None if mechanism is None else blanket_law(mechanism)
    general = shuffled_delta(general_law(local), reports, epsilon)
    own = None if law is None else shuffled_delta(law, reports, epsilon)
    return {
        "local_epsilon": local,
        "shuffled_epsilon": epsilon,
        "bound": "general" if own is None or general <= own else "blanket",
        "delta": general if own is None else min(general, own),
        "delta_general": general,
        "delta_blanket": own,
        "reports": reports,
        "relation": "replace-one",
    }


def discovery_answer(rule: KeepRule) -> Answer:
    """Return what a keep rule guarantees to one client, and how many clients it takes to find an item."""
    noisy = rule.name == "laplace"
    return {
        "rule": rule.name,
        "threshold": rule.laplace_threshold if noisy else None,
        "noise_scale": rule.noise_scale if noisy else None,
        "keep_probability": rule.keep_table(),
        "clients_for_even_chance": rule.count_for(0.5),
        "clients_for_95_percent": rule.count_for(0.95),
        "epsilon": rule.epsilon,
        "delta": rule.delta,
        "relation": rule.relation,
        "cap": rule.cap,
    }
