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
    """A law on points: no convex, falling function has a lesser mean under it than under what it stands for.

    Attributes:
        points: float64[k].
        weights: float64[k], which add up to 1, or to little more for what was cut.
    """

    points: FloatArray
    weights: FloatArray


@dataclass(frozen=True)
class Others:
    """What a report adds to U that supports both items or neither, see `divergence.Divergence`.

    Attributes:
        value: e, for one that supports both; 1 for one that supports neither; 0 for one not drawn from the base law.
        both, neither, nothing: how likely these are, up to a factor.
    """

    value: float
    both: float
    neither: float
    nothing: float

    @property
    def mean(self) -> float:
        """The mean of one report."""
        return (self.value * self.both + self.neither) / (self.both + self.neither + self.nothing)

    def total(self, count: int, cut: float) -> Spread:
        """Return the law of the sum of `count` reports, points at least 0.

        Beside B reports of both, those of neither are binomial among count - B: less their mean no wider than among
        all of `count`, independent of B. Up to 32 reports are taken as they are.

        Args:
            count: of independent reports.
            cut: at most so much of either number is not followed into its tails, but moved to where it is worst.
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
        """Return the law of the sum, with the number of neither as it depends on that of both."""
        parts = [_number(count - int(value), self.neither, self.nothing, cut) for value in both.points]
        points = [self.value * value + part.points for value, part in zip(both.points, parts, strict=True)]
        weights = [weight * part.weights for weight, part in zip(both.weights, parts, strict=True)]
        return Spread(np.concatenate(points), np.concatenate(weights))


def _number(count: int, chance: float, other: float, cut: float) -> Spread:
    """Return the law of how many of `count` trials succeed, odds chance : other, but for what is below its window."""
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
