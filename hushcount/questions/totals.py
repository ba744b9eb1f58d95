"""The number of reports of an item over several windows, campaigns or epochs: the sum with its error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.oracles.estimates import Levels, quantile
from hushcount.questions.collisions import pool_variance
from hushcount.questions.counted import Counted, Group
from hushcount.questions.mover import Limited
from hushcount.questions.sides import Side, side_of


@dataclass(frozen=True, eq=False)
class Totals:
    """The total of each group; arrays by group.

    Attributes:
        names: of the groups.
        reports: n, of all results.
        confidence: of each interval alone.
        count: float64[g], users: the number of reports about an item of the group; a client that reports in each of 30
            windows counts 30 times.
        standard_error: float64[g], users: the noise of the responses. If clients may repeat answers in windows of one
            epoch, this error is computed as if all clients repeated all answers.
        collision_error: float64[g], users: from pools; windows of one pool have the same collisions, so this error adds
            up over windows.
        low, high: float64[g], limits.
    """

    names: tuple[str, ...]
    reports: int
    confidence: float
    count: FloatArray
    standard_error: FloatArray
    collision_error: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def error(self) -> FloatArray:
        """float64[g], users: both errors, added in squares."""
        return np.hypot(self.standard_error, self.collision_error)


def total(results: Sequence[Counted], groups: Sequence[Group], confidence: float = 0.95) -> Totals:
    """Return the sum of each group's counts over results.

    The windows of one campaign file are estimated from the sum of their tallies, like one result. Results of different
    files (epochs, campaigns) are independent of each other, except for the collisions of pools with the same functions.

    Args:
        results: at least one; each report in one of them only.
        groups: at least one; of items that every result counted.
        confidence: of each interval alone, in (0, 1).

    Raises:
        UsageError: there are no reports, or a result did not count an item.
    """
    tail = (1.0 - Levels(confidence=confidence).confidence) / 2.0
    side = side_of(results, groups)
    return Totals(tuple(group.name for group in groups), side.reports, confidence, *_totals(side, tail))


def _totals(side: Side, tail: float) -> tuple[FloatArray, ...]:
    """Return count, standard error, collision error, low and high of one side's groups."""
    estimates = side.estimates
    if len(estimates) == 1:
        one = estimates[0]
        return one.count, one.standard_error, one.collision_error, *one.limits(tail)
    count = np.asarray(sum(one.count for one in estimates), dtype=np.float64)
    noise = np.sqrt(np.asarray(sum(one.standard_error**2 for one in estimates), dtype=np.float64))
    counts, sizes = zip(*side.counted, strict=True)
    collisions = np.sqrt(pool_variance([(one, 1.0) for one in side.results], counts, sizes))
    alone = Limited(count, *(side.reports * limit for limit in side.limits(tail, drawn=False)))
    both = alone.widened(quantile(tail) * collisions)
    return count, noise, collisions, both.low, both.high
