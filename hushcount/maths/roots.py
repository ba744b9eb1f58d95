"""Where a function falls through 0, in few evaluations."""

from __future__ import annotations

import math
from collections.abc import Callable

Point = tuple[float, float]
"""A place and the function's value there."""
_PULL = 0.2
_MORE = 4


def crossing(function: Callable[[float], float], low: Point, high: Point, width: float) -> tuple[float, float]:
    """Return two places at most `width` apart: at the first the function was found above 0, at the second not.

    So are its values at `low` and `high`. It is asked at most 5 times more than in a bisection, and of smooth functions
    half as often.

    Reference: Oliveira, Takahashi 2020, "An enhancement of the bisection method average performance preserving minmax
    optimality", algorithm 1 with kappa_2 = 2.
    """
    (left, above), (right, below) = low, high
    pull = _PULL / (right - left)
    # Half of the longest bracket that a bisection could still make short enough in the evaluations that are left.
    longest = width / 2.0 * 2.0 ** (max(0, math.ceil(math.log2((right - left) / width))) + _MORE)
    while right - left > width:
        middle, secant = (left + right) / 2.0, (below * left - above * right) / (below - above)
        step = min(pull * (right - left) ** 2, abs(middle - secant))
        place = secant + math.copysign(step, middle - secant)
        room = max(0.0, longest - (right - left) / 2.0)
        place = min(max(place, middle - room), middle + room)
        value, longest = function(place), longest / 2.0
        if value > 0.0:
            left, above = place, value
        else:
            right, below = place, value
    return left, right
