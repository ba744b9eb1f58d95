"""Adjusted counts: each does what it says, and has the bias that it says, no other."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hushcount.adjusting import non_negative, norm_sub, sum_to
from hushcount.arrays import Reports
from hushcount.oracles.catalogue import build
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.tally import Tally
from tests.hushcount.oracles.cases import CASES, Case, each
from tests.support.enumeration import all_reports, supported
from tests.support.statistics import deviations
from tests.support.words import SeededWords

COUNTS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30).map(np.array)
TOTALS = st.floats(0.0, 1e6)
TOLERANCE = 1e-6
"""Users: rounding of sums of at most thirty counts of at most a million."""


def ordered(counts: np.ndarray, adjusted: np.ndarray) -> bool:
    """Return whether no two items have changed places."""
    return bool(np.all(np.diff(adjusted[np.argsort(counts, kind="stable")]) >= 0.0))


@given(counts=COUNTS)
def test_non_negative_changes_negative_counts_only(counts: np.ndarray) -> None:
    adjusted = non_negative(counts)
    assert np.array_equal(adjusted, np.where(counts < 0.0, 0.0, counts))
    assert np.array_equal(non_negative(adjusted), adjusted)
    assert ordered(counts, adjusted)


@given(counts=COUNTS, total=st.floats(-1e6, 1e6))
def test_sum_to_shifts_all_alike(counts: np.ndarray, total: float) -> None:
    adjusted = sum_to(counts, total)
    assert adjusted.sum() == pytest.approx(total, abs=TOLERANCE)
    assert np.ptp(adjusted - counts) <= TOLERANCE
    assert sum_to(adjusted, total) == pytest.approx(adjusted, abs=TOLERANCE)
    assert ordered(counts, adjusted)


@given(counts=COUNTS, total=TOTALS)
def test_norm_sub_is_non_negative_with_the_sum(counts: np.ndarray, total: float) -> None:
    adjusted = norm_sub(counts, total)
    assert np.all(adjusted >= 0.0)
    assert adjusted.sum() == pytest.approx(total, abs=TOLERANCE)
    assert norm_sub(adjusted, total) == pytest.approx(adjusted, abs=TOLERANCE)
    assert ordered(counts, adjusted)


# Norm-Sub is the projection on the simplex.


def is_projection(counts: np.ndarray, adjusted: np.ndarray, total: float) -> bool:
    """Return whether the point meets the Karush-Kuhn-Tucker conditions, which only the nearest one does.

    Minimise `|x - counts|^2` over `x >= 0, sum x = total`: strictly convex, so a feasible x is the minimum exactly if
    some t has `counts - x = t` where x is above 0 and `counts <= t` where it is 0.
    """
    kept = adjusted > TOLERANCE
    shifts = (counts - adjusted)[kept]
    least = shifts.max() if kept.any() else np.inf
    return bool(
        np.all(adjusted >= 0.0)
        and abs(adjusted.sum() - total) <= TOLERANCE
        and (not kept.any() or np.ptp(shifts) <= TOLERANCE)
        and np.all(counts[~kept] <= least + 2.0 * TOLERANCE)
    )


@given(counts=COUNTS, total=st.floats(1e-3, 1e6))
def test_norm_sub_is_the_nearest_point_of_the_simplex(counts: np.ndarray, total: float) -> None:
    assert is_projection(counts, norm_sub(counts, total), total)


def test_the_conditions_reject_other_consistent_counts() -> None:
    counts, total = np.array([50.0, 30.0, 5.0, -10.0, -20.0]), 60.0
    clipped = np.maximum(counts, 0.0)
    assert is_projection(counts, norm_sub(counts, total), total)
    assert not is_projection(counts, clipped * total / clipped.sum(), total), "Norm-Mul"
    assert not is_projection(counts, np.array([50.0, 10.0, 0.0, 0.0, 0.0]), total), "Norm-Cut, its last item cut down"
    assert not is_projection(counts, np.full(5, 12.0), total)
    assert not is_projection(counts, sum_to(counts, total), total), "negative"
    assert not is_projection(counts, clipped, total), "another sum"


def test_norm_sub_in_plain_cases() -> None:
    assert norm_sub(np.array([3.0, 2.0, -5.0]), 5.0).tolist() == [3.0, 2.0, 0.0]
    assert norm_sub(np.array([4.0, 3.0, 1.0]), 5.0).tolist() == [3.0, 2.0, 0.0]
    assert norm_sub(np.array([-4.0, -5.0]), 5.0).tolist() == [3.0, 2.0]
    assert norm_sub(np.array([7.0, 2.0]), 0.0).tolist() == [0.0, 0.0]
    assert norm_sub(np.array([-3.0]), 8.0).tolist() == [8.0]
    assert norm_sub(np.zeros(4), 10.0).tolist() == [2.5] * 4
    # Exact to the total's own precision, however large the counts are that move together.
    assert norm_sub(np.array([1e12, 1e12 - 2.0, 0.0]), 4.0).tolist() == [3.0, 1.0, 0.0]


def test_counts_that_cannot_be_adjusted(subtests: pytest.Subtests) -> None:
    for counts in ([], [[1.0, 2.0]], [1.0, np.nan], [np.inf]):
        with subtests.test(counts=counts):
            for adjust in (non_negative, lambda x: sum_to(x, 1.0), lambda x: norm_sub(x, 1.0)):
                with pytest.raises(ValueError, match="counts"):
                    adjust(np.array(counts, dtype=np.float64))


def test_totals_out_of_range(subtests: pytest.Subtests) -> None:
    for total in (np.nan, np.inf, -1.0):
        with subtests.test(total=total):
            with pytest.raises(ValueError, match=rf"total is {total},.*finite.* 0"):
                norm_sub(np.ones(2), total)
            if total != -1.0:
                with pytest.raises(ValueError, match=rf"total is {total},.*finite number$"):
                    sum_to(np.ones(2), total)


# Their biases, simulated with a real mechanism: five items are held, 95 by nobody.

HELD = np.array([500, 250, 150, 70, 30] + [0] * 95)
N = int(HELD.sum())
RUNS = 3000
NOBODY = HELD == 0
FREQUENT = HELD >= 250


def mechanism():
    return build("ais", 1.0, len(HELD), {"s": 27})


@lru_cache(maxsize=1)
def counts() -> np.ndarray:
    """Return float64[runs, items]: unbiased estimates."""
    items = np.arange(len(HELD), dtype=np.uint64)
    frequency = mechanism()
    found = []
    for start in range(0, RUNS, 500):
        reports = frequency.encode(np.tile(np.repeat(items, HELD), 500), SeededWords(start))
        for run in range(500):
            tally = frequency.new_tally(items)
            frequency.accumulate(tally, reports[run * N : (run + 1) * N], items)
            found.append(frequency.estimate(Tally(tally, N, items), items).count)
    return np.array(found)


def bias(adjusted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each item's mean error with what chance may make of it, at FAILURE for all items together."""
    error = adjusted.std(axis=0) / np.sqrt(RUNS)
    return adjusted.mean(axis=0) - HELD, deviations(len(HELD)) * error


@pytest.mark.long
def test_estimates_and_their_shift_to_the_true_sum_have_no_bias() -> None:
    """Fails with probability below 1e-6 each; a total that is ten per cent off is seen in the mean of all items."""
    for adjusted in (counts(), np.array([sum_to(run, N) for run in counts()])):
        off, chance = bias(adjusted)
        assert np.all(np.abs(off) <= chance)
    off, chance = bias(np.array([sum_to(run, 0.8 * N) for run in counts()]))
    assert off.mean() == pytest.approx(-0.2 * N / len(HELD), abs=chance.mean() / np.sqrt(len(HELD)))
    assert abs(off.mean()) > chance.mean() / np.sqrt(len(HELD))


def test_clipping_lifts_rare_items_by_the_stated_amount() -> None:
    """Fails with probability below 1e-6; the law is normal but for 2 % of a standard error, no bias is rejected."""
    off, chance = bias(np.array([non_negative(run) for run in counts()]))
    spread = np.sqrt(mechanism().variance(N, HELD / N))
    law = spread * stats.norm.pdf(HELD / spread) - HELD * stats.norm.cdf(-HELD / spread)
    assert np.all(np.abs(off - law) <= chance + 0.02 * spread)
    assert np.all(off[NOBODY] > chance[NOBODY])
    assert law[NOBODY] == pytest.approx(0.399 * spread[NOBODY], rel=1e-3)
    assert np.all(np.abs(off[FREQUENT]) <= chance[FREQUENT])
    assert HELD.sum() + off.sum() > 3.0 * N


def test_norm_sub_lifts_rare_items_and_lowers_frequent_ones() -> None:
    """Fails with probability below 1e-6: both signs are clear of chance, and the sum is right in every run."""
    adjusted = np.array([norm_sub(run, N) for run in counts()])
    off, chance = bias(adjusted)
    assert np.all(off[NOBODY] > chance[NOBODY])
    assert np.all(off[FREQUENT] < -chance[FREQUENT])
    assert adjusted.sum(axis=1) == pytest.approx(np.full(RUNS, N), rel=1e-12)
    spread = np.sqrt(mechanism().variance(N, 0.0))
    assert np.all(off[FREQUENT] < -0.5 * spread)


IDENTITY = [case for case in CASES if case.small and case.oracle in ("grr", "ss", "wss", "sue", "oue")]


@each(IDENTITY)
def test_estimates_add_up_by_themselves_where_every_report_supports_equally_many_items(case: Case) -> None:
    """By enumeration of all reports: the counts of all items add up to the reports whatever is sent, or need not."""
    frequency = case.mechanism
    items, reports = np.arange(case.domain, dtype=np.uint64), all_reports(frequency)
    per_report = supported(frequency, reports, items).sum(axis=1)
    spare = case.oracle == "wss" and frequency.encoder.cells > len(items)
    assert (np.ptp(per_report) == 0) == (case.oracle in ("grr", "ss", "wss") and not spare)
    extremes = [int(per_report.argmin()), int(per_report.argmax())]
    least, most = (estimated_sum(frequency, reports[[place]], items) for place in extremes)
    assert (most - least > 0.1) == (np.ptp(per_report) > 0)
    if np.ptp(per_report) == 0:
        for sample in (reports[:1], reports[-2:], reports):
            assert estimated_sum(frequency, sample, items) == pytest.approx(len(sample), abs=1e-6)


def estimated_sum(frequency: Mechanism, reports: Reports, items: np.ndarray) -> float:
    tally = frequency.new_tally(items)
    frequency.accumulate(tally, reports, items)
    return float(frequency.estimate(Tally(tally, len(reports), items), items).count.sum())
