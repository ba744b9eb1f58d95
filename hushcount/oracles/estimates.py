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
        confidence: in (0, 1), the probability that an interval holds the truth.
        false_positive_rate: in (0, 0.5), the probability that an item that nobody holds is called detected.
    """

    confidence: float = 0.95
    false_positive_rate: float = 0.001

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence < 1.0:
            raise UsageError(f"confidence is {self.confidence}, must be in (0, 1)")
        if not 0.0 < self.false_positive_rate < 0.5:
            raise UsageError(f"false-positive rate is {self.false_positive_rate}, must be in (0, 0.5)")


@dataclass(frozen=True, eq=False)
class Estimate:
    """Unbiased estimates, one an item, never clipped or rescaled: a rare item's count may be below zero.

    Attributes:
        count: float64[c], users (reports) that hold the item.
        standard_error: float64[c], users: the noise of the clients' randomisation, at the estimated count.
        collision_error: float64[c], users: with a pool of fixed hash functions, the root mean square over pools of the
            bias by items that share cells with this one. More reports do not average it away. Zero with fresh
            functions. No interval follows from it: with few frequent items its law leans to the right.
        evidence: the law of the scores; intervals and detection follow from it.
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
        """Return the estimate if a client may have sent the same report so many times.

        The variance of a sum of l equal answers is `l^2` times that of one, so the variance grows by l at most.
        """
        error = math.sqrt(times) * self.standard_error
        return replace(self, standard_error=error, evidence=replace(self.evidence, repeats=times))

    def interval(self, confidence: float, looks: int = 1) -> tuple[FloatArray, FloatArray]:
        """Return (low, high) for each item, float64[c] each; they may lie outside 0..n, as the count may.

        With `looks` above 1 the intervals of so many items hold all their truths together with the confidence, however
        the items depend (Bonferroni: each misses with probability `(1 - confidence)/looks` at most). So they are valid
        for the largest or smallest of many estimates, or for any that is picked after a look.

        Args:
            confidence: in (0, 1); UsageError otherwise.
            looks: the number of items that the reader looks at.
        """
        missed = 1.0 - Levels(confidence=confidence).confidence
        return self.evidence.limits(missed / (2.0 * max(looks, 1)))

    def detected(self, false_positive_rate: float, looks: int = 1) -> BoolArray:
        """Return bool[c]: which scores are too large for items that nobody holds.

        Their p-value, the probability of such a score or a larger one if nobody held the item, is at most
        `false_positive_rate/looks`. With `looks` above 1 the rate is that of any false detection among so many items.

        Args:
            false_positive_rate: in (0, 0.5); UsageError otherwise.
            looks: the number of items that the reader looks at.
        """
        rate = Levels(false_positive_rate=false_positive_rate).false_positive_rate
        return np.asarray(self.evidence.p_values() <= rate / max(looks, 1))
