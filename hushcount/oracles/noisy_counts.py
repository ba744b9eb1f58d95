"""Counts with noise of the mixes: the numbers of their dummies have a known law, so every figure is exact.

The law does not depend on the true counts, so a limit is the count minus a quantile of the noise (docs/adr/0061).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.maths.count_laws import CountLaw
from hushcount.maths.noise_sums import NOTHING, NoiseSum, dummies_of
from hushcount.oracles.estimates import Estimate

_STEPS, _PLACES = 64, 5


@dataclass(frozen=True)
class MixNoise:
    """The dummies of all mixes together.

    Attributes:
        law: of X; a mix adds B - X dummies to each item (`CountLaw`).
        mixes: how many mixes add dummies, each independently.
        batches: number of batches that are added up.
    """

    law: CountLaw
    mixes: int
    batches: int = 1

    @property
    def mean(self) -> float:
        """The mean number of dummies of an item."""
        return self._draws * (self.law.most - self.law.mean)

    @property
    def variance(self) -> float:
        """The variance of the number of dummies of an item, and so of its count, in users squared."""
        return self._draws * self.law.standard_deviation**2

    def times(self, number: int) -> MixNoise:
        """Return the dummies of so many times as many batches; or of so many items, where their counts are added up."""
        return self if number == 1 else replace(self, batches=number * self.batches)

    def most_dummies(self, domain: int) -> int:
        """Return the most dummies that one mix adds to so many items, but for a chance of about 1e-15.

        The bound is 8 standard deviations above the mean. It depends on no drawn number, because refusing a number that
        was drawn would change the law.
        """
        mean, deviation = domain * self.mean / self._draws, math.sqrt(domain * self.variance / self._draws)
        return math.ceil(mean + 8.0 * deviation)

    def error_of(self, items: int, domain: int) -> CountError:
        """Return how much the count of a group of items errs, if a part of `domain` items is in the group."""
        return _error_of(self.law, self._draws, items, domain)

    def sum_of(self, items: int) -> NoiseSum:
        """Return the law of the dummies of so many items, at least 1, together."""
        return dummies_of(self.law, self._draws * items)

    @property
    def _draws(self) -> int:
        return self.mixes * self.batches


@dataclass(frozen=True, eq=False)
class CountError:
    """How much the count of a group of items errs: by (1 - w) A - w B, less the mean of this.

    A is the number of dummies of the group, and B that of all other items. The part w corrects the count by the known
    number of all reports. The variance is least if w is the group's share of the items.

    Attributes:
        inside: the law of A.
        outside: the law of B.
        part: w, in [0, 1).
    """

    inside: NoiseSum
    outside: NoiseSum = NOTHING
    part: float = 0.0

    @property
    def mean(self) -> float:
        """The mean that is subtracted, in users."""
        return (1.0 - self.part) * self.inside.mean - self.part * self.outside.mean

    @property
    def variance(self) -> float:
        """The variance, in users squared."""
        return (1.0 - self.part) ** 2 * self.inside.variance + self.part**2 * self.outside.variance

    def at_least(self, errors: FloatArray) -> FloatArray:
        """Return float64[c], the probability of each error or a larger one."""
        return self._mean_of(self.inside.at_least, errors)

    def at_most(self, errors: FloatArray) -> FloatArray:
        """Return float64[c], the probability of each error or a smaller one."""
        return self._mean_of(self.inside.at_most, errors)

    def quantiles(self, tail: float) -> tuple[float, float]:
        """Return (low, high): an error below low has at most the probability `tail`, and so has one above high."""
        return _quantiles(self, tail)

    def _mean_of(self, tail: Callable[[FloatArray], FloatArray], errors: FloatArray) -> FloatArray:
        """Return float64[c]: for each error the mean over B of a tail of A, where A makes exactly this error with B."""
        beyond = self.mean + self.part * self.outside.values
        if len(beyond) == 1:
            return tail((errors + beyond) / (1.0 - self.part))
        return np.array([tail((error + beyond) / (1.0 - self.part)) @ self.outside.chances for error in errors])


# Cached, because the counts of many windows err by one law.
@lru_cache(maxsize=1024)
def _error_of(law: CountLaw, draws: int, items: int, domain: int) -> CountError:
    if items == 1:
        return CountError(dummies_of(law, draws))
    inside, outside = (dummies_of(law, draws * number) for number in (items, domain - items))
    return CountError(inside, outside, items / domain)


@lru_cache(maxsize=4096)
def _quantiles(error: CountError, tail: float) -> tuple[float, float]:
    half, mean = 2.0 * math.sqrt(error.variance / tail), error.mean
    low = _turn(lambda each: error.at_most(each)[0] >= tail, -half, half)
    high = -_turn(lambda each: error.at_least(-each)[0] >= tail, -half, half)
    # With its mean, an error is a whole number, or a multiple of 1/d.
    return round(low + mean, _PLACES) - mean, round(high + mean, _PLACES) - mean


def _turn(holds: Callable[[FloatArray], bool], low: float, high: float) -> float:
    """Return the least number at which something holds that holds from there on, by bisection."""
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if holds(np.array([middle])) else (middle, high)
    return high


@dataclass(frozen=True, eq=False)
class NoisyCounts(Estimate):
    """Counts that all err by one law.

    Attributes:
        law: how much each count errs.
    """

    law: CountError

    @classmethod
    def of(cls, count: FloatArray, law: CountError) -> NoisyCounts:
        """Return the estimates of unbiased counts, float64[c]."""
        return cls(count, np.full(len(count), math.sqrt(law.variance)), np.zeros(len(count)), law)

    def p_values(self) -> FloatArray:
        return self.law.at_least(self.count)

    def p_values_of_all(self, reports: int) -> FloatArray:
        return self.law.at_most(self.count - reports)

    def limits(self, tail: float) -> tuple[FloatArray, FloatArray]:
        low, high = self.law.quantiles(tail)
        # A limit is a whole number, or a multiple of 1/d: rounding to less would exclude a count that is the limit. A
        # limit of 0 has no sign.
        return np.round(self.count - high, _PLACES) + 0.0, np.round(self.count - low, _PLACES) + 0.0
