"""Windows on a line: weights of reports that estimate the mean of positions in 0..1, with their exact variance.

Positions are points `x/(m-1)`, x in 0..m-1. A report is y in 0..N-1, N = m + 2b, and its window is the `w = 2b + 1`
reports x..x+2b. So `P[y, x]` is `p/w` in the window and `(1-p)/(N-w)` outside: a square wave on whole numbers.

Reference: docs/mathematics.md section 11. The weights are the least squares solution of `P^T weight = position`, which
has less variance than the weight that is linear in y, above all at small epsilons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hushcount.arrays import FloatArray

_POINTS = (3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 22, 24, 28, 32, 36, 40, 44, 52, 60, 72, 88, 104, 128)
_SPARE = (0, 1, 2, 3, 4, 5, 6, 8, 10)
MOST_POINTS = 256
"""More points would not make a mean better below an epsilon of 10, and take seconds of linear algebra."""


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of reports, and how much they vary; a position is in 0..1.

    Attributes:
        mean: float64[N]: the mean of a report's weight is the position of its client.
        noise: float64[N]: the mean of these values is the variance of `mean`, if the client's position is a point; it
            lacks at most `rounding` if the client rounded its position at random to a point.
        at: float64[m], the variance of `mean` at each point.
    """

    mean: FloatArray
    noise: FloatArray
    at: FloatArray

    @property
    def rounding(self) -> float:
        """The greatest variance of a position that is rounded at random, without bias, to one of two points."""
        return 0.25 / (len(self.at) - 1) ** 2

    @property
    def worst(self) -> float:
        """The greatest variance of `mean` over all positions, rounding included."""
        gap = 1.0 / (len(self.at) - 1)
        square = self.at + np.linspace(0.0, 1.0, len(self.at)) ** 2
        low, rise, place = square[:-1], np.diff(square), np.arange(len(self.at) - 1) * gap
        # Between two points the mean square is linear and the position's square is not: their difference has one top.
        part = np.clip((rise / (2.0 * gap) - place) / gap, 0.0, 1.0)
        return float((low + part * rise - (place + part * gap) ** 2).max())


def require_points(points: int) -> None:
    """Raise ValueError unless a line can have so many points."""
    if not 2 <= points <= MOST_POINTS:
        raise ValueError(f"m is {points}, must be from 2 to {MOST_POINTS:,} points")


@lru_cache(maxsize=256)
def weights(points: int, spare: int, inside: float) -> Weights:
    """Return the weights of reports.

    Args:
        points: m, at least 2.
        spare: b, at least 0.
        inside: p, the probability that a report is in its client's window; above w/N.
    """
    width, size = points + 2 * spare, 2 * spare + 1
    law = np.full((width, points), (1.0 - inside) / (width - size))
    for place in range(points):
        law[place : place + size, place] = inside / size
    # The sum of squares is weighted by how often a report comes if all points are equally frequent.
    scale = 1.0 / np.sqrt(law.mean(axis=1))
    position = np.linspace(0.0, 1.0, points)
    squares = np.stack([position, position**2], axis=1)
    solved = scale[:, None] * np.linalg.lstsq(law.T * scale, squares, rcond=None)[0]
    mean, square = solved.T
    return Weights(mean, mean**2 - square, law.T @ mean**2 - position**2)


@lru_cache(maxsize=64)
def best_line(epsilon: float, points: int | None = None) -> tuple[int, int]:
    """Return (m, b) of least worst variance at this epsilon, among 25 by 9 candidates, or for m = `points` among 9.

    The best of all m up to 128 and b up to 16 is at most 1 % better, for epsilon from 0.25 to 8.
    """
    if points is not None:
        require_points(points)
    found = []
    for tried in _POINTS if points is None else (points,):
        for spare in [each for each in _SPARE if each <= tried]:
            size = 2 * spare + 1
            inside = 1.0 / (1.0 + (tried - 1) / (size * math.exp(epsilon)))
            found.append((weights(tried, spare, inside).worst, tried, spare))
    return min(found)[1:]
