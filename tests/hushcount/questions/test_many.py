"""Corrections for many p-values: as scipy's, and what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hushcount.questions.changes import benjamini_hochberg, bonferroni


def test_adjusted_p_values_are_those_of_scipy() -> None:
    random = np.random.default_rng(2)
    for size in (1, 2, 17, 300):
        p = np.round(random.random(size) ** 3, 2)
        assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p), rel=1e-12)
    assert len(benjamini_hochberg(np.empty(0))) == 0


def test_the_correction_for_any_mistake_multiplies() -> None:
    assert bonferroni(np.array([0.01, 0.2, 0.5])) == pytest.approx([0.03, 0.6, 1.0])
