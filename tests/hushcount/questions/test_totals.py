"""Sums over windows: counts with the errors that windows share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benchmarks.calibration_changes import Scene, zipf
from hushcount.campaigns.campaign import Campaign
from hushcount.errors import UsageError
from hushcount.oracles.simulation import fresh_functions
from hushcount.questions.collisions import pool_variance
from hushcount.questions.counted import Counted, Group
from hushcount.questions.sides import side_of
from hushcount.questions.totals import Totals, total
from tests.hushcount.questions.test_changes import remembering, with_campaign
from tests.support.statistics import FAILURE, deviations

SHARES = zipf(30)
PLAIN = Scene("hr", "hr", 1.0, SHARES, (2000, 2000), size=10)
POOLED = Scene("gcms", "gcms", 3.0, SHARES, (2000, 2000), parameters={"k": 8, "m": 16, "s": 1}, size=10)


def windows(scene: Scene, run: int, seeds: tuple[int, ...]) -> list[Counted]:
    """Return a window for each seed of a pool's functions."""
    named = {seed: scene.campaign(fresh_functions(1, 100 * run + seed)) for seed in set(seeds)}
    return [scene.counted(named[seed], 0, 10 * run + number) for number, seed in enumerate(seeds)]


def deviations_of(scene: Scene, runs: int, seeds: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return float64[runs, groups] of totals: errors, stated errors, and whether limits hold the expected count."""
    expected = scene.truth[0] * scene.reports[0] * len(seeds)
    found = [total(windows(scene, run, seeds), scene.groups) for run in range(runs)]
    wrong = np.array([one.count - expected for one in found])
    # Who is in the sample of clients is no error of a total.
    sample = np.sqrt(expected * (1.0 - scene.truth[0]))
    holds = np.array([(one.low <= expected) & (expected <= one.high) for one in found])
    return wrong, np.hypot([one.error for one in found], sample), holds


def agrees(wrong: np.ndarray, error: np.ndarray) -> bool:
    """Return whether errors have the stated size, but with probability below FAILURE: by the spread of the runs."""
    squares = ((wrong / error) ** 2).mean(axis=1)
    return bool(abs(squares.mean() - 1.0) <= 1.25 * deviations() * squares.std() / math.sqrt(len(squares)))


@pytest.mark.parametrize(("scene", "seeds"), [(PLAIN, (0, 0, 0)), (POOLED, (0, 0, 0)), (POOLED, (0, 1, 2))])
@pytest.mark.long
def test_totals_miss_by_the_stated_error(scene: Scene, seeds: tuple[int, ...]) -> None:
    """Fails with probability below 1e-6; errors of 2/3 or 3/2 are rejected."""
    wrong, error, holds = deviations_of(scene, 40, seeds)
    assert agrees(wrong, error)
    assert not agrees(wrong, error / 1.5)
    assert not agrees(wrong, error * 1.5)
    assert holds.mean() > 0.9


def test_windows_of_one_pool_share_their_collisions_and_of_others_do_not() -> None:
    one, shared, apart = (total(windows(POOLED, 0, seeds), POOLED.groups) for seeds in ((0,), (0, 0, 0), (0, 1, 2)))
    assert np.median(shared.collision_error / one.collision_error) == pytest.approx(3.0, rel=0.1)
    assert np.median(apart.collision_error / one.collision_error) == pytest.approx(math.sqrt(3.0), rel=0.1)
    assert np.median(shared.standard_error / one.standard_error) == pytest.approx(math.sqrt(3.0), rel=0.05)


def test_answers_that_clients_repeat_add_up_with_their_errors() -> None:
    campaign = remembering(PLAIN.campaign("ab" * 32))
    first = with_campaign(PLAIN.sides(0)[0], campaign)
    one, three = total([first], PLAIN.groups), total([first] * 3, PLAIN.groups)
    assert three.count == pytest.approx(3.0 * one.count)
    assert three.standard_error == pytest.approx(3.0 * one.standard_error)
    plain = total([PLAIN.sides(0)[0]] * 3, PLAIN.groups)
    assert plain.standard_error == pytest.approx(math.sqrt(3.0) * one.standard_error)


def test_results_of_several_files_are_added() -> None:
    first, second = PLAIN.sides(0)
    other = with_campaign(second, next_epoch(second.campaign))
    both: Totals = total([first, other], PLAIN.groups)
    same = total([first, second], PLAIN.groups)
    assert both.reports == 4000
    assert both.count == pytest.approx(same.count)
    assert both.standard_error == pytest.approx(same.standard_error, rel=0.01)
    assert both.high - both.low == pytest.approx(same.high - same.low, rel=0.01)


def next_epoch(campaign: Campaign) -> Campaign:
    data = campaign.model_dump(mode="json", exclude_none=True)
    return Campaign.model_validate({**data, "epoch": 2, "previous": "ab" * 32})


def test_windows_without_reports_count_nothing() -> None:
    first = PLAIN.sides(0)[0]
    empty = replace(first, tally=replace(first.tally, counts=0 * first.tally.counts, reports=0))
    empty.__dict__["dictionary"] = first.dictionary
    later = with_campaign(empty, next_epoch(empty.campaign))
    assert total([empty, first, later], PLAIN.groups).reports == 2000
    with pytest.raises(UsageError, match="1 results hold 0 reports"):
        total([empty], PLAIN.groups)


def test_collisions_are_those_of_each_estimate() -> None:
    """Of one result, and of a group that most items are in: there the cells of all other items are counted."""
    one = windows(POOLED, 0, (0,))[0]
    one.__dict__["dictionary"] = POOLED.dictionary
    groups = [*POOLED.groups[:2], *POOLED.groups[30:], Group("most", POOLED.dictionary.items[1:])]
    side = side_of([one], groups)
    counts, sizes = zip(*side.counted, strict=True)
    assert sizes[0].tolist() == [1, 1, 10, 10, 10, 2]
    found = np.sqrt(pool_variance([(one, 1.0)], counts, sizes))
    stated = side.estimates[0].collision_error
    # Items of a group that count differently have less than the bound.
    assert found[:2] == pytest.approx(stated[:2], rel=0.02)
    assert (found[2:] > 0.98 * stated[2:]).all()
    assert (found[2:] < 1.3 * stated[2:]).all()


# Detection

ABSENT = Scene("oue", "oue", 2.0, np.append(np.full(5, 0.2), np.zeros(40)), (150, 150))
"""Five items, and 40 that nobody has."""
OTHER = replace(ABSENT, epsilon=1.5, reports=(100, 100))
SHARED = replace(
    ABSENT, label="gcms", oracle="gcms", epsilon=4.0, reports=(2000, 2000), parameters={"k": 8, "m": 16, "s": 1}
)
RUNS = 60


def seen(files: Callable[[int], list[Counted]], scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    """Return p-values of absent items and of items that are there, float64[runs, items] each."""
    there = scene.truth[0] > 0.0
    found = np.array([total(files(run), scene.groups).p_value for run in range(RUNS)])
    return found[:, ~there], found[:, there]


def is_at_most(rates: np.ndarray, level: float) -> bool:
    """Return whether the mean of a rate in independent runs may be the level or less, but with probability FAILURE."""
    return bool(rates.mean() <= level + 1.25 * deviations() * rates.std() / math.sqrt(len(rates)))


def one_file(run: int) -> list[Counted]:
    campaign = ABSENT.campaign("ab" * 32)
    return [ABSENT.counted(campaign, 0, 10 * run + number) for number in range(4)]


def two_files(run: int) -> list[Counted]:
    """Two epochs with different mechanisms, whose supports have no law in common."""
    later = OTHER.counted(next_epoch(OTHER.campaign("cd" * 32)), 1, run)
    later.__dict__["dictionary"] = OTHER.dictionary
    return [*one_file(run), later]


def two_files_of_a_pool(run: int) -> list[Counted]:
    first, second = windows(SHARED, run, (0, 0))
    return [first, with_campaign(second, next_epoch(second.campaign))]


@pytest.mark.parametrize("files", [one_file, two_files])
@pytest.mark.long(but=("one_file",))
def test_noise_is_detected_no_more_often_than_stated_and_what_is_there_is(
    files: Callable[[int], list[Counted]],
) -> None:
    """Fails with probability below 1e-6 for each assertion; a fifth of the right p-values is rejected."""
    null, held = seen(files, ABSENT)
    for level in (0.2, 0.05, 0.01):
        assert is_at_most((null <= level).mean(axis=1), level)
    # The law is discrete, but the test does not hold because nothing is ever detected.
    assert (null <= 0.05).mean() > 0.02
    assert not is_at_most((null / 5.0 <= 0.05).mean(axis=1), 0.05)
    # The share of lists with any false detection, at the level that `ask total` and `ask top` take.
    assert stats.binom.sf((null <= 0.05 / 45).any(axis=1).sum() - 1, RUNS, 0.05) > FAILURE
    # A fifth of 600 reports is found; in a single window it is found in less than half of the runs.
    assert (held <= 0.05 / 45).mean() > 0.9
    alone = np.array([total(files(run)[:1], ABSENT.groups).p_value for run in range(RUNS)])
    assert (alone[:, ABSENT.truth[0] > 0.0] <= 0.05 / 45).mean() < 0.7


@pytest.mark.long
def test_files_of_one_pool_are_no_independent_evidence() -> None:
    """Fails with probability below 1e-6: collisions are the same in both, so their p-values multiplied are wrong."""
    null, _ = seen(two_files_of_a_pool, SHARED)
    assert is_at_most((null <= 0.01).mean(axis=1), 0.01)
    each = np.array([[total([one], SHARED.groups).p_value for one in two_files_of_a_pool(run)] for run in range(RUNS)])
    absent = SHARED.truth[0] == 0.0
    logs = -np.log(each[:, :, absent]).sum(axis=1)
    assert not is_at_most((stats.gamma.sf(logs, 2) <= 0.01).mean(axis=1), 0.01)


def test_a_total_of_one_result_is_detected_as_the_result_is() -> None:
    (one, *_) = one_file(0)
    estimate = one.sums(ABSENT.groups)
    assert np.array_equal(total([one], ABSENT.groups).p_value, estimate.p_values())
