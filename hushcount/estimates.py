"""Estimates: counts in users with their errors, noise and collisions apart, and what may be claimed from them."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from hushcount.errors import UsageError

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


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

    Intervals and detection take the normal law for a count's, a sum of independent reports. With few reports that is
    an approximation: while few of them support an item by chance, its count's law leans to the right and detection is
    too bold, at a rate of 0.001 by a factor of up to 2 where 30 reports do, 1.5 where 100 do, 1.15 where 1,000 do. A
    collision error is the root mean square over pools, of a law that leans to the right however many reports arrive:
    where it is as large as the noise and made by some twenty items, the factor is 2 to 4; by fewer, more.

    Attributes:
        count: float64[c], users (reports) that hold the item.
        standard_error: float64[c], users: the noise of the clients' randomisation, at the estimated count.
        collision_error: float64[c], users: with a pool of fixed hash functions, the size of the bias by items that
            share cells with this one. More reports do not average it away. Zero where functions are fresh.
        null_error: float64[c], users: the noise of the item if nobody held it.
    """

    count: FloatArray
    standard_error: FloatArray
    collision_error: FloatArray
    null_error: FloatArray

    @property
    def error(self) -> FloatArray:
        """float64[c], users: standard error and collision error, added in squares."""
        return np.hypot(self.standard_error, self.collision_error)

    def interval(self, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return (low, high) for each item alone: `count -+ z error`, z the normal quantile at `(1 + confidence)/2`.

        Args:
            confidence: in (0, 1), of one item's interval; that of all items together is lower.

        Raises:
            UsageError: the confidence is out of its range.
        """
        return self._interval(confidence, 1)

    def simultaneous_interval(self, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return (low, high) that hold the truth of all c items together with the confidence, however they depend.

        Bonferroni: each misses with probability `(1 - confidence)/c`, so any of them with `1 - confidence` at most.
        The largest or smallest of many estimates, or any picked after a look, may be read by these.

        Args:
            confidence: in (0, 1), of all items of this estimate together.

        Raises:
            UsageError: the confidence is out of its range.
        """
        return self._interval(confidence, max(len(self.count), 1))

    def detected(self, false_positive_rate: float) -> BoolArray:
        """Return bool[c]: which counts are too large for items that nobody holds.

        `count > z hypot(null_error, collision_error)`, z the normal quantile at `1 - false_positive_rate`.

        Args:
            false_positive_rate: in (0, 0.5), of each item that nobody holds: of c such items c times as many are
                called detected on average.

        Raises:
            UsageError: the rate is out of its range.
        """
        _check_rate(false_positive_rate)
        return np.asarray(self.count > _upper(false_positive_rate) * np.hypot(self.null_error, self.collision_error))

    def _interval(self, confidence: float, items: int) -> tuple[FloatArray, FloatArray]:
        _check_confidence(confidence)
        half = _upper((1.0 - confidence) / (2.0 * items)) * self.error
        return self.count - half, self.count + half


def _upper(tail: float) -> float:
    """Return the normal quantile that is exceeded with probability `tail`, however small."""
    return -NormalDist().inv_cdf(tail)


def _check_confidence(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"confidence is {confidence}, must be in (0, 1)")


def _check_rate(rate: float) -> None:
    if not 0.0 < rate < 0.5:
        raise UsageError(f"false-positive rate is {rate}, must be in (0, 0.5)")
