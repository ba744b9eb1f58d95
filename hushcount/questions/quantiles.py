"""Quantiles of numbers that were counted by bins, with intervals by test inversion.

The phi-quantile lies in the first bin t up to whose end at least a share phi of the numbers lies: with S_t numbers in
the bins up to t and R_t above, `T_t = (1 - phi) S_t - phi R_t` is at least 0 there, and below 0 in all bins before. A
bin is excluded if `T_t` is significantly below 0, or `T_(t-1)` significantly above it, each with half of the error. So
no density is estimated, and the interval of a quantile is careful, because it ends at edges.

Reference: docs/mathematics.md section 11.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushcount.arrays import FloatArray, UInt64Array
from hushcount.errors import UsageError
from hushcount.numbers import Bins
from hushcount.oracles.estimates import Levels, quantile
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.tally import Tally
from hushcount.questions.counted import Counted, Group, shared_number
from hushcount.questions.shares import score_variance
from hushcount.questions.sides import side_of
from hushcount.questions.totals import errors_of
from hushcount.strata import Where


@dataclass(frozen=True)
class Quantile:
    """The quantile of one share: it lies in the bin `at`, and with the confidence in one of `first` to `last`.

    Attributes:
        share: phi, in (0, 1).
        at: place of a bin, from 0.
        alone, together: first and last place of the interval of this quantile alone, and of the wider one that holds
            together with all others.
    """

    share: float
    at: int
    alone: tuple[int, int]
    together: tuple[int, int]


@dataclass(frozen=True)
class Change:
    """How much the quantile of one share rose: with the confidence by a number in an interval.

    Attributes:
        share: phi, in (0, 1).
        alone, together: the interval of this change alone, and the wider one that holds together with all others, in
            the unit of the numbers; an end may be infinite.
    """

    share: float
    alone: tuple[float, float]
    together: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Quantiles:
    """Quantiles of the numbers of some results.

    Attributes:
        reports: n, of all results, with those that hold no number.
        bins: of the campaign.
        found: one for each share.
        are_known: whether the number of numbers is significantly above 0 among all intervals. If it is not, as in a
            stratum that may be empty, there may be no quantile, and every interval is of all bins.
    """

    reports: int
    bins: Bins
    found: tuple[Quantile, ...]
    are_known: bool = True


def bins_of(results: Sequence[Counted]) -> Bins:
    """Return the bins that all results have; UsageError: a campaign has no numbers, or others."""
    otherwise = (
        "are not reported by bins, or by different bins: ask for windows with the same bins, or ask for the mean"
    )
    return shared_number(results, mean=False, otherwise=otherwise).bins


@dataclass(frozen=True, eq=False)
class Sums:
    """What quantiles are computed from: the numbers of some results, added up to and above the end of each bin.

    Attributes:
        reports: n, of all results, with those that hold no number.
        bins: of the campaign.
        below, above: float64[bins - 1], S and R of each bin but the last.
        total: number of numbers.
        variances: of S, of R, and of the total.
    """

    reports: int
    bins: Bins
    below: FloatArray
    above: FloatArray
    total: float
    variances: tuple[FloatArray, FloatArray, float]

    @classmethod
    def of(
        cls, reports: int, bins: Bins, count: FloatArray, standard_error: FloatArray, collision_error: FloatArray
    ) -> Sums:
        """Return the sums from their counts and errors: of the bins below each end, of those above it, and of all."""
        ends, variance = len(bins) - 1, standard_error**2 + collision_error**2
        variances = variance[:ends], variance[ends:-1], float(variance[-1])
        return cls(reports, bins, count[:ends], count[ends:-1], float(count[-1]), variances)


def sums_of(results: Sequence[Counted], where: Where = ()) -> Sums:
    """Return the sums of at least one result; the quantiles of any shares follow from them.

    Args:
        where: only reports with these coordinates on private axes count.

    Raises:
        UsageError: there are no reports, or the campaigns have no numbers, or different bins, or no such axis.
    """
    bins = bins_of(results)
    names, ends = bins.names, len(bins) - 1
    below = [Group(f"to {place}", names[: place + 1], where) for place in range(ends)]
    above = [Group(f"above {place}", names[place + 1 :], where) for place in range(ends)]
    side = side_of(results, [*below, *above, Group("all", names, where)])
    return Sums.of(side.reports, bins, *errors_of(side))


def sums_in(mechanism: Mechanism, tally: Tally, bins: Bins, items: UInt64Array) -> Sums:
    """Return the sums of the clients of one tally.

    Args:
        mechanism: with a dictionary.
        tally: of at least one report.
        items: uint64[bins], the item of each bin, the lowest first.
    """
    ends = range(1, len(items))
    found = mechanism.sums(tally, [*(items[:end] for end in ends), *(items[end:] for end in ends), items])
    return Sums.of(tally.reports, bins, found.count, found.standard_error, found.collision_error)


def quantiles(
    sums: Sums,
    shares: Sequence[float],
    confidence: float = 0.95,
    looks: int | None = None,
    sampled: bool = False,
) -> Quantiles:
    """Return the quantile of each share, of the numbers that clients reported; reports without a number are left out.

    Args:
        shares: of numbers that are at most the quantile, each in (0, 1).
        confidence: of each interval alone, in (0, 1), and of all intervals together (Bonferroni).
        looks: number of all intervals; by default one for each share.
        sampled: whether intervals are of all clients, of whom those that reported are a sample.

    Raises:
        UsageError: a share is out of range.
    """
    wrong = [share for share in shares if not 0.0 < share < 1.0]
    if wrong or not shares:
        raise UsageError(f"share of a quantile is {wrong[0] if wrong else 'missing'}, must be above 0 and below 1")
    tail = (1.0 - Levels(confidence=confidence).confidence) / 2.0
    levels = quantile(tail), quantile(tail / (looks or len(shares)))
    are_known, all_bins = sums.total > levels[1] * math.sqrt(sums.variances[2]), (0, len(sums.bins) - 1)
    found = []
    for share in shares:
        score = (1.0 - share) * sums.below - share * sums.above
        # At the quantile of all clients, T of a sample of N has the variance N phi (1 - phi).
        sample = share * (1.0 - share) * max(sums.total, 0.0) if sampled else 0.0
        error = np.sqrt(score_variance(np.float64(share), *sums.variances) + sample)
        # The isotonic regression of the scores reaches 0 where their running sum is least.
        at = int(np.argmin(np.concatenate([[0.0], np.cumsum(score)])))
        alone, together = (_interval(score, z * error, at) if are_known else all_bins for z in levels)
        found.append(Quantile(share, at, alone, together))
    return Quantiles(sums.reports, sums.bins, tuple(found), are_known)


def changes(
    before: Sums, after: Sums, shares: Sequence[float], confidence: float = 0.95, looks: int = 1
) -> tuple[Change, ...]:
    """Return how much the quantile of each share rose, of all clients, of whom those that reported are a sample.

    An interval goes from the least to the greatest difference of two numbers in the intervals of the quantiles, each
    with half of the error. So it is careful: clients of the two sides need not be independent.

    Args:
        before, after: of numbers of one unit.
        looks: number of all intervals that hold together.

    Raises:
        UsageError: as in `quantiles`.
    """
    half = (1.0 + confidence) / 2.0
    sides = [quantiles(sums, shares, half, looks, sampled=True) for sums in (before, after)]

    def rise(first: tuple[int, int], then: tuple[int, int]) -> tuple[float, float]:
        (old_low, old_high), (new_low, new_high) = before.bins.ends(*first), after.bins.ends(*then)
        low = -math.inf if new_low is None or old_high is None else new_low - old_high
        return low, math.inf if new_high is None or old_low is None else new_high - old_low

    pairs = zip(sides[0].found, sides[1].found, strict=True)
    return tuple(Change(old.share, rise(old.alone, new.alone), rise(old.together, new.together)) for old, new in pairs)


def _interval(score: FloatArray, half: FloatArray, at: int) -> tuple[int, int]:
    """Return the first and the last bin that are not excluded, around the bin `at`."""
    # No number is before the first bin, and all are at most in the last.
    fit = np.flatnonzero(np.append(score >= -half, True) & np.append(True, score < half))
    return (min(at, int(fit[0])), max(at, int(fit[-1]))) if len(fit) else (at, at)
