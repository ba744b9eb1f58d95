"""Binomial laws cut to the window that matters, and laws on few points that bound the mean of a convex function.

Binomial probabilities are products of the ratios of neighbours, divided by the sum of all products in the window. The
relative error of a probability is below `3 * 2**-53` for each step from the mode; apart from this error no probability
is below the true one. Cut mass is bounded.

A law is wider than another law of the same mean if no convex function has a smaller mean under the wider law. A law
becomes wider if mass moves from a point to two neighbours so that the mean is kept, or if an independent term of mean 0
is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushcount.arrays import FloatArray


def reach(variance: float, step: float, tail: float) -> float:
    """Return t such that a sum of independent terms exceeds its mean by t or more with probability at most `tail`.

    `variance` is the variance of the sum; each term exceeds its mean by `step` at most.

    Reference: Bernstein's inequality, `exp(-t^2 / (2 (variance + step t / 3)))`, solved for t.
    """
    size = -math.log(tail)
    return step * size / 3.0 + math.sqrt((step * size / 3.0) ** 2 + 2.0 * variance * size)


@dataclass(frozen=True, eq=False)
class Window:
    """The probabilities, float64[k], of first, first + 1, ...; no value is below the true one, and all add up to 1."""

    first: int
    weights: FloatArray

    @property
    def last(self) -> int:
        return self.first + len(self.weights) - 1


def binomial_window(count: int, chance: float, other: float, tail: float) -> Window:
    """Return the law of `Bin(count, chance)`, count >= 1, with at most `tail` cut off on either side.

    The window also leaves at most `tail` of `1 + Bin(count - 1, chance)` on either side. The caller passes
    `other = 1 - chance` without a loss of digits.
    """
    mean = count * chance
    deviation = reach(mean * other, 1.0, tail)
    first, last = max(0, math.floor(mean - deviation)), min(count, math.ceil(mean + deviation) + 1)
    mode = min(max(first, math.floor((count + 1) * chance)), last)
    up, down = np.arange(mode, last, dtype=np.float64), np.arange(mode, first, -1, dtype=np.float64)
    odds = chance / other
    rising = np.cumprod((count - up) / (up + 1.0) * odds)
    falling = np.cumprod(down / (count - down + 1.0) / odds)
    weights = np.concatenate([falling[::-1], [1.0], rising])
    return Window(first, weights / weights.sum())


@dataclass(frozen=True, eq=False)
class FairTails:
    """The upper half of `X ~ Bin(count, 1/2)`, D = 2X - count.

    Attributes:
        first: the least x with D > 0.
        moments: float64[k], `E[D; X >= x] = x Pr[X = x]` for x = first, first + 1, ..., each at least its true value.
        tails: float64[k], `Pr[X >= x]`; the last value is 0, although the true value is larger.
    """

    first: int
    moments: FloatArray
    tails: FloatArray


def fair_tails(count: int, tail: float) -> FairTails:
    """Return the upper half of `Bin(count, 1/2)` up to a point beyond which the probability is at most `tail`.

    The sum in the moment telescopes, because `(2x - m) C(m, x) = m (C(m-1, x-1) - C(m-1, x))`.
    """
    first = count // 2 + 1
    last = min(count + 1, first + math.ceil(math.sqrt(-math.log(tail) * count / 2.0)) + 1)
    steps = np.arange(first, last, dtype=np.float64)
    weights = np.concatenate([[1.0], np.cumprod((count - steps) / (steps + 1.0))])
    if count == 0:
        weights[:] = 0.0
    # The lower half mirrors the upper one; an even count also has a middle point.
    middle = first / (first - 1.0) if count % 2 == 0 and count else 0.0
    whole = 2.0 * weights.sum() + middle if count else 1.0
    tails = np.cumsum(weights[::-1])[::-1] / whole
    tails[-1] = 0.0
    places = np.arange(first, last + 1, dtype=np.float64)
    return FairTails(first, places * weights / whole, tails)


_POINTS = 128
_EXACT = 32


@dataclass(frozen=True, eq=False)
class Spread:
    """A law on float64[k] points; convex, falling functions have no smaller mean under it than under the true law.

    The weights of the points add up to 1, or to a little more where a bound of the cut mass was added.
    """

    points: FloatArray
    weights: FloatArray


@dataclass(frozen=True)
class Others:
    """What a report that supports both items, or neither item, adds to the U of `divergence.Divergence`.

    A report adds `value`, which is e, if it supports both items; 1 if it supports neither item; 0 if it is not drawn
    from the base law (`nothing`). The fields `both`, `neither` and `nothing` are the probabilities of the three cases,
    up to a common factor.
    """

    value: float
    both: float
    neither: float
    nothing: float

    @property
    def mean(self) -> float:
        return (self.value * self.both + self.neither) / (self.both + self.neither + self.nothing)

    def total(self, count: int, cut: float) -> Spread:
        """Return the law of the sum of `count` independent reports, points at least 0.

        If B reports support both, the number of reports that support neither is binomial among count - B. Minus its
        mean, this number is no wider than such a number among all `count` reports, independent of B. Up to 32 reports
        the law is exact, except that a tail of at most `cut` of either number is moved to the worst place.
        """
        rest = self.neither + self.nothing
        both = _number(count, self.both, rest, cut)
        if count <= _EXACT:
            law = self._joint(count, both, cut)
        else:
            other = _number(count, self.neither, self.nothing, cut)
            # Each report that supports both lowers the mean number of reports that support neither by `neither / rest`.
            points = np.add.outer((self.value - self.neither / rest) * both.points, other.points).reshape(-1)
            law = _on_grid(Spread(points, np.multiply.outer(both.weights, other.weights).reshape(-1)))
        # The mass below the windows of both numbers is counted at a sum of 0.
        return Spread(np.append(law.points, 0.0), np.append(law.weights, 2.0 * cut))

    def _joint(self, count: int, both: Spread, cut: float) -> Spread:
        """Return the exact law of the sum."""
        parts = [_number(count - int(value), self.neither, self.nothing, cut) for value in both.points]
        points = [self.value * value + part.points for value, part in zip(both.points, parts, strict=True)]
        weights = [weight * part.weights for weight, part in zip(both.weights, parts, strict=True)]
        return Spread(np.concatenate(points), np.concatenate(weights))


def _number(count: int, chance: float, other: float, cut: float) -> Spread:
    """Return the law of the successes among `count` trials, at odds chance : other, without the lower tail."""
    if count == 0 or chance == 0.0:
        return Spread(np.zeros(1), np.ones(1))
    whole = chance + other
    window = binomial_window(count, chance / whole, other / whole, cut)
    weights = window.weights.copy()
    weights[-1] += cut
    return _on_grid(Spread(np.arange(window.first, window.last + 1.0), weights))


def _on_grid(law: Spread) -> Spread:
    """Return a law on few points: each point's mass goes to its neighbours on an even grid so that the mean is kept."""
    if len(law.points) <= _POINTS:
        return law
    grid = np.linspace(law.points.min(), law.points.max(), _POINTS)
    place = np.clip((law.points - grid[0]) / (grid[1] - grid[0]), 0.0, _POINTS - 1.0)
    cell = np.minimum(place.astype(np.intp), _POINTS - 2)
    upper = law.weights * (place - cell)
    weights = np.zeros(_POINTS)
    np.add.at(weights, cell, law.weights - upper)
    np.add.at(weights, cell + 1, upper)
    return Spread(grid, weights)
