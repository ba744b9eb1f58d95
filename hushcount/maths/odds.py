"""How far odds change at most, except with a stated chance: what (epsilon, delta) does not say by itself.

Let L be the log-likelihood ratio of everything seen, for a client's value against another one: seeing it multiplies the
odds between the two by `exp(L)`. The divergence of the two laws is `delta(s) = E[(1 - exp(s-L))_+]`,
so that `delta(s) >= (1 - exp(s-t)) Pr[L > t]` for every s below t; and `Pr[L < -t]` is at most `exp(-t)` times what
`Pr[-L > t]` is under the other value. Together

    Pr[|L| > t] <= (1 + exp(-t)) delta(s) / (1 - exp(s-t))        for every s < t,

for any two values, and for anything computed from what is seen. `Pr[|L| > epsilon] <= delta` does not follow, and is
false: for randomised response by a factor of a thousand.

Reference: docs/mathematics.md section 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Curve = Callable[[float], float]
"""Delta at an epsilon: of both directions, never below the true one."""
Point = tuple[float, float]
"""A guarantee (epsilon, delta) of a curve; delta in [0, 1]."""

_ROOM = 10.0
_SHRINK = (math.sqrt(5.0) - 1.0) / 2.0
_ROUNDS = 5


@dataclass(frozen=True)
class Odds:
    """Seeing the result changes odds by a factor of `exp(epsilon)` at most, except with this chance, in [0, 1)."""

    epsilon: float
    chance: float


def loss_at(epsilon: float, delta: float, chance: float) -> float:
    """Return the least t for which the bound above, with `s = epsilon` and `delta(s) = delta`, is at most the chance.

    `(1 + u) delta / (1 - u exp(s)) <= chance` is linear in `u = exp(-t)`. Infinity if the chance, in (0, 1), is not
    above delta: then the point says nothing.
    """
    if delta >= chance:
        return math.inf
    return epsilon + math.log((chance + delta * math.exp(-epsilon)) / (chance - delta))


def odds_of_pair(epsilon: float, delta: float) -> Odds:
    """Return what one guarantee (epsilon, delta) says about odds, at a chance of ten times delta.

    At the chance delta it says nothing; at twice delta, a factor of `2 exp(epsilon) + 1`; at ten times, a ninth more
    than `exp(epsilon)`.
    """
    if delta == 0.0:
        return Odds(epsilon, 0.0)
    return odds_of_points([(epsilon, delta)], min(_ROOM * delta, math.nextafter(1.0, 0.0)))


def odds_of_points(points: Iterable[Point], chance: float) -> Odds:
    """Return the least change of odds, at a chance in (0, 1), that the points of a curve of guarantees allow."""
    return Odds(min(loss_at(epsilon, delta, chance) for epsilon, delta in points), chance)


def points_about(curve: Curve, chance: float, start: float, end: float) -> tuple[Point, ...]:
    """Return points of a curve, about a dozen, close to the one that says most about odds at a chance in (0, 1).

    Every point is valid by itself, so that a search that misses the best one claims less. `start` is an epsilon near
    the least one at which the curve is below the chance; at `end` the curve is least.
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
    """Return the curve of `size` reports of one client: (l e, d (1 + exp(e) + ... + exp((l-1) e))) at every e."""

    def grouped(epsilon: float) -> float:
        one = epsilon / size
        delta = curve(one)
        if delta <= 0.0:
            return 0.0
        # The logarithm first: exp of the last step may overflow.
        log = math.log(delta) + (size - 1) * one
        return 1.0 if log >= 0.0 else min(1.0, delta * sum(math.exp(step * one) for step in range(size)))

    return grouped
