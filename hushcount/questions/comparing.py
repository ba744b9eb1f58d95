"""Compare two sides: the error of the difference, and its p-value if nothing changed.

For few reports the p-value comes from Fisher's exact test of two proportions, two-sided by likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushcount.arrays import BoolArray, FloatArray, IntArray
from hushcount.oracles.estimates import quantile
from hushcount.questions.collisions import pool_of, pool_variance
from hushcount.questions.counted import Counted, Group
from hushcount.questions.laws import added
from hushcount.questions.mover import Limited, difference_limits, ratio_limits
from hushcount.questions.sides import Side, side_of

_FAR = 40.0
"""Outcomes further from the mean, in standard deviations, are not counted: their probability is below 1e-300."""
_ALIKE = 1e-9
"""If the logarithms of two probabilities differ by at most this, only rounding tells the outcomes apart."""


def fisher(before: IntArray, after: IntArray, n_before: IntArray, n_after: IntArray) -> FloatArray:
    """Return float64[g]: the p-value of each pair of counts if both come from trials of one probability.

    Given the sum of both counts, the second count is hypergeometric for any such probability. The p-value is the
    probability of all outcomes that are no likelier than the observed one. The p-value is exact: if nothing changed,
    the p-value is at most alpha with probability alpha at most. The law is summed from ratios of neighbouring outcomes,
    and each ratio is exact up to one rounding. Logarithms of factorials would leave only three digits at 10^12 reports.

    Args:
        before, after: int64[g], successes, in 0..n_before and 0..n_after.
        n_before, n_after: int64[g], trials, at least 1 each.

    Reference: Fisher 1935; docs/mathematics.md section 11.
    """
    asked = np.stack([before, after, n_before, n_after])
    different, places = np.unique(asked, axis=1, return_inverse=True)
    found = [_p_value(*one) for one in different.T.tolist()]
    return np.array(found, dtype=np.float64)[places.reshape(-1)]


def _p_value(before: int, after: int, n_before: int, n_after: int) -> float:
    total = before + after
    trials = n_before + n_after
    mean = total * n_after / trials
    spread = math.sqrt(mean * (1.0 - n_after / trials) * (trials - total) / max(1, trials - 1))
    reach = _FAR * spread + _FAR
    low = max(0, total - n_before, math.floor(mean - reach))
    high = min(total, n_after, math.ceil(mean + reach))
    if not low <= after <= high:
        return 0.0
    x = np.arange(low, high, dtype=np.float64)
    # log P(x+1)/P(x). Whole numbers are subtracted first, so that no digits are lost.
    ratios = np.log((total - x) / (x + 1.0)) + np.log((n_after - x) / ((n_before - total) + x + 1.0))
    logs = np.concatenate([[0.0], np.cumsum(ratios)])
    logs -= logs.max()
    weights = np.exp(logs)
    return min(1.0, float(weights[logs <= logs[after - low] + _ALIKE].sum() / weights.sum()))


FEW = 1000.0
"""Below this number of expected supports Fisher's test replaces the normal law."""
_NOTHING = 1e-9
"""An error of a share below this is only rounding: the share of all items together is 1 without any error."""


@dataclass(frozen=True, eq=False)
class Compared:
    """Two sides with the same groups."""

    before: Side
    after: Side

    @cached_property
    def pooled(self) -> FloatArray:
        """float64[g], in 0..1: f-, the common share of both sides if nothing changed; weights are inverse variances."""
        first, second = (1.0 / np.maximum(side.variance(), _NOTHING**2) for side in (self.before, self.after))
        return np.clip((first * self.before.share + second * self.after.share) / (first + second), 0.0, 1.0)

    @cached_property
    def collisions(self) -> FloatArray:
        """float64[g]: the variance of the difference from collisions; a shared pool adds only by changed counts."""
        weighted = [(one, sign / side.reports) for sign, side in self._signed for one in side.results]
        counts, sizes = zip(*self.before.counted, *self.after.counted, strict=True)
        return pool_variance(weighted, counts, sizes)

    @property
    def error(self) -> FloatArray:
        """float64[g]: the standard error of the difference, at each side's own share."""
        return np.sqrt(self.before.variance() + self.after.variance() + self.collisions)

    @cached_property
    def null_error(self) -> FloatArray:
        """float64[g]: the standard error of the difference if both sides have the pooled share."""
        variance = self.before.variance(self.pooled) + self.after.variance(self.pooled)
        both = self._spread * (1.0 / self.before.answers + 1.0 / self.after.answers)
        variance = np.where(self._alike, both, variance)
        return np.sqrt(np.maximum(variance + self.collisions, _NOTHING**2))

    @cached_property
    def exact(self) -> BoolArray:
        """bool[g]: whether both sides have one law, and few reports are expected to support a group, or few not to."""
        mean, each, trials = self._matching
        fewer = min(self.before.answers, self.after.answers)
        return self._alike & (fewer * np.minimum(mean / each, trials - mean / each) < FEW) & (self._spread > 0.0)

    @cached_property
    def p_value(self) -> FloatArray:
        """float64[g]: two-sided; see `changes`."""
        # A server's library.
        from scipy.special import ndtr

        difference = np.abs(self.after.share - self.before.share)
        found = np.asarray(2.0 * ndtr(-difference / self.null_error), dtype=np.float64)
        few = self.exact
        if not few.any():
            return found
        exact = self._fisher(few)
        # Fisher's test ignores collisions, such as those from other items' changes in a shared pool.
        found[few] = np.where(self.collisions[few] > 0.0, np.maximum(exact, found[few]), exact)
        return found

    def largest_p_value(self) -> FloatArray:
        """Return float64[g]: the larger of `p_value` and Fisher's p-value, with any number of supports.

        Groups without a common law of both sides get `p_value`. Far out in the tails the normal law's p-value is too
        small. For example, at 1,000 expected supports the normal law gives 1e-7 for an event of probability 1.1e-7. Use
        this method to promise a rate of false alarms for many items. The method takes about a millisecond for each
        group.
        """
        largest, chosen = self.p_value.copy(), self._alike & (self._spread > 0.0)
        if chosen.any():
            largest[chosen] = np.maximum(largest[chosen], self._fisher(chosen))
        return largest

    def _fisher(self, chosen: BoolArray) -> FloatArray:
        """Return Fisher's p-values of the chosen groups."""
        _, each, trials = self._matching
        seen, tried = [], []
        for side in (self.before, self.after):
            scores = np.floor(side.law.supports[chosen] / (side.law.repeats * each[chosen]) + _NOTHING)
            seen.append(scores.astype(np.int64))
            tried.append(np.maximum(np.ceil(side.answers * trials[chosen] - _NOTHING), scores).astype(np.int64))
        return fisher(*seen, *tried)

    def difference(self, tail: float) -> tuple[FloatArray, FloatArray]:
        """Return (low, high) of the difference; each limit misses the difference with probability `tail`."""
        before, after = (_limited(side, tail) for side in (self.before, self.after))
        return difference_limits(before, after.widened(quantile(tail) * np.sqrt(self.collisions)))

    def ratio(self, tail: float) -> tuple[FloatArray, FloatArray]:
        """Return (low, high) of the ratio.

        Each side is widened by all its collisions, also in a shared pool: shared bias cancels in `after - before`, but
        not in `after - r before`. For every r the collision error of `after - r before` is at most the error that both
        widened sides have together.
        """
        z, limited = quantile(tail), []
        for side in (self.before, self.after):
            weighted = [(one, 1.0 / side.reports) for one in side.results]
            counts, sizes = zip(*side.counted, strict=True)
            limited.append(_limited(side, tail).widened(z * np.sqrt(pool_variance(weighted, counts, sizes))))
        return ratio_limits(*limited)

    @property
    def _signed(self) -> tuple[tuple[float, Side], tuple[float, Side]]:
        return (-1.0, self.before), (1.0, self.after)

    @cached_property
    def _alike(self) -> BoolArray:
        """bool[g]: whether scores of both sides have one law, and both sides have no pool or the same pool."""
        first, second = self.before.law, self.after.law
        results = (*self.before.results, *self.after.results)
        pools = {pool_of(one.campaign.require_frequency()) for one in results}
        return first.there & second.there & first.is_like(second) & (len(pools) == 1)

    @cached_property
    def _spread(self) -> FloatArray:
        """float64[g]: the variance that one answer adds to a count, if both sides have the pooled share.

        Noise is linear in the share, so the mean noise of both sides is the noise at the pooled share.
        """
        sides = (self.before, self.after)
        parts = [side.reports * side.answers * side.variance(self.pooled) for side in sides]
        return np.asarray(sum(parts) / sum(side.reports for side in sides), dtype=np.float64)

    @cached_property
    def _matching(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(mean, h, M/n) of `Law.matching`, if both sides have the pooled share."""
        reports = [self.before.reports, self.after.reports]
        return added([self.before.law, self.after.law], reports).matching(self.pooled)


def compared(before: Sequence[Counted], after: Sequence[Counted], groups: Sequence[Group]) -> Compared:
    """Return both sides with their estimates of the groups; UsageError as in `side_of`."""
    return Compared(side_of(before, groups), side_of(after, groups))


def _limited(side: Side, tail: float) -> Limited:
    return Limited(side.share, *side.limits(tail))
