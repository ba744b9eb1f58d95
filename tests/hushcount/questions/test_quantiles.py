"""Quantiles of bins: intervals hold the truth as often as stated, and the error of T is that of its noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benchmarks.calibration_numbers import LEAST, SHARES, Setting, held
from hushcount.errors import UsageError
from hushcount.numbers import Bins
from hushcount.questions.quantiles import Sums, changes, quantiles, sums_of
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


def test_intervals_of_all_people_hold_their_quantile_and_those_of_clients_do_not() -> None:
    fine = Setting("grr", 40.0, 60, 500, "even")
    truth = [int(np.argmax(fine.shares[:-1].cumsum() >= share * fine.shares[:-1].sum())) for share in SHARES]
    runs = 100
    bound = stats.binom.ppf(FAILURE, runs, LEAST) / runs
    draws = [replace(fine, draw=draw) for draw in range(runs)]
    for sampled in (True, False):
        hits = np.zeros(len(SHARES))
        for draw in draws:
            (found,) = draw.found([0], sampled=sampled)
            hits += [one.alone[0] <= place <= one.alone[1] for one, place in zip(found.found, truth, strict=True)]
        assert (hits / runs >= bound).all() == sampled


def test_a_quantile_of_the_same_people_is_seldom_said_to_change_and_a_true_rise_is_found() -> None:
    fine, rises = Setting("grr", 6.0, 60, 2_000, "log-normal"), 0
    for draw in range(0, 100, 2):
        before, after = (sums_of([*replace(fine, draw=seed).results([seed])]) for seed in (draw, draw + 1))
        rises += sum(one.alone[0] > 0.0 or one.alone[1] < 0.0 for one in changes(before, after, SHARES))
    # Of intervals that hold 0 in 95 %, more exclude it with probability FAILURE.
    assert rises <= stats.binom.isf(FAILURE, 150, 0.05)
    before, after = (sums_of([*replace(fine, shape=shape).results([0])]) for shape in ("log-normal", "even"))
    found = changes(before, after, (0.9,), looks=10)
    assert found[0].alone[0] >= found[0].together[0] > 0.0
    assert changes(after, before, (0.9,))[0].alone[1] < 0.0


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 2.0, float("nan")])
def test_a_share_is_above_zero_and_below_one(share: float) -> None:
    with pytest.raises(UsageError, match="above 0 and below 1"):
        quantiles(sums_of([next(EVEN.results([0]))]), [share])


@pytest.mark.parametrize("total", [-100.0, 0.0, 249.0, 251.0, 4_000.0])
def test_quantiles_are_unknown_unless_there_are_surely_numbers(total: float) -> None:
    """The sum of all bins, with an error of 100, must be 2.5 errors above 0: five intervals hold together."""
    below = np.linspace(0.0, total, 9)[1:-1]
    errors = np.full(15, 100.0)
    counts = np.concatenate([below, total - below, [total]])
    sums = Sums.of(5_000, Bins(tuple(map(str, range(1, 8)))), counts, errors, np.zeros(15))
    found = quantiles(sums, [0.5], looks=4)
    assert found.are_known == (total > 250.0)
    assert (found.found[0].alone == (0, 7)) == (total < 1_000.0)
