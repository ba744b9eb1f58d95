"""Shares in strata: intervals hold the truth as often as stated, and a stratum that may be empty has no share."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from benchmarks.calibration_strata import GROUPS, Setting, held
from hushcount.questions.counted import Group
from hushcount.questions.shares import StratumShares, stratum_shares
from tests.support.statistics import FAILURE

RUNS = 300
LEAST, MOST = stats.binom.ppf(FAILURE, RUNS, 0.935) / RUNS, stats.binom.isf(FAILURE, RUNS, 0.965) / RUNS
"""Bounds for intervals that hold the truth in 93.5 to 96.5 %: each is crossed with probability FAILURE."""
SMALL = Setting("ais", 4.0, 8, 2_000)


@pytest.mark.parametrize("setting", [SMALL, Setting("hr", 3.0, 8, 4_000), Setting("oue", 3.0, 8, 4_000)])
def test_intervals_hold_the_truth(setting: Setting) -> None:
    came, known = held(setting, range(RUNS))
    sure = known.all(axis=0)
    assert sure.sum() >= 3
    assert ((came.mean(axis=0) >= LEAST) & (came.mean(axis=0) <= MOST))[sure].all()


def test_intervals_of_a_smaller_confidence_are_refused() -> None:
    came, _ = held(SMALL, range(RUNS), 0.8)
    assert came.mean(axis=0).max() < LEAST


def test_the_standard_error_is_that_of_the_ratio_and_not_of_independent_counts() -> None:
    found = [stratum_shares([one], GROUPS) for one in SMALL.results(range(RUNS))]
    shares, errors = (np.array([getattr(one, name) for one in found]) for name in ("share", "standard_error"))
    least, most = stats.chi2.ppf([FAILURE / 10, 1.0 - FAILURE / 10], RUNS - 1) / (RUNS - 1)
    ratio = shares.var(axis=0, ddof=1) / (errors**2).mean(axis=0)
    assert ((ratio > least) & (ratio < most)).all()
    group, _, stratum = found[0].variances
    apart = np.sqrt(group + shares[0] ** 2 * stratum) / found[0].stratum
    several = [group.name for group in GROUPS].index("several")
    assert (shares.var(axis=0) / apart**2)[several] < least, "a group's count rises and falls with its stratum's"


def test_a_stratum_that_may_be_empty_has_no_share() -> None:
    """Of 300 reports about 10 are of this stratum: its count is significant in 5 % of the runs at most."""
    empty, known = [Group("one", ("item 0",), (("version", "other"), ("platform", "windows")))], 0
    setting = Setting("ais", 0.5, 8, 300)
    for one in setting.results(range(RUNS)):
        found = stratum_shares([one], empty)
        if found.known(0.95)[0]:
            known += 1
        else:
            assert [end.tolist() for end in found.interval(0.95)] == [[0.0], [1.0]]
    assert known <= stats.binom.isf(FAILURE, RUNS, 0.05)


def test_without_noise_the_share_is_the_truth() -> None:
    sure = Setting("grr", 40.0, 8, 2_000)
    found = stratum_shares([*sure.results([0])], GROUPS)
    truth = [sure.truth(group) for group in GROUPS]
    assert found.share == pytest.approx(truth)
    for end in found.interval(0.95):
        assert end == pytest.approx(truth, abs=1e-6)


def test_an_interval_is_the_set_of_shares_that_are_not_excluded() -> None:
    """By hand: A = 100 and C = 300 with variances 100 and 300, independent, at z = 1.96."""
    one = StratumShares(np.array([100.0]), np.array([400.0]), (np.array([100.0]), np.array([300.0]), np.array([400.0])))
    (low,), (high,) = one.interval(0.95)
    for end in (low, high):
        score, variance = (1 - end) * 100 - end * 300, (1 - end) ** 2 * 100 + end**2 * 300
        assert abs(score) == pytest.approx(stats.norm.isf(0.025) * variance**0.5)
    assert low < 0.25 < high
    assert one.interval(0.95, looks=10)[0][0] < low
