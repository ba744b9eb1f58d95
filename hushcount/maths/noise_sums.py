"""Sums of the noise that mixes add: of Z = B - X, where X has a `CountLaw` with the greatest value B."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.maths.count_laws import CountLaw

LEAST_TAIL = 1e-12
"""Tails are never said to be smaller, so that neither cut ends nor rounding makes a p-value too small."""
_CUT, _CUT_OF_ROUNDED = 1e-30, 1e-14
_DIRECT = 1 << 12
_STEPS = 96
_ROUNDING = 1e-6
"""A float that is so near to a whole number is taken for it."""


@dataclass(frozen=True, eq=False)
class NoiseSum:
    """The law of a whole number: the probabilities of `least`, `least` + 1, ..., float64[s].

    Both ends are cut off where they hold less than 1e-30, or than 1e-14 in a long sum.
    """

    least: int
    chances: FloatArray

    @property
    def mean(self) -> float:
        """The mean."""
        return float(self.chances @ self.values)

    @property
    def variance(self) -> float:
        """The variance."""
        return float(self.chances @ (self.values - self.mean) ** 2)

    def at_least(self, numbers: FloatArray) -> FloatArray:
        """Return float64[c], the probability of each number or more, at least LEAST_TAIL."""
        return self._tail(self._from_above, np.ceil(numbers - _ROUNDING) - self.least)

    def at_most(self, numbers: FloatArray) -> FloatArray:
        """Return float64[c], the probability of each number or less, at least LEAST_TAIL."""
        return self._tail(self._from_below, np.floor(numbers + _ROUNDING) - self.least + 1)

    def plus(self, other: NoiseSum) -> NoiseSum:
        """Return the law of the sum of two independent numbers."""
        if min(len(self.chances), len(other.chances)) < _DIRECT:
            return _trimmed(self.least + other.least, np.convolve(self.chances, other.chances), _CUT)
        size = len(self.chances) + len(other.chances) - 1
        both = np.fft.irfft(np.fft.rfft(self.chances, size) * np.fft.rfft(other.chances, size), size)
        return _trimmed(self.least + other.least, np.maximum(both, 0.0), _CUT_OF_ROUNDED)

    def times(self, draws: int) -> NoiseSum:
        """Return the law of the sum of so many independent draws, at least 1."""
        half = self if draws < 2 else self.times(draws // 2)
        if draws < 2:
            return half
        even = half.plus(half)
        return even.plus(self) if draws % 2 else even

    @property
    def values(self) -> FloatArray:
        """The values, float64[s]."""
        return self.least + np.arange(len(self.chances), dtype=np.float64)

    @cached_property
    def _from_above(self) -> FloatArray:
        return np.append(np.cumsum(self.chances[::-1])[::-1], 0.0)

    @cached_property
    def _from_below(self) -> FloatArray:
        return np.insert(np.cumsum(self.chances), 0, 0.0)

    def _tail(self, tails: FloatArray, places: FloatArray) -> FloatArray:
        found = tails[np.clip(places, 0, len(self.chances)).astype(np.int64)]
        return np.clip(found, LEAST_TAIL, 1.0)


def _trimmed(least: int, chances: FloatArray, cut: float) -> NoiseSum:
    first = int(np.searchsorted(np.cumsum(chances), cut))
    last = len(chances) - int(np.searchsorted(np.cumsum(chances[::-1]), cut))
    return NoiseSum(least + first, chances[first:last])


NOTHING = NoiseSum(0, np.ones(1))
"""The law of 0."""


@dataclass(frozen=True, eq=False)
class WeightedSum:
    """The law of a weighted sum of independent whole numbers, less its mean, on a grid.

    Each value is moved by at most `slack`, so the tails are of the sum or a little larger.

    Attributes:
        step: of the grid.
        law: in steps.
    """

    step: float
    slack: float
    law: NoiseSum

    @classmethod
    def of(cls, parts: Sequence[tuple[float, NoiseSum]]) -> WeightedSum:
        """Return the law of a sum: each part has a weight, and the law of its number; the variance must not be 0."""
        step = math.sqrt(sum(weight**2 * one.variance for weight, one in parts)) / _STEPS
        places = [np.rint(weight * (one.values - one.mean) / step).astype(np.int64) for weight, one in parts]
        size = 1 + sum(int(np.ptp(each)) for each in places)
        padded = 1 << (size - 1).bit_length()
        spectrum = np.ones(padded // 2 + 1, dtype=np.complex128)
        for each, (_, one) in zip(places, parts, strict=True):
            spectrum *= np.fft.rfft(np.bincount(each - each.min(), one.chances), padded)
        chances = np.maximum(np.fft.irfft(spectrum, padded)[:size], 0.0)
        law = _trimmed(sum(int(each.min()) for each in places), chances, _CUT_OF_ROUNDED)
        return cls(step, len(parts) * step / 2.0, law)

    def two_sided(self, numbers: FloatArray) -> FloatArray:
        """Return float64[c], twice the probability of each number or one further from 0 on its side, at most 1."""
        above, below = (numbers - self.slack) / self.step, (numbers + self.slack) / self.step
        return np.minimum(2.0 * np.minimum(self.law.at_least(above), self.law.at_most(below)), 1.0)


@lru_cache(maxsize=64)
def dummies_of(law: CountLaw, draws: int) -> NoiseSum:
    """Return the law of so many independent numbers of dummies, each B minus noise of the law."""
    if draws > 1:
        return dummies_of(law, 1).times(draws)
    # Values below -depth have a probability of less than _CUT together.
    depth = -law.quantile(_CUT)
    return _trimmed(0, np.array([law.chance(law.most - number) for number in range(law.most + depth + 1)]), _CUT)
