"""Answers about privacy as JSON data, and notes on these answers: the output of `hushcount privacy`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from hushcount.discovery.keep_rules import KeepRule
from hushcount.privacy.amplification import Amplified, closed_form_epsilon
from hushcount.privacy.composition import Loss, basic
from hushcount.privacy.guarantees import Noisy
from hushcount.privacy.joint import Part, joint_epsilon, part_of, smaller

Answer = dict[str, Any]
_JOINT_DELTA = 1e-6
"""At least: many windows of noise cost jointly less than their sum at a greater delta than the sum of their deltas."""
HIGH_EPSILON = 8.0
"""From here on a report nearly reveals its value."""


def shuffled_answer(gained: Amplified, floor: int = 1) -> Answer:
    """Return the gain by shuffling for one report, replace-one; no gain below the minimum batch, `floor`."""
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


def shuffled_notes(gained: Amplified, floor: int = 1, epoch_epsilon: float | None = None) -> Iterator[str]:
    """Yield notes on the limits of an answer; `epoch_epsilon` is None if clients do not repeat their answers."""
    yield from delta_notes(gained.delta, gained.reports)
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
    if epoch_epsilon is not None:
        yield (
            "clients repeat their answers: the shuffled epsilon holds for the only batch of an epoch; with a second "
            f"batch, all batches together have the local epsilon {epoch_epsilon:g}"
        )


def noise_answer(noisy: Noisy, window: Part, windows: int) -> Answer:
    """Return the guarantee of counts with noise of the mixes, for a client that reports in some windows.

    `windows_epsilon_joint` is stated at `windows_joint_delta`, where a window's curve gains.
    """
    answer = {
        "epsilon": noisy.epsilon,
        "delta": noisy.delta,
        "local": noisy.local,
        "odds": math.exp(noisy.odds.epsilon),
        "count_deviation": noisy.count_deviation,
        "relation": noisy.relation,
    }
    if windows == 1:
        return answer
    total = basic([Loss(noisy.epsilon, noisy.delta)] * windows)
    delta = max(_JOINT_DELTA, total.delta)
    return answer | {
        "windows": windows,
        "windows_delta": delta,
        "windows_epsilon_sum": total.epsilon,
        "windows_epsilon_joint": min(total.epsilon, joint_epsilon([window] * windows, delta)),
    }


def delta_notes(delta: float, reports: int) -> Iterator[str]:
    """Yield a note on a delta that is too large."""
    if delta >= 1.0 / reports:
        yield (
            f"delta is {delta:g}, not below 1/reports, {1.0 / reports:.3g}: it allows that one whole report is revealed"
        )


def epsilon_notes(epsilon: float) -> Iterator[str]:
    """Yield a note on a local epsilon that is too large to protect anybody."""
    if epsilon > HIGH_EPSILON:
        yield (
            f"epsilon is {epsilon:g}, above {HIGH_EPSILON:g}: one report multiplies the odds between two values by up "
            f"to {math.exp(epsilon):,.0f}, so it nearly reveals its value, and protects nobody from the parties that "
            "open it"
        )


def windows_answer(gained: Amplified, windows: int) -> Answer:
    """Return the guarantee of one report in each of several windows: by sums, and jointly at the same delta.

    If the joint bound gains nothing or cannot be computed, as at a delta below 1e-30, both guarantees are the sum.

    Raises:
        ValueError: the sum of the deltas is not below 1.
    """
    total = basic([Loss(gained.epsilon, gained.delta)] * windows)
    if total.delta >= 1.0:
        raise ValueError(
            f"windows is {windows}: the sum of their deltas is {total.delta:g}, must be below 1: give a smaller delta"
        )
    return {
        "windows": windows,
        "windows_delta": total.delta,
        "windows_epsilon_sum": total.epsilon,
        "windows_epsilon_joint": smaller(total, [part_of(gained)] * windows).epsilon,
        "windows_local_epsilon": basic([Loss(gained.local, 0.0)] * windows).epsilon,
    }


def windows_notes(windows: int) -> Iterator[str]:
    """Yield the conditions under which the two bounds on several windows hold."""
    yield (
        f"the sum and the joint epsilon are for one client with one report in each of {windows:,} windows, and bound "
        "how well any two sequences of its values are told apart, if the shuffler is honest in all windows and every "
        "window has as many honest reports; the sum holds even if parameters of a window follow from earlier results"
    )
    yield (
        "the joint epsilon holds if each report is drawn afresh (clients without a memory), and if no parameter, no "
        "number of reports and no number of windows follows from a result; hushcount ledger set --fixed-parameters "
        "declares that"
    )


def discovery_answer(rule: KeepRule) -> Answer:
    """Return what a keep rule guarantees to one client, and how many clients it takes to reveal a value."""
    noisy, law = rule.name == "laplace", rule.count_law if rule.counts else None
    return {
        "rule": rule.name,
        "counts": rule.counts,
        "threshold": rule.laplace_threshold if noisy else None if law is None else law.threshold,
        "noise_scale": rule.noise_scale if noisy else None,
        "noise_mean": None if law is None else law.mean,
        "count_deviation": rule.count_deviation,
        "keep_probability": rule.keep_table(),
        "clients_for_even_chance": rule.count_for(0.5),
        "clients_for_95_percent": rule.count_for(0.95),
        "epsilon": rule.epsilon,
        "delta": rule.delta,
        "relation": rule.relation,
        "cap": rule.cap,
    }
