"""Binomial laws cut to the window that matters: probabilities never below the true ones, cut mass bounded.

Each is a product of ratios of neighbouring probabilities, divided by their sum, with a relative error below
`3 * 2**-53` for each step from the mode.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushcount.arrays import FloatArray


def reach(variance: float, step: float, tail: float) -> float:
    """Return t such that a sum of independent terms exceeds its mean by t or more with probability at most `tail`.

    `variance` is that of the sum; one term exceeds its mean by `step` at most.

    Reference: Bernstein's inequality, `exp(-t^2 / (2 (variance + step t / 3)))`, solved for t.
    """
    size = -math.log(tail)
    return step * size / 3.0 + math.sqrt((step * size / 3.0) ** 2 + 2.0 * variance * size)


@dataclass(frozen=True, eq=False)
class Window:
    """float64[k], the probabilities of first, first + 1, ..., at least the true ones; they add up to 1."""

    first: int
    weights: FloatArray

    @property
    def last(self) -> int:
        return self.first + len(self.weights) - 1


def binomial_window(count: int, chance: float, other: float, tail: float) -> Window:
    """Return the law of `Bin(count, chance)` without at most `tail` on either side, for count >= 1.

    The window fits `1 + Bin(count - 1, chance)` as well. `other` is `1 - chance`, whose difference would lose digits.
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
        moments: float64[k], `E[D; X >= x] = x Pr[X = x]` for x = first, first + 1, ..., at least the true ones.
        tails: float64[k], `Pr[X >= x]`; the last is 0, below the true one.
    """

    first: int
    moments: FloatArray
    tails: FloatArray


def fair_tails(count: int, tail: float) -> FairTails:
    """Return the upper half of `Bin(count, 1/2)` up to where at most `tail` is left.

    The moment telescopes: `(2x - m) C(m, x) = m (C(m-1, x-1) - C(m-1, x))`.
    """
    first = count // 2 + 1
    last = min(count + 1, first + math.ceil(math.sqrt(-math.log(tail) * count / 2.0)) + 1)
    steps = np.arange(first, last, dtype=np.float64)
    weights = np.concatenate([[1.0], np.cumprod((count - steps) / (steps + 1.0))])
    if count == 0:
        weights[:] = 0.0
    # The other half mirrors this one; an even count has a middle besides.
    middle = first / (first - 1.0) if count % 2 == 0 and count else 0.0
    whole = 2.0 * weights.sum() + middle if count else 1.0
    tails = np.cumsum(weights[::-1])[::-1] / whole
    tails[-1] = 0.0
    places = np.arange(first, last + 1, dtype=np.float64)
    return FairTails(first, places * weights / whole, tails)
