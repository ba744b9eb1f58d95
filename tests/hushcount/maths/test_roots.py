"""Where a function falls through 0: the bracket holds the place, and few evaluations find it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.maths.roots import crossing

LOW, HIGH, WIDTH = -3.0, 5.0, 1e-6
BISECTIONS = math.ceil(math.log2((HIGH - LOW) / WIDTH))


def asked(function: Callable[[float], float]) -> int:
    """Check a bracket, and return how often the function was asked."""
    places: dict[float, float] = {}

    def kept(place: float) -> float:
        places[place] = function(place)
        return places[place]

    ends = (LOW, kept(LOW)), (HIGH, kept(HIGH))
    left, right = crossing(kept, *ends, WIDTH)
    # Not `right <= left + WIDTH`, whose sum is rounded.
    assert 0.0 < right - left <= WIDTH
    assert places[left] > 0.0 >= places[right]
    return len(places) - 2


@given(st.floats(LOW + 1e-3, HIGH), st.floats(1e-3, 1e3), st.floats(1e-6, 10.0), st.booleans())
def test_whatever_falls_is_found_in_little_more_than_a_bisection(
    root: float, steep: float, floor: float, jumps: bool
) -> None:
    def falls(place: float) -> float:
        fall = (1.0 if place < root else -1.0) if jumps else steep * (root - place) ** 3
        return max(fall, -floor)

    assert asked(falls) <= BISECTIONS + 5


def test_a_smooth_function_takes_half_as_many(subtests: pytest.Subtests) -> None:
    for function in (lambda x: 1.0 - x, lambda x: 4.0 - math.exp(x), lambda x: 9.3 - (x + 3.0) ** 2):
        with subtests.test(function=function):
            assert asked(function) <= BISECTIONS // 2


def test_a_function_that_also_rises_has_a_bracket_too() -> None:
    asked(lambda x: math.cos(3.0 * x) - 0.1 * x + 0.4)
