"""The number of reports of an item over several windows, campaigns or epochs: the sum with its error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.oracles.encoders.pool import Pool
from hushcount.oracles.estimates import Levels, quantile
from hushcount.questions.collisions import pool_of, pool_variance
from hushcount.questions.counted import Counted, Group
from hushcount.questions.mover import Limited
from hushcount.questions.sides import Side, side_of

_LEAST = 1e-300


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
        low, high: float64[g], limits of each total alone.
        p_value: float64[g], of the hypothesis that no report holds an item of the group (`_p_values`).
        side: the results that were added up.
    """

    names: tuple[str, ...]
    reports: int
    confidence: float
    count: FloatArray
    standard_error: FloatArray
    collision_error: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    side: Side

    @property
    def error(self) -> FloatArray:
        """float64[g], users: both errors, added in squares."""
        return np.hypot(self.standard_error, self.collision_error)

    def together(self, looks: int) -> tuple[FloatArray, FloatArray]:
        """Return (low, high), float64[g] each: limits that hold for all of `looks` totals together (Bonferroni)."""
        return _limits(self.side, (1.0 - self.confidence) / (2.0 * looks), self.collision_error)


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
    count, noise, collisions = errors_of(side)
    low, high = _limits(side, tail, collisions)
    names = tuple(group.name for group in groups)
    return Totals(names, side.reports, confidence, count, noise, collisions, low, high, _p_values(side), side)


def errors_of(side: Side) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return count, standard error and collision error of one side's groups."""
    estimates = side.estimates
    if len(estimates) == 1:
        return estimates[0].count, estimates[0].standard_error, estimates[0].collision_error
    count = np.asarray(sum(one.count for one in estimates), dtype=np.float64)
    noise = np.sqrt(np.asarray(sum(one.standard_error**2 for one in estimates), dtype=np.float64))
    counts, sizes = zip(*side.counted, strict=True)
    return count, noise, np.sqrt(pool_variance([(one, 1.0) for one in side.results], counts, sizes))


def _limits(side: Side, tail: float, collisions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (low, high) of one side's groups; each limit misses the total with probability `tail`."""
    if len(side.estimates) == 1:
        return side.estimates[0].limits(tail)
    count = np.asarray(sum(one.count for one in side.estimates), dtype=np.float64)
    alone = Limited(count, *(side.reports * limit for limit in side.limits(tail, drawn=False)))
    both = alone.widened(quantile(tail) * collisions)
    return both.low, both.high


def _p_values(side: Side) -> FloatArray:
    """Return float64[g]: the p-value of each total.

    The windows of one campaign file are one tally, and have its exact p-value. The p-values of several files are
    combined by Fisher's method: `-2 sum of log p` of r independent p-values has at most the tail of chi-square with 2r
    degrees of freedom. Files with the same pool have the same collisions, so they are one term: the least p-value times
    their number (Bonferroni).

    Reference: Fisher 1932; docs/mathematics.md section 11.
    """
    # A server's library.
    from scipy.special import gammaincc

    terms: dict[Pool | int, list[FloatArray]] = {}
    for number, (result, estimate) in enumerate(zip(side.results, side.estimates, strict=True)):
        pool = pool_of(result.campaign.require_frequency())
        terms.setdefault(number if pool is None else pool, []).append(estimate.p_values())
    each = [np.minimum(len(same) * np.minimum.reduce(same), 1.0) for same in terms.values()]
    if len(each) == 1:
        return np.asarray(each[0], dtype=np.float64)
    logs = -sum(np.log(np.maximum(p, _LEAST)) for p in each)
    return np.asarray(gammaincc(float(len(each)), logs), dtype=np.float64)
