"""Means of numbers that clients reported as windows on a line, with exact errors.

The count of the line's highest point is the sum of all positions in the range, so `mean = low + (high - low) count/n`.
Numbers outside the range have the place of its nearest end, and reports without a number the place of the lower one.

Reference: docs/mathematics.md section 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushcount.campaigns.parts import NumberPart
from hushcount.errors import UsageError
from hushcount.oracles.estimates import Levels, quantile
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.tally import Tally
from hushcount.privacy.unit import repeats_of
from hushcount.questions.counted import Counted, shared_number


@dataclass(frozen=True)
class Measured:
    """An estimate with its standard error."""

    value: float
    error: float

    def interval(self, confidence: float, looks: int = 1) -> tuple[float, float]:
        """Return (low, high) by the normal law; with `looks` above 1, so many intervals hold together (Bonferroni)."""
        half = quantile((1.0 - Levels(confidence=confidence).confidence) / 2.0 / max(looks, 1)) * self.error
        return self.value - half, self.value + half


@dataclass(frozen=True)
class Mean:
    """The mean of the numbers of some reports.

    Attributes:
        reports: n.
        of_clients: the mean of the clients that reported, which may lie outside the range.
        of_all: the same mean, of all clients, if those that reported are drawn from them.
    """

    reports: int
    of_clients: Measured
    of_all: Measured

    def between(self, low: float, high: float) -> Mean:
        """Return the mean of numbers in a range from the mean of their places in 0..1."""
        of_clients, of_all = (
            Measured(low + (high - low) * place.value, (high - low) * place.error)
            for place in (self.of_clients, self.of_all)
        )
        return Mean(self.reports, of_clients, of_all)


def change_of(before: Mean, after: Mean) -> Measured:
    """Return how much the mean of all clients rose; both means are of other clients."""
    error = float(np.hypot(before.of_all.error, after.of_all.error))
    return Measured(after.of_all.value - before.of_all.value, error)


def range_of(results: Sequence[Counted]) -> NumberPart:
    """Return the range that all results have; UsageError: a campaign asks for no mean, or its range is another one."""
    otherwise = "are no numbers for a mean, or have different ranges: ask a campaign made with --number LOW:HIGH --mean"
    return shared_number(results, mean=True, otherwise=otherwise)


def mean_of(one: Counted) -> Mean:
    """Return the mean of the numbers that clients reported, in their unit; UsageError: no reports, or no numbers."""
    if not one.reports:
        raise UsageError(f"window {one.window} holds 0 reports, must hold at least 1: choose windows with reports")
    low, high = range_of([one]).bins.values
    repeats = repeats_of(one.campaign, one.tally.senders)
    return mean_in(one.campaign.require_frequency(), one.tally, repeats).between(low, high)


def mean_in(mechanism: Mechanism, tally: Tally, repeats: int = 1) -> Mean:
    """Return the mean place in 0..1 of the clients of a tally.

    Args:
        mechanism: a line.
        tally: of at least one report.
        repeats: l, how often a client may have sent the same answer.
    """
    line = mechanism.encoder.line
    if line is None:
        raise ValueError("the mechanism has no line, so its reports have no mean")
    n, estimate = tally.reports, mechanism.estimate(tally, np.array([0], dtype=np.uint64)).repeated(repeats)
    place, error = float(estimate.count[0]) / n, float(estimate.standard_error[0]) / n
    spread = float(tally.counts[0] @ (line.weights.mean - place) ** 2)
    return Mean(n, Measured(place, error), Measured(place, (repeats * spread) ** 0.5 / n))
