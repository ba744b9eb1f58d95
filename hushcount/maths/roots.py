"""Find where a function falls below 0, in few evaluations."""

from __future__ import annotations

import math
from collections.abc import Callable

Point = tuple[float, float]
"""An argument, and the function's value at this argument."""
_PULL = 0.2
_MORE = 4


def crossing(function: Callable[[float], float], low: Point, high: Point, width: float) -> tuple[float, float]:
    """Return two arguments at most `width` apart: at the first the function is above 0, at the second it is not.

    The function must be above 0 at `low`, and not above 0 at `high`. The search takes at most 5 evaluations more than a
    bisection, and half as many as a bisection if the function is smooth.

    Reference: Oliveira, Takahashi 2020, "An enhancement of the bisection method average performance preserving minmax
    optimality", algorithm 1 with kappa_2 = 2.
    """
    (left, above), (right, below) = low, high
    pull = _PULL / (right - left)
    # Half of the longest bracket that a bisection can still shorten to `width` in the evaluations that are left.
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
