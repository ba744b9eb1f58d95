"""The laws of scores that are counts of supporting reports: what exact tests and limits of few supports are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushcount.arrays import BoolArray, FloatArray, IntArray
from hushcount.oracles.estimates import Estimate, SharedCells, Supports, clopper_pearson
from hushcount.oracles.group_estimates import Rest, Rows, SupportSums

_LEAST_CHANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Law:
    """K is the sum, over n independent reports, of the number T of the group's items that each supports.

    Every field is float64[g] or bool[g]; where an estimate has no such law, `supports` is NaN.

    Attributes:
        supports: K; of all other items where these were counted (`turned`).
        own, other: the mean of T if the client holds an item of the group, and if not.
        turned: whether K counts all items that are not in the group.
        binary: whether T is 0 or 1: then K is Bin(n, c) exactly if clients are a sample. Else it is taken for
            `h Bin(M, c)` with its mean and variance, h = 1 unless the variance exceeds the mean (`SupportSums`).
        repeats: l; each of l equal reports of a client counts as one answer.
    """

    supports: FloatArray
    own: FloatArray
    other: FloatArray
    turned: BoolArray
    binary: BoolArray
    repeats: int

    @property
    def there(self) -> BoolArray:
        """bool[g]: whether there is a law."""
        return np.isfinite(self.supports)

    def noise(self, share: FloatArray) -> FloatArray:
        """Return float64[g]: the variance of one answer's part of a count by randomisation; NaN unless `binary`."""
        held = np.where(self.turned, 1.0 - share, share)
        spread = held * self.own * (1.0 - self.own) + (1.0 - held) * self.other * (1.0 - self.other)
        return np.where(self.binary, spread / (self.own - self.other) ** 2, np.nan)

    def matching(self, mean: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (h, M/n), float64[g] each: of the binomial law of K, from mean and variance of T of one answer."""
        ratio = np.divide(spread, mean, out=np.ones(len(mean)), where=mean > 0.0)
        chance = np.where(self.binary, mean, np.clip(1.0 - ratio, _LEAST_CHANCE, 1.0 - _LEAST_CHANCE))
        each = np.where(self.binary, 1.0, np.maximum(ratio, 1.0))
        trials = np.divide(mean, each * chance, out=1.0 / each, where=chance > 0.0)
        return each, trials

    def limits(self, answers: float, spread: FloatArray, tail: float) -> tuple[FloatArray, FloatArray]:
        """Return (low, high), float64[g]: Clopper and Pearson's limits of the share, in which T has this variance."""
        supports = self.supports / self.repeats
        each, trials = self.matching(supports / answers, spread)
        some, all_ = supports / each, np.maximum(trials * answers, supports / each)
        low, high = clopper_pearson(some, all_ - some, tail), 1.0 - clopper_pearson(all_ - some, some, tail)
        low, high = ((limit * trials * each - self.other) / (self.own - self.other) for limit in (low, high))
        return np.where(self.turned, 1.0 - high, low), np.where(self.turned, 1.0 - low, high)

    def is_like(self, other: Law) -> BoolArray:
        """Return bool[g]: whether both have the same means of T, of the same items."""
        same = (self.own == other.own) & (self.other == other.other) & (self.turned == other.turned)
        return same & (self.binary == other.binary)


def law_of(one: Estimate) -> Law:
    """Return the law of each row of an estimate."""
    size = len(one.count)
    no, yes = np.zeros(size, dtype=np.bool_), np.ones(size, dtype=np.bool_)
    if isinstance(one, Supports):
        return Law(_each(one.supports, size), _each(one.own, size), _each(one.other, size), no, yes, one.repeats)
    if isinstance(one, SharedCells):
        own = _each(one.own, size)
        return Law(_each(one.scores, size), own, own - one.gain, no, yes, one.repeats)
    if isinstance(one, SupportSums):
        return Law(one.supports, one.own, one.other, no, no, one.repeats)
    if isinstance(one, Rest):
        rest = law_of(one.others)
        return Law(rest.supports, rest.own, rest.other, ~rest.turned, rest.binary, rest.repeats)
    if isinstance(one, Rows):
        return _rows([(places, law_of(part)) for places, part in one.parts], size, one.repeats)
    nothing = np.full(size, np.nan)
    return Law(nothing, nothing, nothing, no, no, one.repeats)


def added(laws: Sequence[Law]) -> Law:
    """Return the law of the sum of results; none where they have not one and the same."""
    first = laws[0]
    same = np.logical_and.reduce([law.is_like(first) for law in laws])
    supports = np.where(same, np.sum([law.supports for law in laws], axis=0), np.nan)
    return Law(supports, first.own, first.other, first.turned, first.binary, max(law.repeats for law in laws))


def _rows(parts: Sequence[tuple[IntArray, Law]], size: int, repeats: int) -> Law:
    supports, own, other = (np.full(size, np.nan) for _ in range(3))
    turned, binary = (np.zeros(size, dtype=np.bool_) for _ in range(2))
    for places, law in parts:
        supports[places], own[places], other[places] = law.supports, law.own, law.other
        turned[places], binary[places] = law.turned, law.binary
    return Law(supports, own, other, turned, binary, repeats)


def _each(value: float | FloatArray | IntArray, size: int) -> FloatArray:
    return np.broadcast_to(np.asarray(value, dtype=np.float64), size)
