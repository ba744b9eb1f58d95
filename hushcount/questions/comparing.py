"""Compare two sides: the error of the difference, and its p-value if nothing changed.

For few reports the p-value comes from Fisher's exact test of two proportions, two-sided by likelihood; with noise of
the mixes from the law of their dummies, because Fisher's test knows no such noise (docs/adr/0061).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushcount.arrays import BoolArray, FloatArray, IntArray
from hushcount.maths.noise_sums import NoiseSum, WeightedSum
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
"""Below this number of expected supports Fisher's test, or the law of the dummies, replaces the normal law."""
_GRADES = 20.0
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
        """bool[g]: whether few reports are expected to support a group, or few not to, and the law of scores is known.

        With noise of the mixes a report supports the group that its client holds.
        """
        fewer = min(self.before.answers, self.after.answers)
        return self._tested | (self._noisy & (fewer * np.minimum(self.pooled, 1.0 - self.pooled) < FEW))

    @cached_property
    def p_value(self) -> FloatArray:
        """float64[g]: two-sided; see `changes`."""
        # A server's library.
        from scipy.special import ndtr

        difference = np.abs(self.after.share - self.before.share)
        found = np.asarray(2.0 * ndtr(-difference / self.null_error), dtype=np.float64)
        if (few := self._tested).any():
            exact = self._fisher(few)
            # Fisher's test ignores collisions, such as those from other items' changes in a shared pool.
            found[few] = np.where(self.collisions[few] > 0.0, np.maximum(exact, found[few]), exact)
        if (few := self.exact & self._noisy).any():
            found[few] = self._by_noise(few)
        return found

    def largest_p_value(self) -> FloatArray:
        """Return float64[g]: the larger of `p_value` and the exact p-value, with any number of supports.

        Groups without a common law of both sides get `p_value`. Far out in the tails the normal law's p-value is too
        small. For example, at 1,000 expected supports the normal law gives 1e-7 for an event of probability 1.1e-7. Use
        this method to promise a rate of false alarms for many items. The method takes about a millisecond for each
        group.
        """
        largest, chosen = self.p_value.copy(), self._alike & (self._spread > 0.0)
        if chosen.any():
            largest[chosen] = np.maximum(largest[chosen], self._fisher(chosen))
        if self._noisy.any():
            largest[self._noisy] = np.maximum(largest[self._noisy], self._by_noise(self._noisy))
        return largest

    def _by_noise(self, chosen: BoolArray) -> FloatArray:
        """Return the p-values of the chosen groups by the law of all dummies and of both samples of clients.

        Both samples have the pooled share plus one standard error, since the share itself is not known. It is rounded
        towards 1/2, so that groups of nearly one share have one law.
        """
        difference = self.after.share - self.before.share
        error = 1.0 / np.sqrt(sum(1.0 / np.maximum(side.variance(), _NOTHING**2) for _, side in self._signed))
        shares = graded(self.pooled, error)
        alike: dict[tuple[object, ...], list[int]] = {}
        for place in np.flatnonzero(chosen).tolist():
            alike.setdefault((self.before.errors[place], self.after.errors[place], shares[place]), []).append(place)
        found = np.ones(len(shares))
        for places in alike.values():
            found[places] = self._noise(places[0], float(shares[places[0]])).two_sided(difference[places])
        return found[chosen]

    def _noise(self, place: int, share: float) -> WeightedSum:
        """Return the law of a group's difference, if the clients of both sides are samples of one share."""
        parts: list[tuple[float, NoiseSum]] = []
        for sign, side in self._signed:
            parts += [(sign * weight, law) for weight, law in side.errors[place]]
            parts.append((sign / side.reports, sampled(side.reports, share)))
        return WeightedSum.of(parts)

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

    @cached_property
    def _tested(self) -> BoolArray:
        """bool[g]: whether Fisher's test is for a group: both sides have one law, and few supports, or few others."""
        mean, each, trials = self._matching
        fewer = min(self.before.answers, self.after.answers)
        return self._alike & (fewer * np.minimum(mean / each, trials - mean / each) < FEW) & (self._spread > 0.0)

    @cached_property
    def _noisy(self) -> BoolArray:
        """bool[g]: whether both sides have noise of the mixes."""
        return np.array([bool(was and now) for was, now in zip(self.before.errors, self.after.errors, strict=True)])

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


def graded(share: FloatArray, error: FloatArray) -> FloatArray:
    """Return float64[g]: each share moved towards 1/2 by its error, and to the next of few shares there."""
    rarer = np.minimum(np.minimum(share, 1.0 - share) + error, 0.5)
    rarer = np.minimum(np.exp(np.ceil(_GRADES * np.log(rarer)) / _GRADES), 0.5)
    return np.where(share > 0.5, 1.0 - rarer, rarer)


def sampled(clients: int, share: float) -> NoiseSum:
    """Return the law of the number of clients that hold an item, but for chances below 1e-30."""
    # A server's library.
    from scipy.stats import binom

    mean, reach = clients * share, 12.0 * math.sqrt(clients * share * (1.0 - share)) + _FAR
    numbers = np.arange(max(0, math.floor(mean - reach)), min(clients, math.ceil(mean + reach)) + 1)
    return NoiseSum(int(numbers[0]), np.asarray(binom.pmf(numbers, clients, share), dtype=np.float64))


def compared(before: Sequence[Counted], after: Sequence[Counted], groups: Sequence[Group]) -> Compared:
    """Return both sides with their estimates of the groups; UsageError as in `side_of`."""
    return Compared(side_of(before, groups), side_of(after, groups))


def _limited(side: Side, tail: float) -> Limited:
    return Limited(side.share, *side.limits(tail))
