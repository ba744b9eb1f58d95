"""The largest change of odds, and the chance of a larger change; these two figures are not epsilon and delta.

Let L be the log-likelihood ratio of the whole observation between a client's value and another value: the observation
multiplies the odds between the two values by `exp(L)`. The divergence of the two laws is
`delta(s) = E[(1 - exp(s-L))_+]`, so `delta(s) >= (1 - exp(s-t)) Pr[L > t]` for every s below t. And `Pr[L < -t]` is at
most `exp(-t)` times the probability of the same event under the other value. These two inequalities give

    Pr[|L| > t] <= (1 + exp(-t)) delta(s) / (1 - exp(s-t))        for every s < t,

This bound holds for any two values, and for anything computed from the observation. `Pr[|L| > epsilon] <= delta` does
not follow and is false: the reference has examples at 89 and 300 times delta.

It is true of noise with a `CountLaw`, in counts of dictionaries and of discovered values: a loss above epsilon is
infinite there, and delta is the probability of an infinite loss. So these have the odds `Odds(epsilon, delta)`.

Reference: docs/mathematics.md section 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Curve = Callable[[float], float]
"""A function from epsilon to a delta that is true in both directions and never below the least true delta."""
Point = tuple[float, float]
"""A guarantee (epsilon, delta) of a curve; delta in [0, 1]."""

_ROOM = 10.0
_SHRINK = (math.sqrt(5.0) - 1.0) / 2.0
_ROUNDS = 5


@dataclass(frozen=True)
class Odds:
    """Seeing the result changes odds by a factor of `exp(epsilon)` at most, except with probability `chance` < 1."""

    epsilon: float
    chance: float

    def with_other(self, other: Odds) -> Odds:
        """Return the odds of two observations together: factors multiply, and chances add up (the union bound)."""
        return Odds(self.epsilon + other.epsilon, self.chance + other.chance)


def loss_at(epsilon: float, delta: float, chance: float) -> float:
    """Return the least t at which the module's bound, with `s = epsilon` and `delta(s) = delta`, is at most the chance.

    `(1 + u) delta / (1 - u exp(s)) <= chance` is linear in `u = exp(-t)`. The result is infinite if the chance, in
    (0, 1), is not above delta, because the point then gives no bound.
    """
    if delta >= chance:
        return math.inf
    return epsilon + math.log((chance + delta * math.exp(-epsilon)) / (chance - delta))


def odds_of_pair(epsilon: float, delta: float) -> Odds:
    """Return the bound on odds that one guarantee (epsilon, delta) gives, at a chance of ten times delta.

    At a chance of delta the guarantee gives no bound. At a chance of twice delta the bound is a factor of
    `2 exp(epsilon) + 1`, at ten times delta a factor of `(10 exp(epsilon) + 1) / 9`.
    """
    if delta == 0.0:
        return Odds(epsilon, 0.0)
    return odds_of_points([(epsilon, delta)], min(_ROOM * delta, math.nextafter(1.0, 0.0)))


def odds_of_points(points: Iterable[Point], chance: float) -> Odds:
    """Return the smallest bound on odds, at a chance in (0, 1), that any point of a curve of guarantees gives."""
    return Odds(min(loss_at(epsilon, delta, chance) for epsilon, delta in points), chance)


def points_about(curve: Curve, chance: float, start: float, end: float) -> tuple[Point, ...]:
    """Return about a dozen points of a curve, close to the point that bounds odds best at a chance in (0, 1).

    Every point is valid by itself, so a search that misses the best point only claims less privacy than it could.
    `start` is near the least epsilon at which the curve is below the chance; at `end` the curve has its least delta.
    """
    tried: dict[float, float] = {}

    def loss(point: float) -> float:
        if point not in tried:
            tried[point] = curve(point)
        return loss_at(point, tried[point], chance)

    step, best = max(start / 4.0, curve(start)), min(start, end, key=loss)
    while (point := min(end, start + step)) < end and loss(point) <= loss(best):
        best, step = point, 2.0 * step
    low = max((each for each in tried if each < best), default=best)
    high = min((each for each in tried if each > best), default=best)
    left, right = high - _SHRINK * (high - low), low + _SHRINK * (high - low)
    for _ in range(_ROUNDS):
        if loss(left) <= loss(right):
            high, left, right = right, right - _SHRINK * (right - low), left
        else:
            low, left, right = left, right, left + _SHRINK * (high - left)
    return tuple(tried.items())


def of_group(curve: Curve, size: int) -> Curve:
    """Return the curve of l = `size` reports of one client: (l e, d (1 + exp(e) + ... + exp((l-1) e))) at every e."""

    def grouped(epsilon: float) -> float:
        one = epsilon / size
        delta = curve(one)
        if delta <= 0.0:
            return 0.0
        # The logarithm is checked first, because exp of the last step may overflow.
        log = math.log(delta) + (size - 1) * one
        return 1.0 if log >= 0.0 else min(1.0, delta * sum(math.exp(step * one) for step in range(size)))

    return grouped
