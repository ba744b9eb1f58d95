"""Two sides held against each other: the error of the difference, and the probability of it if nothing changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushcount.arrays import BoolArray, FloatArray
from hushcount.oracles.estimates import FEW
from hushcount.questions.collisions import pool_of, pool_variance
from hushcount.questions.counted import Counted, Group
from hushcount.questions.fisher import fisher
from hushcount.questions.mover import Limited, difference_limits, ratio_limits
from hushcount.questions.sides import Law, Side, alike, normal_quantile, side_of

_NOTHING = 1e-9
"""A share below which is rounding: that of all items together is 1 without any error."""


@dataclass(frozen=True, eq=False)
class Compared:
    """Two sides with the same groups, all of one item or all larger."""

    before: Side
    after: Side

    @cached_property
    def pooled(self) -> FloatArray:
        """float64[g], in 0..1: f-, the share if both sides have one, each weighed by its variance."""
        first, second = (1.0 / np.maximum(side.variance(), _NOTHING**2) for side in (self.before, self.after))
        return np.clip((first * self.before.share + second * self.after.share) / (first + second), 0.0, 1.0)

    @cached_property
    def collisions(self) -> FloatArray:
        """float64[g]: the variance of the difference by pools; of a shared pool, only what changed."""
        weighted = [(one, sign / side.reports) for sign, side in self._signed for one in side.results]
        counts = [one.count for _, side in self._signed for one in side.estimates]
        return pool_variance(weighted, counts, self.before.sizes)

    @property
    def error(self) -> FloatArray:
        """float64[g]: the standard error of the difference, at each side's own share."""
        return np.sqrt(self.before.variance() + self.after.variance() + self.collisions)

    @cached_property
    def null_error(self) -> FloatArray:
        """float64[g]: the same if both sides have the pooled share."""
        variance = self.before.variance(self.pooled) + self.after.variance(self.pooled)
        return np.sqrt(np.maximum(variance + self.collisions, _NOTHING**2))

    @cached_property
    def exact(self) -> BoolArray:
        """bool[g]: where few reports are expected to support a group, or not to, by the same law on both sides."""
        laws = self._laws
        if laws is None:
            return np.zeros(len(self.before.sizes), dtype=np.bool_)
        pi = (laws[0].supports + laws[1].supports) / (self.before.reports + self.after.reports)
        fewer = min(self.before.reports, self.after.reports) / _repeats(laws)
        return np.asarray(fewer * np.minimum(pi, 1.0 - pi) < FEW, dtype=np.bool_)

    @cached_property
    def p_value(self) -> FloatArray:
        """float64[g]: two-sided; see `changes`."""
        # A server's library.
        from scipy.special import ndtr

        difference = np.abs(self.after.share - self.before.share)
        normal = 2.0 * ndtr(-difference / self.null_error)
        laws, few = self._laws, self.exact
        if laws is None or not few.any():
            return normal
        repeats = _repeats(laws)
        first, second = (law.supports[few] // repeats for law in laws)
        exact = fisher(first, second, *(-(-side.reports // repeats) for side in (self.before, self.after)))
        # Fisher's test knows nothing of what the rest's changes do to a shared pool.
        normal[few] = np.where(self.collisions[few] > 0.0, np.maximum(exact, normal[few]), exact)
        return normal

    def difference(self, tail: float) -> tuple[FloatArray, FloatArray]:
        """Return (low, high) of the difference, each passed with probability `tail`."""
        before, after = (_limited(side, tail) for side in (self.before, self.after))
        return difference_limits(before, after.widened(normal_quantile(tail) * np.sqrt(self.collisions)))

    def ratio(self, tail: float) -> tuple[FloatArray, FloatArray]:
        """Return (low, high) of the ratio.

        Each side has all its collisions, also in a shared pool: they cancel in a difference, not in
        `after - r before`; no r has more than both together.
        """
        z, limited = normal_quantile(tail), []
        for side in (self.before, self.after):
            weighted = [(one, 1.0 / side.reports) for one in side.results]
            counts = [one.count for one in side.estimates]
            limited.append(_limited(side, tail).widened(z * np.sqrt(pool_variance(weighted, counts, side.sizes))))
        return ratio_limits(*limited)

    @property
    def _signed(self) -> tuple[tuple[float, Side], tuple[float, Side]]:
        return (-1.0, self.before), (1.0, self.after)

    @cached_property
    def _laws(self) -> tuple[Law, Law] | None:
        """The laws of both sides, if they are one: no pool, or one and the same."""
        first, second = self.before.law, self.after.law
        if first is None or second is None or not alike(first, second):
            return None
        results = (*self.before.results, *self.after.results)
        if len({pool_of(one.campaign.require_frequency()) for one in results}) > 1:
            return None
        return first, second


def compared(before: Sequence[Counted], after: Sequence[Counted], groups: Sequence[Group]) -> Compared:
    """Return both sides with what they say of the groups; UsageError as `side_of`."""
    return Compared(side_of(before, groups), side_of(after, groups))


def _limited(side: Side, tail: float) -> Limited:
    return Limited(side.share, *side.limits(tail))


def _repeats(laws: tuple[Law, Law]) -> int:
    return max(law.repeats for law in laws)
