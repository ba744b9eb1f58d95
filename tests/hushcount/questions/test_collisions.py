"""Squared differences of counts in one pool, estimated from two sketches."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.calibration_changes import Scene, zipf
from hushcount.oracles.simulation import fresh_functions
from hushcount.questions.collisions import pool_of, weighted_squares
from tests.support.statistics import deviations

BEFORE = zipf(30)
AFTER = BEFORE[::-1].copy()


def scenes(oracle: str, epsilon: float) -> Scene:
    parameters = {"k": 16, "m": 16, "s": 2} if oracle == "gcms" else {"k": 16, "m": 16}
    return Scene(oracle, oracle, epsilon, BEFORE, (1000, 1500), AFTER, parameters)


@pytest.mark.parametrize(("oracle", "epsilon"), [("gcms", 3.0), ("gcms", 2.0), ("hcms", 3.0), ("rappor", 4.0)])
@pytest.mark.long(but=("gcms-2.0",))
def test_squared_differences_follow_from_two_sketches_of_one_pool(oracle: str, epsilon: float) -> None:
    """Fails with probability below 1e-6: unbiased, also if the two sketches are of other mechanisms over one pool.

    Squares of both alone, or half and twice the difference, are rejected.
    """
    first, second, found = scenes("gcms", 3.0), scenes(oracle, epsilon), []
    for run in range(120):
        seed = fresh_functions(3, run)
        before, after = first.counted(first.campaign(seed), 0, run), second.counted(second.campaign(seed), 1, run)
        pools = {pool_of(each.campaign.require_frequency()) for each in (before, after)}
        assert len(pools) == 1
        found.append(weighted_squares([(before, -1 / 1000), (after, 1 / 1500)]))
    # The clients are a sample.
    sample = sum(((1.0 - (shares**2).sum()) / n) for shares, n in ((BEFORE, 1000), (AFTER, 1500)))
    expected = float(((AFTER - BEFORE) ** 2).sum() + sample)
    error = 1.25 * deviations() * np.std(found) / math.sqrt(len(found))
    assert abs(np.mean(found) - expected) <= error
    for wrong in (2.0 * (BEFORE**2).sum(), 0.5 * expected, 2.0 * expected):
        assert abs(np.mean(found) - wrong) > error
