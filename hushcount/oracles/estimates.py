"""Estimates: counts in users with their errors, noise and collisions apart, and what may be claimed from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from hushcount.arrays import BoolArray, FloatArray
from hushcount.errors import UsageError
from hushcount.oracles.evidence import Evidence


@dataclass(frozen=True)
class Levels:
    """How sure a table of estimates must be of what it states.

    Attributes:
        confidence: in (0, 1): how often an interval holds the truth.
        false_positive_rate: in (0, 0.5): how often an item that nobody holds is called detected.
    """

    confidence: float = 0.95
    false_positive_rate: float = 0.001

    def __post_init__(self) -> None:
        _check_confidence(self.confidence)
        _check_rate(self.false_positive_rate)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Unbiased estimates, one an item, never clipped or rescaled: a rare item's count may well be below zero.

    Attributes:
        count: float64[c], users (reports) that hold the item.
        standard_error: float64[c], users: the noise of the clients' randomisation, at the estimated count.
        collision_error: float64[c], users: with a pool of fixed hash functions, the root mean square over pools of the
            bias by items that share cells with this one. More reports do not average it away. Zero where functions are
            fresh. It is a size, and no interval follows from it: few frequent items make a law that leans to the right.
        evidence: the law of the scores, which intervals and detection follow from.
    """

    count: FloatArray
    standard_error: FloatArray
    collision_error: FloatArray
    evidence: Evidence

    @property
    def error(self) -> FloatArray:
        """float64[c], users: standard error and collision error, added in squares."""
        return np.hypot(self.standard_error, self.collision_error)

    def repeated(self, times: int) -> Estimate:
        """Return the estimate of reports of which a client may have sent the same one so many times.

        The variance of a sum of l equal answers is `l^2`, not l times, that of one: that of all at most l times.
        """
        error = math.sqrt(times) * self.standard_error
        return replace(self, standard_error=error, evidence=self.evidence.repeated(times))

    def interval(self, confidence: float, looks: int = 1) -> tuple[FloatArray, FloatArray]:
        """Return (low, high) for each item, float64[c] each; they may lie outside 0..n, as the count may.

        With `looks` above 1 they hold the truth of so many items together with the confidence, however they depend.
        Bonferroni: each misses with probability `(1 - confidence)/looks` at most, so any with `1 - confidence`. The
        largest or smallest of many estimates, or any picked after a look, may be read by these.

        Args:
            confidence: in (0, 1).
            looks: of how many items these are some.

        Raises:
            UsageError: the confidence is out of its range.
        """
        _check_confidence(confidence)
        return self.evidence.limits((1.0 - confidence) / (2.0 * max(looks, 1)))

    def detected(self, false_positive_rate: float, looks: int = 1) -> BoolArray:
        """Return bool[c]: which scores are too large for items that nobody holds.

        Those of a p-value of `false_positive_rate/looks` at most: the probability of such a score or a larger one if
        nobody held the item. With `looks` above 1, of so many items any is detected falsely with that rate at most.

        Args:
            false_positive_rate: in (0, 0.5).
            looks: of how many items these are some.

        Raises:
            UsageError: the rate is out of its range.
        """
        _check_rate(false_positive_rate)
        return np.asarray(self.evidence.p_values() <= false_positive_rate / max(looks, 1))


def _check_confidence(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"confidence is {confidence}, must be in (0, 1)")


def _check_rate(rate: float) -> None:
    if not 0.0 < rate < 0.5:
        raise UsageError(f"false-positive rate is {rate}, must be in (0, 0.5)")
