"""Lower bounds: the printed values, no frequency oracle below them, and the optimal ones upon them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.maths.bounds import largest_l1, least_l2
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import CATALOGUE, build, plan

SEED = "5eed" * 16
N = 10_000


def l2_loss(name: str, epsilon: float, domain: int) -> float:
    """Return the exact l2 loss of an oracle planned for it, in shares squared; its worst where blocks matter."""
    mechanism = build(name, epsilon, domain, plan(name, epsilon, domain, {}, Objective("l2"), SEED))
    return domain * float(mechanism.variance(N, 1.0 / domain)) / N**2


def test_the_bound_of_one_hundred_items() -> None:
    assert least_l2(1.0, 100, N) == pytest.approx(0.0359951, abs=5e-8)


def test_how_far_above_the_bound_the_planned_systems_are(subtests: pytest.Subtests) -> None:
    # Within half a unit of the last digit.
    cases = [
        (100, 1.0, 1.00027, 1.0030, 1.0030),
        (100, 3.0, 1.0017, 1.0050, 1.0031),
        (1000, 5.0, 1.0010, 1.0027, 1.0011),
        (26_000, 0.5, 1.000000, 1.0094, 1.0094),
        (26_000, 1.0, 1.000000, 1.0024, 1.0024),
    ]
    for domain, epsilon, ais, rounded, exact in cases:
        with subtests.test(domain=domain, epsilon=epsilon):
            bound = least_l2(epsilon, domain, N)
            assert l2_loss("ais", epsilon, domain) / bound == pytest.approx(ais, abs=5e-5 if ais > 1.0005 else 5e-6)
            assert l2_loss("ocms-round", epsilon, domain) / bound == pytest.approx(rounded, abs=5e-5)
            assert l2_loss("ocms", epsilon, domain) / bound == pytest.approx(exact, abs=5e-5)


def test_no_system_is_below_the_bound(subtests: pytest.Subtests) -> None:
    for name in CATALOGUE:
        with subtests.test(name=name):
            for epsilon in (0.1, 0.7, 1.0, 2.5, 5.0):
                for domain in (2, 3, 5, 12, 50, 100):
                    assert l2_loss(name, epsilon, domain) >= least_l2(epsilon, domain, N) * (1.0 - 1e-9)


@given(epsilon=st.floats(0.05, 6.0), domain=st.integers(2, 500))
def test_randomised_response_meets_it_in_small_dictionaries_and_subsets_of_whole_size_in_large_ones(
    epsilon: float, domain: int
) -> None:
    if domain <= math.exp(epsilon) + 1.0:
        assert l2_loss("grr", epsilon, domain) == pytest.approx(least_l2(epsilon, domain, N), rel=1e-9)
    # Where d/(e+1) is whole, subset selection needs no rounding.
    size = max(1, domain // 7)
    whole = math.log(6.0)
    assert l2_loss("ss", whole, 7 * size) == pytest.approx(least_l2(whole, 7 * size, N), rel=1e-9)


@given(domain=st.integers(3, 10**6))
def test_both_forms_agree_where_they_meet(domain: int) -> None:
    meeting = math.log(domain - 1.0)
    below, above = least_l2(meeting * (1 - 1e-9), domain, N), least_l2(meeting * (1 + 1e-9), domain, N)
    assert below == pytest.approx(above, rel=1e-6)


@given(epsilon=st.floats(0.05, 10.0), domain=st.integers(2, 10**6), n=st.integers(1, 10**9))
def test_the_bound_falls_with_reports_and_budget(epsilon: float, domain: int, n: int) -> None:
    assert least_l2(epsilon, domain, 4 * n) == pytest.approx(least_l2(epsilon, domain, n) / 4.0, rel=1e-12)
    assert least_l2(epsilon * 1.01, domain, n) < least_l2(epsilon, domain, n)


@given(variances=st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=30))
def test_l1_of_normal_errors_is_at_most_what_goes_with_their_l2(variances: list[float]) -> None:
    # E|error| = sqrt(2/pi) sigma for each; equality where all are alike.
    deviations = np.sqrt(variances)
    l1 = math.sqrt(2.0 / math.pi) * deviations.sum()
    assert l1 <= largest_l1(sum(variances), len(variances)) * (1 + 1e-12)
    alike = np.full(len(variances), deviations[0])
    assert math.sqrt(2.0 / math.pi) * alike.sum() == pytest.approx(largest_l1((alike**2).sum(), len(alike)), rel=1e-12)


def test_the_printed_l1_without_the_number_of_items_is_too_small() -> None:
    # [P26] Proposition 1 prints sqrt(2 l2 / pi): below what any data with these variances have.
    deviations = np.array([0.1, 0.2, 0.1, 0.3])
    l1, l2 = math.sqrt(2.0 / math.pi) * deviations.sum(), float((deviations**2).sum())
    assert math.sqrt(2.0 * l2 / math.pi) < l1 <= largest_l1(l2, 4)
