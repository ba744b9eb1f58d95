"""Limits of differences and ratios from those of both sides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.questions.mover import Limited, difference_limits, ratio_limits


def limited(value: float, low: float, high: float) -> Limited:
    return Limited(np.array([value]), np.array([low]), np.array([high]))


def ratio(before: Limited, after: Limited) -> tuple[float, float]:
    low, high = ratio_limits(before, after)
    return float(low[0]), float(high[0])


PART = st.floats(0.001, 0.3)


@settings(max_examples=50)
@given(PART, PART, st.tuples(PART, PART, PART, PART))
def test_at_its_limits_a_ratio_leaves_no_difference(a: float, b: float, parts: tuple[float, ...]) -> None:
    """So the set of ratios is that of `after - r before`, solved for r."""
    before = limited(a, a * (1.0 - parts[0]), a + parts[1])
    after = limited(b, b * (1.0 - parts[2]), b + parts[3])
    low, high = ratio(before, after)
    assert 0.0 < low < b / a < high
    for r, side in ((low, 0), (high, 1)):
        scaled = Limited(r * before.value, r * before.low, r * before.high)
        assert difference_limits(scaled, after)[side][0] == pytest.approx(0.0, abs=1e-12 * max(1.0, r))


def test_equal_widths_are_added_in_squares() -> None:
    low, high = difference_limits(limited(0.3, 0.27, 0.33), limited(0.5, 0.46, 0.54))
    assert (low[0], high[0]) == pytest.approx((0.15, 0.25))


def test_a_ratio_to_what_may_be_nothing_has_no_upper_limit() -> None:
    assert ratio(limited(0.01, -0.01, 0.03), limited(0.2, 0.18, 0.22))[1] == np.inf
    assert ratio(limited(0.01, -0.01, 0.03), limited(0.2, 0.18, 0.22))[0] > 5.0
    assert ratio(limited(-0.01, -0.03, 0.01), limited(0.2, 0.18, 0.22))[0] > 15.0
    assert ratio(limited(0.2, 0.18, 0.22), limited(0.01, -0.01, 0.03)) == pytest.approx((0.0, 0.15), abs=0.01)
    assert ratio(limited(-0.01, -0.02, 0.01), limited(-0.01, -0.02, 0.01)) == (0.0, np.inf)


def test_what_is_certainly_nothing_before_has_grown_without_limit() -> None:
    assert ratio(limited(0.0, 0.0, 0.0), limited(0.2, 0.18, 0.22)) == (np.inf, np.inf)
