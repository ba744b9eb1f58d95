"""Amplification by shuffling: the closed form of [J] Theorem 1."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.privacy.amplification import closed_form_epsilon


@pytest.mark.parametrize(
    ("epsilon", "reports", "delta", "printed"),
    [
        (1.0, 10**4, 1e-6, 0.1800),
        (1.0, 10**5, 1e-8, 0.0686),
        (2.0, 10**6, 1e-8, 0.0541),
        (4.0, 10**6, 1e-8, 0.1665),
        (5.0, 10**7, 1e-8, 0.0917),
    ],
)
def test_reference_values(epsilon: float, reports: int, delta: float, printed: float) -> None:
    assert closed_form_epsilon(epsilon, reports, delta) == pytest.approx(printed, abs=5e-5)


@given(st.floats(0.1, 8.0), st.integers(1, 10**7), st.floats(1e-12, 0.5))
def test_none_exactly_where_the_theorem_does_not_apply(epsilon: float, reports: int, delta: float) -> None:
    room = reports / (8.0 * math.log(2.0 / delta)) - 1.0
    applies = room > 0.0 and epsilon <= math.log(room)
    found = closed_form_epsilon(epsilon, reports, delta)
    assert (found is not None) == applies
    assert found is None or 0.0 < found <= epsilon


@pytest.mark.parametrize("reports", [0, 1, 100])
def test_too_few_reports_give_none(reports: int) -> None:
    assert closed_form_epsilon(1.0, reports, 1e-6) is None


def test_more_reports_lose_less_and_a_smaller_delta_costs() -> None:
    by_reports = [closed_form_epsilon(1.0, 10**power, 1e-8) for power in (4, 5, 6, 7)]
    assert by_reports == sorted(by_reports, reverse=True)
    by_delta = [closed_form_epsilon(1.0, 10**6, 10.0**-power) for power in (4, 6, 8, 10)]
    assert by_delta == sorted(by_delta)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0, math.nan])
def test_a_delta_that_is_none_raises(delta: float) -> None:
    with pytest.raises(ValueError, match=rf"delta is {delta}, must be in \(0, 1\)"):
        closed_form_epsilon(1.0, 1000, delta)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_an_epsilon_that_is_none_raises(epsilon: float) -> None:
    with pytest.raises(ValueError, match=rf"epsilon is {epsilon}, must be above 0"):
        closed_form_epsilon(epsilon, 10**6, 1e-8)
