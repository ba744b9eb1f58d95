"""Quantiles of bins: intervals hold the truth as often as stated, and the error of T is that of its noise."""

from __future__ import annotations

import pytest
from scipy import stats

from benchmarks.calibration_numbers import LEAST, SHARES, Setting, held
from hushcount.errors import UsageError
from hushcount.questions.quantiles import quantiles
from tests.support.statistics import FAILURE

RUNS = 300
EVEN = Setting("ais", 1.0, 16, 2_000, "even")
BOUND = stats.binom.ppf(FAILURE, RUNS, LEAST) / RUNS
"""Intervals that hold the truth in 93.5 % are found to hold it in a smaller share with probability FAILURE."""


@pytest.mark.parametrize(
    "setting", [EVEN, Setting("grr", 3.0, 16, 500, "one bin"), Setting("hr", 2.0, 16, 2_000, "log-normal")]
)
def test_intervals_hold_the_truth(setting: Setting) -> None:
    came = held(setting, range(RUNS))
    assert (came.share >= BOUND).all()
    assert (came.width < setting.bins).all()


def test_intervals_of_a_smaller_confidence_are_refused() -> None:
    assert held(EVEN, range(RUNS), 0.5).share.min() < BOUND


def test_without_noise_the_quantile_is_the_truth() -> None:
    sure = Setting("grr", 40.0, 16, 2_000, "log-normal")
    (found,) = sure.found([0])
    assert [one.at for one in found.found] == [sure.truth(share) for share in SHARES]
    assert all(one.alone == one.together == (one.at, one.at) for one in found.found)


def test_intervals_of_many_are_wider() -> None:
    for found in EVEN.found(range(5)):
        for one in found.found:
            assert one.together[0] <= one.alone[0] <= one.at <= one.alone[1] <= one.together[1]


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 2.0, float("nan")])
def test_a_share_is_above_zero_and_below_one(share: float) -> None:
    with pytest.raises(UsageError, match="above 0 and below 1"):
        quantiles([], [share])
