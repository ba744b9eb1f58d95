"""Bounds for statistical tests; every test that uses them fails on right code with probability at most FAILURE."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

FAILURE = 1e-6
"""The probability that one statistical test fails although the code is right."""

Floats = np.ndarray[Any, Any]


def deviations(tests: int = 1) -> float:
    """Return how many standard deviations a normal mean may miss, so that `tests` of them all hold."""
    return float(stats.norm.isf(FAILURE / (2 * tests)))


def chi_square_p(observed: Floats, law: Floats) -> float:
    """Return the p-value of the counts under the law. Sound down to FAILURE when every cell expects 25 or more."""
    expected = law / law.sum() * observed.sum()
    assert expected.min() >= 25.0, f"a cell expects {expected.min():.3g} only: draw more"
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return float(stats.chi2.sf(statistic, len(law) - 1))


def draws_to_tell_apart(law: Floats, *others: Floats) -> int:
    """Return how many draws make the chi-square test at FAILURE reject every other law, but with probability FAILURE.

    Under another law the statistic is about noncentral chi-square, with noncentrality proportional to the draws.
    """
    freedom = len(law) - 1
    critical = stats.chi2.isf(FAILURE, freedom)
    draws = math.ceil(25.0 / law.min())
    for other in others:
        distance = float(((other - law) ** 2 / law).sum())
        while stats.ncx2.cdf(critical, freedom, draws * distance) > FAILURE:
            draws = draws * 5 // 4
    return draws * 5 // 4


def variance_ratio_bounds(runs: int, tests: int = 1, kurtosis: float = 0.0) -> tuple[float, float]:
    """Return (low, high) of the mean of `runs` squared deviations over their true variance.

    Chi-square with `runs` degrees of freedom; an excess kurtosis stretches it by `sqrt(1 + kurtosis/2)`, which is the
    same as that many fewer runs.
    """
    freedom = runs / (1.0 + kurtosis / 2.0)
    tail = FAILURE / (2 * tests)
    return float(stats.chi2.ppf(tail, freedom)) / freedom, float(stats.chi2.isf(tail, freedom)) / freedom
