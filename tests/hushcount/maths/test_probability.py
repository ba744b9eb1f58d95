"""Rounded probabilities: never more loss than asked, hardly less, and the stated loss is never too small."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hushcount.maths.probability import (
    epsilon_spent,
    probability_threshold,
    require_epsilon,
    spending_flip,
    spending_probability,
    spending_threshold,
    symmetric_threshold,
)
from hushcount.randomness import WORD_VALUES

epsilons = st.floats(1e-3, 40.0)
widths = st.integers(2, 100_000)


def exact_loss(threshold: int, width: int, size: int) -> Decimal:
    with localcontext() as context:
        context.prec = 80
        return (Decimal(threshold * (width - size)) / Decimal((WORD_VALUES - threshold) * size)).ln()


@given(epsilon=epsilons, width=widths, data=st.data())
def test_the_loss_never_exceeds_the_budget(epsilon: float, width: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, width - 1))
    threshold = spending_threshold(epsilon, width, size)
    assert exact_loss(threshold, width, size) <= Decimal(epsilon)
    assert epsilon_spent(threshold, width, size) <= epsilon


@given(epsilon=epsilons, width=widths, data=st.data())
def test_the_next_threshold_would_exceed_the_budget(epsilon: float, width: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, width - 1))
    threshold = spending_threshold(epsilon, width, size) + 1
    assume(threshold < WORD_VALUES)
    assert exact_loss(threshold, width, size) > Decimal(epsilon)


@given(epsilon=st.floats(1e-3, 12.0), width=st.integers(2, 1000), data=st.data())
def test_the_loss_is_the_budget_to_twelve_digits(epsilon: float, width: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, width - 1))
    # One step of 2**-64 moves the loss by 2**-64/(p(1-p)); 1 - p is smallest where s is nearly m.
    weight = math.exp(epsilon) * size
    step = 2.0**-64 * (weight + width - size) ** 2 / (weight * (width - size))
    spent = epsilon_spent(spending_threshold(epsilon, width, size), width, size)
    assert epsilon - spent <= max(1e-12, 2 * step)


@given(threshold=st.integers(1, WORD_VALUES - 1), width=widths, data=st.data())
def test_the_stated_loss_is_rounded_up_by_at_most_one_float(threshold: int, width: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, width - 1))
    stated, exact = epsilon_spent(threshold, width, size), exact_loss(threshold, width, size)
    assert Decimal(stated) >= exact
    assert Decimal(math.nextafter(stated, -math.inf)) < exact


@given(epsilon=st.floats(1e-3, 15.0), width=widths, data=st.data())
def test_plans_use_the_same_probability_in_floating_point(epsilon: float, width: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, width - 1))
    exact = spending_threshold(epsilon, width, size) / WORD_VALUES
    assert float(spending_probability(epsilon, width, size)) == pytest.approx(exact, rel=1e-14)


def test_a_bit_that_is_certain_has_no_odds(subtests: pytest.Subtests) -> None:
    for keep in (0, WORD_VALUES):
        with subtests.test(keep=keep):
            p = keep >> 64
            with pytest.raises(ValueError, match=rf"p is {p}, .*\b0\b.*\b1\b"):
                spending_flip(1.0, keep)


@given(probability=st.floats(0.0, 1.0))
def test_a_given_probability_is_rounded_down(probability: float) -> None:
    threshold = probability_threshold(probability)
    assert 0 <= Fraction(probability) * WORD_VALUES - threshold < 1


def test_what_is_no_probability_raises(subtests: pytest.Subtests) -> None:
    for probability in (-0.1, 1.1, math.nan, math.inf):
        message = rf"probability is {probability}, .*\[0, 1\]"
        with subtests.test(probability=probability), pytest.raises(ValueError, match=message):
            probability_threshold(probability)


def test_what_is_no_budget_raises(subtests: pytest.Subtests) -> None:
    for epsilon in (0.0, 9.9e-5, -1.0, 40.1, math.nan, math.inf, -math.inf):
        with subtests.test(epsilon=epsilon):
            with pytest.raises(ValueError, match=rf"budget is {epsilon}, .*\[0\.0001, 40\.0\]"):
                require_epsilon(epsilon, "budget")
            with pytest.raises(ValueError, match=rf"epsilon is {epsilon}"):
                spending_threshold(epsilon, 4, 1)
            with pytest.raises(ValueError, match=rf"epsilon is {epsilon}"):
                symmetric_threshold(epsilon)
            with pytest.raises(ValueError, match=rf"epsilon is {epsilon}"):
                spending_flip(epsilon, 1 << 63)
