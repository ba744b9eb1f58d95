"""Differences between strata: found if there are any, as seldom as stated if there are none, with their covariance."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from benchmarks.calibration_strata import AXES, Setting
from hushcount.questions.counted import Group
from hushcount.questions.stratum_changes import StratumPairs, stratum_pairs
from tests.support.statistics import FAILURE

RUNS = 200
EVEN = Setting("grr", 8.0, 8, 2_000)
GROUPS = (("item 0",), ("item 0", "item 1"))


def pairs(setting: Setting, before: str = "linux", after: str = "mac os", run: int = 0) -> StratumPairs:
    first, second = ([Group("one", items, (("platform", at),)) for items in GROUPS] for at in (before, after))
    return stratum_pairs([*setting.results([run])], first, second)


@pytest.fixture(scope="module")
def drawn() -> list[StratumPairs]:
    """Of other people each time, who have the items equally often in both strata."""
    return [pairs(replace(EVEN, draw=draw), run=draw) for draw in range(RUNS)]


def test_equal_shares_are_said_to_differ_as_seldom_as_stated(drawn: list[StratumPairs]) -> None:
    p = np.array([one.p_value for one in drawn])
    for level in (0.05, 0.3):
        assert ((p <= level).sum(axis=0) <= stats.binom.isf(FAILURE, RUNS, level)).all()
        assert ((p <= level).sum(axis=0) >= stats.binom.ppf(FAILURE, RUNS, level)).all()
    excluded = np.array([(low > 0.0) | (high < 0.0) for low, high in (one.difference(0.025) for one in drawn)])
    assert (excluded.sum(axis=0) <= stats.binom.isf(FAILURE, RUNS, 0.05)).all()


def test_the_error_is_that_of_people_who_are_drawn(drawn: list[StratumPairs]) -> None:
    difference = np.array([one.after.share - one.before.share for one in drawn])
    least, most = stats.chi2.ppf([FAILURE, 1.0 - FAILURE], RUNS - 1) / (RUNS - 1)
    deviations = difference / np.array([one.error for one in drawn])
    assert ((deviations.var(axis=0, ddof=1) > least) & (deviations.var(axis=0, ddof=1) < most)).all()
    alone = difference / [np.hypot(one.before.standard_error, one.after.standard_error) for one in drawn]
    assert (alone.var(axis=0, ddof=1) > most).all(), "noise of responses alone is too small"


def test_a_difference_is_found() -> None:
    found = pairs(replace(EVEN, moved=0.6))
    assert found.p_value[0] < FAILURE
    low, high = found.difference(0.025)
    assert 0.0 < low[0] < found.after.share[0] - found.before.share[0] < high[0]
    turned = pairs(replace(EVEN, moved=0.6), "mac os", "linux")
    assert turned.p_value == pytest.approx(found.p_value, rel=1e-6)
    assert turned.difference(0.025)[1] == pytest.approx(-low)


@pytest.mark.parametrize(("mechanism", "epsilon"), [("ss", 1.0), ("grr", 4.0)])
def test_covariances_of_strata_add_up_to_nothing_where_all_counts_are_the_reports(
    mechanism: str, epsilon: float
) -> None:
    """Each report supports equally many cells, so the counts of all strata add up to n without an error."""
    setting, total = Setting(mechanism, epsilon, 8, 20_000), 0.0
    coordinates = (*AXES["platform"], "other")
    for before, after in combinations(coordinates, 2):
        found = pairs(setting, before, after)
        total += 2.0 * found.covariances[1, 1, 0]
        variances = found.before.variances[2][0] + found.after.variances[2][0]
        # Each stratum is in three of the six pairs.
        total += variances / (len(coordinates) - 1)
        assert -variances / 2.0 < found.covariances[1, 1, 0] < -0.01 * variances
    assert abs(total) < 1e-6 * variances
