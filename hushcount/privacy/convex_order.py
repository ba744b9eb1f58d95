"""Laws on few points that are wider than a sum's own, in the convex order: they bound the mean of a convex function.

A law is wider than another of the same mean if no convex function has a lesser mean under it. Moving mass from a point
to two neighbours, the mean kept, makes it wider; so does adding an independent term of mean 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.privacy.binomials import binomial_window

_POINTS = 128
_EXACT = 32


@dataclass(frozen=True, eq=False)
class Spread:
    """A law on float64[k] points: no convex, falling function has a lesser mean under it than under the true law.

    Its weights add up to 1, or to a little more for what was cut.
    """

    points: FloatArray
    weights: FloatArray


@dataclass(frozen=True)
class Others:
    """What a report that supports both items or neither adds to U, see `divergence.Divergence`.

    `value`, e, if it supports both; 1 if neither; 0 if it is not drawn from the base law (nothing). The other fields
    are the probabilities of these cases, up to a common factor.
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

        Beside B reports of both, those of neither are binomial among count - B: less their mean no wider than among
        all of `count`, independent of B. The law of up to 32 reports is exact. Mass of at most `cut` in the tails of
        either number is moved to where it is worst.
        """
        rest = self.neither + self.nothing
        both = _number(count, self.both, rest, cut)
        if count <= _EXACT:
            law = self._joint(count, both, cut)
        else:
            other = _number(count, self.neither, self.nothing, cut)
            # The mean of those of neither falls by their share with every one of both.
            points = np.add.outer((self.value - self.neither / rest) * both.points, other.points).reshape(-1)
            law = _on_grid(Spread(points, np.multiply.outer(both.weights, other.weights).reshape(-1)))
        # Below its window a number is moved to 0, and the sum with it.
        return Spread(np.append(law.points, 0.0), np.append(law.weights, 2.0 * cut))

    def _joint(self, count: int, both: Spread, cut: float) -> Spread:
        """Return the exact law of the sum."""
        parts = [_number(count - int(value), self.neither, self.nothing, cut) for value in both.points]
        points = [self.value * value + part.points for value, part in zip(both.points, parts, strict=True)]
        weights = [weight * part.weights for weight, part in zip(both.weights, parts, strict=True)]
        return Spread(np.concatenate(points), np.concatenate(weights))


def _number(count: int, chance: float, other: float, cut: float) -> Spread:
    """Return the law of how many of `count` trials succeed, at odds chance : other, without the lower tail."""
    if count == 0 or chance == 0.0:
        return Spread(np.zeros(1), np.ones(1))
    whole = chance + other
    window = binomial_window(count, chance / whole, other / whole, cut)
    weights = window.weights.copy()
    weights[-1] += cut
    return _on_grid(Spread(np.arange(window.first, window.last + 1.0), weights))


def _on_grid(law: Spread) -> Spread:
    """Return a law on few points: each point's mass goes to its neighbours on an even grid, the mean kept."""
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
