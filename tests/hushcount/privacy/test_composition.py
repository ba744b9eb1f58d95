"""Composition against the exact hockey-stick divergence of the worst mechanisms, by enumeration."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.privacy.composition import Composed, Loss, basic, compose
from hushcount.privacy.joint import joint_epsilon, smaller


def exact_delta(losses: list[Loss], epsilon: float) -> float:
    """Return the smallest delta at epsilon that holds for all mechanisms of these losses, released together.

    Each is at worst: all told with probability delta, and randomised response of epsilon otherwise.
    """
    signs = np.array(list(product((1.0, -1.0), repeat=len(losses))))
    sizes = np.array([loss.epsilon for loss in losses])
    truth = np.exp(sizes * (signs > 0)).prod(axis=1) / (1.0 + np.exp(sizes)).prod()
    other = np.exp(sizes * (signs < 0)).prod(axis=1) / (1.0 + np.exp(sizes)).prod()
    hidden = math.prod(1.0 - loss.delta for loss in losses)
    return 1.0 - hidden + hidden * float(np.maximum(0.0, truth - math.exp(epsilon) * other).sum())


def exact_epsilon(losses: list[Loss], delta: float) -> float:
    """Return the smallest epsilon with `exact_delta` at most delta, by bisection."""
    low, high = 0.0, sum(loss.epsilon for loss in losses)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if exact_delta(losses, middle) <= delta else (middle, high)
    return high


CASES = [
    ([Loss(0.05, 1e-8)] * 10, 1e-6),
    ([Loss(0.01, 0.0)] * 12, 1e-3),
    ([Loss(1.0, 0.0)] * 8, 1e-5),
    ([Loss(0.5, 1e-4), Loss(0.1, 1e-5), Loss(2.0, 0.0), Loss(0.1, 0.0)], 1e-3),
    ([Loss(0.1 * step, 1e-9 * step) for step in range(1, 12)], 1e-6),
    ([Loss(0.0, 1e-7), Loss(0.3, 0.0), Loss(0.3, 0.0)], 1e-6),
]


def test_the_joint_bound_holds_and_is_near_the_optimum(subtests: pytest.Subtests) -> None:
    for losses, delta in CASES:
        with subtests.test(losses=losses, delta=delta):
            found = joint_epsilon(losses, delta)
            best = exact_epsilon(losses, delta)
            assert exact_delta(losses, found) <= delta
            assert best <= found <= best * (1 + 1 / 64) + 1e-12


def test_enumeration_rejects_what_is_too_small() -> None:
    """The law of one release fewer, and a thirtieth less epsilon: both would be caught above."""
    for losses, delta in CASES:
        fewer = sorted(losses, key=lambda loss: loss.epsilon)[:-1]
        assert exact_delta(losses, exact_epsilon(fewer, delta)) > delta
        assert exact_delta(losses, joint_epsilon(losses, delta) * (1 - 1 / 30)) > delta


def together(losses: list[Loss], delta: float) -> Composed:
    """Return the smaller bound, as the ledger does."""
    return smaller(compose(losses, delta), losses)


loss = st.builds(Loss, st.floats(0.001, 2.0), st.sampled_from([0.0, 1e-9, 1e-6]))


@settings(max_examples=40, deadline=None)
@given(st.lists(loss, min_size=1, max_size=8), st.sampled_from([1e-9, 1e-5, 1e-2]))
def test_what_is_composed_is_never_below_the_optimum(losses: list[Loss], delta: float) -> None:
    composed = together(losses, delta)
    assert composed == together(losses[::-1], delta)
    assert composed.delta == delta
    assert composed.epsilon <= (basic(losses).epsilon if basic(losses).delta <= delta else math.inf)
    if math.isfinite(composed.epsilon):
        # An enumeration in floats is wrong by a few 1e-16 itself.
        assert exact_delta(losses, composed.epsilon) <= delta * (1 + 1e-6) + 1e-15


def test_the_smaller_bound_is_named() -> None:
    """Few large losses add up as they are; many small ones do not."""
    assert together([Loss(50.0, 0.0)] * 3, 1e-40) == Composed(150.0, 1e-40, "basic")
    many = together([Loss(0.05, 1e-10)] * 1000, 1e-6)
    assert many.bound == "joint"
    assert 8.0 < many.epsilon < 9.0
    assert compose([Loss(0.05, 1e-10)], 1e-6) == Composed(0.05, 1e-6, "basic")
    assert together([], 1e-6) == Composed(0.0, 1e-6, "basic")


def test_sums_are_those_of_the_numbers_as_written() -> None:
    assert 0.1 + 0.1 + 0.1 > 0.3
    assert basic([Loss(0.1, 1e-9)] * 3) == Composed(0.3, 3e-9, "basic")
    assert compose([Loss(0.1, 1e-9)] * 3) == Composed(0.3, 3e-9, "basic")


def test_no_epsilon_makes_up_for_too_much_delta() -> None:
    assert compose([Loss(0.1, 1e-6)] * 3, 2e-6).epsilon == math.inf
    assert compose([Loss(0.1, 1e-6)], 0.0).epsilon == math.inf
    assert joint_epsilon([Loss(0.0, 1e-6)] * 3, 2e-6) == math.inf
    assert joint_epsilon([Loss(0.0, 1e-6)] * 3, 4e-6) == 0.0


def test_losses_out_of_range(subtests: pytest.Subtests) -> None:
    for epsilon in (-1.0, math.inf, math.nan):
        with subtests.test(epsilon=epsilon), pytest.raises(ValueError, match=f"epsilon is {epsilon},"):
            Loss(epsilon, 0.0)
    for delta in (1.0, -1e-9, math.nan):
        with subtests.test(delta=delta), pytest.raises(ValueError, match=f"delta is {delta},"):
            Loss(1.0, delta)


def test_a_delta_out_of_range(subtests: pytest.Subtests) -> None:
    for delta in (-1e-9, 1.0, math.nan):
        with subtests.test(delta=delta):
            with pytest.raises(ValueError, match=r"delta is .*,.*\[0, 1\)"):
                compose([Loss(1.0, 0.0)] * 2, delta)
            with pytest.raises(ValueError, match="delta is"):
                joint_epsilon([Loss(1.0, 0.0)] * 2, delta)
