"""Estimates: counts in users with their errors, p-values, and limits for the true counts.

A p-value says how likely a score is if nobody holds the item. Each law of scores has a class: sums of supporting
reports, signed scores within blocks, and cells of a pool that items share. P-values are exact, or too large rather than
too small (docs/mathematics.md section 9).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np

from hushcount.arrays import BoolArray, FloatArray, IntArray
from hushcount.errors import UsageError
from hushcount.maths.support_limits import SupportCounts, at_least
from hushcount.oracles.random_cells import CellSum


@dataclass(frozen=True)
class Levels:
    """The confidence and the error rate of a table of estimates.

    Attributes:
        confidence: in (0, 1), the probability that an interval contains the true count.
        false_positive_rate: in (0, 0.5), the probability that an item is called detected although nobody holds it.
    """

    confidence: float = 0.95
    false_positive_rate: float = 0.001

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence < 1.0:
            raise UsageError(f"confidence is {self.confidence}, must be in (0, 1)")
        if not 0.0 < self.false_positive_rate < 0.5:
            raise UsageError(f"false-positive rate is {self.false_positive_rate}, must be in (0, 0.5)")


@dataclass(frozen=True, eq=False)
class Estimate(ABC):
    """Unbiased estimates, one for each item, never clipped or rescaled: a rare item's count may be below zero.

    Attributes:
        count: float64[c], users (reports) that hold the item.
        standard_error: float64[c], users: the noise of clients, at the estimated count, or of the mixes.
        collision_error: float64[c], users: with a pool of fixed hash functions, the root mean square over pools of the
            bias from items that share cells with this item. More reports do not make this error smaller relative to the
            number of reports. Zero with fresh functions. No interval follows from the collision error alone, because
            its law is skewed to the right if few items are frequent.
        repeats: l, how often a client may have sent the same answer; 1 if each report is drawn afresh. The laws assume
            that every client sent each answer l times: then n/l answers are independent, and each counts as l users.
    """

    count: FloatArray
    standard_error: FloatArray
    collision_error: FloatArray
    repeats: int = field(default=1, kw_only=True)

    @property
    def error(self) -> FloatArray:
        """float64[c], users: standard error and collision error, added in squares."""
        return np.hypot(self.standard_error, self.collision_error)

    def repeated(self, times: int) -> Estimate:
        """Return the estimate if a client may have sent the same report `times` times.

        The sum of l equal answers has `l^2` times the variance of one answer, so a count has at most l times the
        variance.
        """
        return replace(self, standard_error=math.sqrt(times) * self.standard_error, repeats=times)

    def interval(self, confidence: float, looks: int = 1) -> tuple[FloatArray, FloatArray]:
        """Return (low, high) for each item, float64[c] each; the limits may lie outside 0..n, like the count.

        With `looks` above 1 the intervals of so many items contain all true counts together with the confidence, for
        any dependence of the items (Bonferroni: each misses with probability `(1 - confidence)/looks` at most). So the
        intervals are valid for the largest or smallest of many estimates, and for any estimate that a reader selects
        after seeing all of them.

        Args:
            confidence: in (0, 1); UsageError otherwise.
            looks: the number of items that the reader looks at.
        """
        missed = 1.0 - Levels(confidence=confidence).confidence
        return self.limits(missed / (2.0 * max(looks, 1)))

    def detected(self, false_positive_rate: float, looks: int = 1) -> BoolArray:
        """Return bool[c]: which scores are too large for items that nobody holds.

        The p-value of such a score, the probability of this score or a larger one if nobody held the item, is at most
        `false_positive_rate/looks`. With `looks` above 1, the rate bounds the probability of any false detection among
        so many items.

        Args:
            false_positive_rate: in (0, 0.5); UsageError otherwise.
            looks: the number of items that the reader looks at.
        """
        rate = Levels(false_positive_rate=false_positive_rate).false_positive_rate
        return np.asarray(self.p_values() <= rate / max(looks, 1))

    @abstractmethod
    def p_values(self) -> FloatArray:
        """Return float64[c]: the probability of this score or a larger one if nobody held the item, or a bound."""

    def p_values_of_all(self, reports: int) -> FloatArray:
        """Return float64[c]: the probability of this score or a smaller one if all `reports` held the item."""
        from scipy.special import ndtr

        missing = np.maximum(reports - self.count, 0.0)
        return np.asarray(ndtr(-missing / np.maximum(self.error, 1e-300)), dtype=np.float64)

    @abstractmethod
    def limits(self, tail: float) -> tuple[FloatArray, FloatArray]:
        """Return (low, high), float64[c] each, users: each limit misses the true count with probability `tail`."""

    def _normal_limits(self, tail: float) -> tuple[FloatArray, FloatArray]:
        half = quantile(tail) * self.standard_error
        return self.count - half, self.count + half


@dataclass(frozen=True, eq=False)
class Supports(Estimate):
    """Independent reports that support an item or not: C, the number of supports, is Bin(F, p*) + Bin(n - F, q*).

    The p-value is the binomial tail of Bin(n, q*). Limits are for F, the number of reporting clients that hold the
    item. If F were the low limit, a C as large as the observed one or larger would have probability `tail`; if F were
    the high limit, a C as small as the observed one or smaller would have probability `tail` (`SupportCounts`). If the
    clients are a sample of a population, the limits contain the population's share less often, above all for a frequent
    item, because sampling adds `n f(1-f)` to the variance.

    Attributes:
        supports: int64[c], C.
        reports: n.
        own, other: p*, q*.
    """

    supports: IntArray
    reports: int
    own: float
    other: float

    def p_values(self) -> FloatArray:
        answers = -(-self.reports // self.repeats)
        return binomial_tail(self.supports // self.repeats, np.int64(answers), self.other)

    def p_values_of_all(self, reports: int) -> FloatArray:
        answers = -(-reports // self.repeats)
        return binomial_tail((reports - self.supports) // self.repeats, np.int64(answers), 1.0 - self.own)

    def limits(self, tail: float) -> tuple[FloatArray, FloatArray]:
        law = SupportCounts.of_items(self.reports / self.repeats, self.own, self.other)
        low, high = law.limits(self.supports / self.repeats, tail)
        return self.repeats * low, self.repeats * high


@dataclass(frozen=True, eq=False)
class Signs(Estimate):
    """Reports that named an item's block, and support or oppose the item.

    If nobody holds the item, each report is as likely to support as to oppose the item, whatever item its client holds.
    So the p-value is exactly the tail of Bin(named, 1/2). Scores are symmetric, and limits are `count -+ z error`.

    Attributes:
        scores: int64[c], supporting minus opposing reports.
        named: int64[c], supporting plus opposing reports.
    """

    scores: IntArray
    named: IntArray

    def p_values(self) -> FloatArray:
        named = -(-self.named // self.repeats)
        return binomial_tail((self.named + self.scores) // 2 // self.repeats, named, 0.5)

    def limits(self, tail: float) -> tuple[FloatArray, FloatArray]:
        return self._normal_limits(tail)


@dataclass(frozen=True, eq=False)
class SharedCells(Estimate):
    """Scores of a pool, at cells that items share: noise and collisions have one law, which follows from the tally.

    The p-value is the tail of `CellSum`, over the draw of the functions. Limits combine the law of the cells without
    the item and the noise of the item's own reports, each at its limit ("MOVER": Zou and Donner 2008). If a pool has
    too few cells for so small a tail, the limits are 0 and n, or the count if the count is outside 0..n.

    Attributes:
        scores: int64[c].
        reports: n.
        law: of the score of an item that nobody holds.
        frequent: for each frequent item, by its index, the law of the score without the item's own cells.
        gain: p* - q*.
        own: p, the probability that a report supports its own cell.
        widening: `sqrt(m/(m-1))`: the cells of a row share the noise of the row's mean.
    """

    scores: IntArray
    reports: int
    law: CellSum
    frequent: dict[int, CellSum]
    gain: float
    own: float
    widening: float

    def p_values(self) -> FloatArray:
        return self.law.at_least(self.scores)

    def limits(self, tail: float) -> tuple[FloatArray, FloatArray]:
        if tail < self.law.least:
            return np.minimum(self.count, 0.0), np.maximum(self.count, self.reports)
        below, above = (np.full(len(self.count), each) for each in self.law.deviations(tail))
        seen = self.p_values() <= tail
        for place, law in self.frequent.items():
            # If the score may come from a collision with a frequent item alone, the law must include the frequent item.
            if seen[place]:
                below[place], above[place] = law.deviations(tail)
        scale = self.widening / self.gain
        # The item's own F reports add the variance F p(1-p)/gain^2; F is the limit itself, as in Wilson's interval.
        square = self.repeats * quantile(tail) ** 2 * self.own * (1.0 - self.own) / self.gain**2
        low = self.count - _root((scale * above) ** 2, square, self.count, -1.0)
        return low, self.count + _root((scale * below) ** 2, square, self.count, 1.0)


def binomial_tail(successes: IntArray, trials: IntArray | np.int64, chance: float) -> FloatArray:
    """Return `P(Bin(trials, chance) >= successes)`, float64 of their common shape; 1 if successes is 0 or below."""
    trials = np.broadcast_to(trials, np.shape(successes))
    pairs, places = np.unique(np.stack([successes, trials]), axis=1, return_inverse=True)
    some, all_ = pairs.astype(np.float64)
    found = at_least(some, all_, chance)
    return found[places.reshape(-1)].reshape(np.shape(successes))


def _root(others: FloatArray, square: float, count: FloatArray, side: float) -> FloatArray:
    """Return the h of 0 or more with `h^2 = others + square max(count + side h, 0)`; side is -1 or 1."""
    half = side * square / 2.0
    # At a limit below 0 the item has no reports of its own, so the noise of its own reports is 0.
    inside = np.maximum(half**2 + others + square * count, 0.0)
    found = half + np.sqrt(inside)
    return np.where(count + side * found < 0.0, np.sqrt(others), found)


def quantile(tail: float) -> float:
    """Return the normal quantile that is exceeded with probability `tail`, also for very small tails."""
    return -NormalDist().inv_cdf(tail)
