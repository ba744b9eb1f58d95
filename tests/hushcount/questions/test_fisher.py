"""Fisher's test for many pairs at once: as scipy's, exact at any size, and never more often than stated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hushcount.questions.comparing import fisher


def both(before: list[int], after: list[int], n_before: int, n_after: int) -> np.ndarray:
    trials = np.full(len(before), n_before), np.full(len(before), n_after)
    found: np.ndarray = fisher(np.array(before), np.array(after), *trials)
    return found


def test_p_values_are_those_of_scipy() -> None:
    random = np.random.default_rng(1)
    for _ in range(40):
        n, m = (int(each) for each in random.integers(1, 200, 2) * random.choice([1, 50]))
        chance = random.random() ** 3
        first, second = int(random.binomial(n, chance)), int(random.binomial(m, chance * random.random()))
        expected = stats.fisher_exact([[first, n - first], [second, m - second]]).pvalue
        assert both([first], [second], n, m)[0] == pytest.approx(expected, rel=1e-9)


def test_with_many_reports_a_few_supports_are_a_fair_coin() -> None:
    """Given their sum, two counts of equal rate and endless trials are Bin(K, 1/2); with twice the trials, 1/3."""
    expected = [stats.binomtest(k, 30).pvalue for k in (5, 15, 24)]
    assert both([25, 15, 6], [5, 15, 24], 10**12, 10**12) == pytest.approx(expected, rel=1e-9)
    third = [stats.binomtest(k, 30, 1 / 3).pvalue for k in (2, 10, 20)]
    assert both([28, 20, 10], [2, 10, 20], 2 * 10**12, 10**12) == pytest.approx(third, rel=1e-9)


def test_a_null_change_is_found_no_more_often_than_stated(subtests: pytest.Subtests) -> None:
    """Exact, over both binomial laws; the normal law may exceed its rate."""
    for n, m, chance, worse in ((40, 40, 0.1, True), (150, 20, 0.04, True), (60, 30, 0.97, False)):
        with subtests.test(n=n, m=m):
            first, second = (each.ravel() for each in np.meshgrid(np.arange(n + 1), np.arange(m + 1)))
            weights = stats.binom.pmf(first, n, chance) * stats.binom.pmf(second, m, chance)
            p = fisher(first, second, np.full(len(first), n), np.full(len(first), m))
            for alpha in (0.001, 0.01, 0.05, 0.3):
                assert weights[p <= alpha].sum() <= alpha
            pooled = (first + second) / (n + m)
            error = np.sqrt(np.maximum(pooled * (1.0 - pooled) * (1 / n + 1 / m), 1e-12))
            normal = 2.0 * stats.norm.sf(np.abs(first / n - second / m) / error)
            assert (max(weights[normal <= alpha].sum() / alpha for alpha in (0.001, 0.01, 0.05)) > 1.05) == worse


def test_nothing_and_everything_are_no_evidence() -> None:
    assert both([0, 10], [0, 20], 10, 20) == pytest.approx([1.0, 1.0])
