"""The laws of scores that are counts of supporting reports; exact tests and limits use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hushcount.arrays import BoolArray, FloatArray, IntArray
from hushcount.maths.support_limits import LEAST_CHANCE, SupportCounts
from hushcount.oracles.estimates import Estimate, SharedCells, Supports
from hushcount.oracles.group_estimates import Rest, Rows, SupportSums
from hushcount.oracles.noisy_counts import CountError, NoisyCounts


@dataclass(frozen=True, eq=False)
class Law:
    """The law of K, the sum over n independent reports of T, the number of the group's items that a report supports.

    Every field is float64[g] or bool[g], except `repeats`. If an estimate has no such law, `supports` is NaN.

    Attributes:
        supports: K; where `turned` is true, K of all items outside the group.
        own, other: the mean of T if the client holds an item of the group, and if not.
        own_spread, other_spread: the variance of T in these two cases.
        turned: whether K counts all items that are not in the group.
        repeats: l; l equal reports of a client count as one answer.
    """

    supports: FloatArray
    own: FloatArray
    other: FloatArray
    own_spread: FloatArray
    other_spread: FloatArray
    turned: BoolArray
    repeats: int

    @property
    def there(self) -> BoolArray:
        """bool[g]: whether there is a law."""
        return np.isfinite(self.supports)

    def noise(self, share: FloatArray) -> FloatArray:
        """Return float64[g]: the variance that the randomisation of one answer adds to a count."""
        held = self._turn(share)
        return (held * self.own_spread + (1.0 - held) * self.other_spread) / (self.own - self.other) ** 2

    def matching(self, share: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (mean, h, M/n), float64[g] each, for clients that hold the group with probability `share`, in 0..1.

        `mean` is the mean of T. K has the mean and variance of `h Bin(M, c)`; h = 1 unless the variance exceeds the
        mean. If T is 0 or 1, K is exactly Bin(n, mean).
        """
        law = self._counts(1.0, drawn=True)
        mean, spread = law.mixed(self._turn(share))
        each = np.maximum(spread / mean, 1.0)
        chance = np.clip(1.0 - spread / mean, LEAST_CHANCE, 1.0)
        binary = law.binary
        return mean, np.where(binary, 1.0, each), np.where(binary, 1.0, mean / (each * chance))

    def limits(self, answers: float, tail: float, drawn: bool) -> tuple[FloatArray, FloatArray]:
        """Return (low, high), float64[g], of the share in the population (`drawn`), or among these clients.

        Both limits are NaN where there is no law.
        """
        found, there = np.full((2, len(self.supports)), np.nan), self.there
        law = self._counts(answers, drawn).chosen(np.flatnonzero(there))
        found[:, there] = law.limits(self.supports[there] / self.repeats, tail)
        low, high = found / answers
        return np.where(self.turned, 1.0 - high, low), np.where(self.turned, 1.0 - low, high)

    def is_like(self, other: Law) -> BoolArray:
        """Return bool[g]: whether both laws have the same means of T and count the same items."""
        return (self.own == other.own) & (self.other == other.other) & (self.turned == other.turned)

    def _turn(self, share: FloatArray) -> FloatArray:
        return np.where(self.turned, 1.0 - share, share)

    def _counts(self, answers: float, drawn: bool) -> SupportCounts:
        every = np.full(len(self.supports), float(answers))
        return SupportCounts(every, self.own, self.other, self.own_spread, self.other_spread, drawn=drawn)


def law_of(one: Estimate) -> Law:
    """Return the law of each row of an estimate."""
    size = len(one.count)
    if isinstance(one, Supports):
        return _of_bits(one.supports, one.own, one.other, size, one.repeats)
    if isinstance(one, SharedCells):
        return _of_bits(one.scores, one.own, one.own - one.gain, size, one.repeats)
    if isinstance(one, SupportSums):
        moments = one.own, one.other, one.own_spread, one.other_spread
        return Law(one.supports, *moments, np.zeros(size, dtype=np.bool_), one.repeats)
    if isinstance(one, Rest):
        rest = law_of(one.others)
        return replace(rest, turned=~rest.turned)
    if isinstance(one, Rows):
        return _rows([(places, law_of(part)) for places, part in one.parts], size, one.repeats)
    nothing = np.full(size, np.nan)
    return Law(nothing, nothing, nothing, nothing, nothing, np.zeros(size, dtype=np.bool_), one.repeats)


def errors_of(one: Estimate) -> list[CountError | None]:
    """Return how much each count of an estimate errs by noise of the mixes; None where it has no such noise."""
    found: list[CountError | None] = [one.law if isinstance(one, NoisyCounts) else None] * len(one.count)
    for places, part in one.parts if isinstance(one, Rows) else ():
        for place, error in zip(places.tolist(), errors_of(part), strict=True):
            found[place] = error
    return found


def added(laws: Sequence[Law], reports: Sequence[int]) -> Law:
    """Return the law of the sum of results with these numbers of reports; no law if the results have different laws."""
    first = laws[0]
    same = np.logical_and.reduce([law.is_like(first) for law in laws])
    supports = np.where(same, np.sum([law.supports for law in laws], axis=0), np.nan)
    # The variances are averaged, because in a weighted design the variances of a group differ by window.
    own, other = (
        np.average([getattr(law, name) for law in laws], axis=0, weights=reports)
        for name in ("own_spread", "other_spread")
    )
    return replace(
        first, supports=supports, own_spread=own, other_spread=other, repeats=max(law.repeats for law in laws)
    )


def _of_bits(supports: IntArray, own: float, other: float, size: int, repeats: int) -> Law:
    """Return the law of reports that support an item or do not."""
    p, q = np.full(size, own), np.full(size, other)
    direct = np.zeros(size, dtype=np.bool_)
    return Law(supports.astype(np.float64), p, q, p * (1.0 - p), q * (1.0 - q), direct, repeats)


def _rows(parts: Sequence[tuple[IntArray, Law]], size: int, repeats: int) -> Law:
    columns, turned = np.full((5, size), np.nan), np.zeros(size, dtype=np.bool_)
    for places, law in parts:
        columns[:, places] = law.supports, law.own, law.other, law.own_spread, law.other_spread
        turned[places] = law.turned
    supports, own, other, own_spread, other_spread = columns
    return Law(supports, own, other, own_spread, other_spread, turned, repeats)
