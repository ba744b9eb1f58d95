"""Sums over windows: counts with the errors that windows share."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.calibration_changes import Scene, zipf
from hushcount.campaigns.campaign import Campaign
from hushcount.errors import UsageError
from hushcount.oracles.simulation import fresh_functions
from hushcount.questions.collisions import pool_variance
from hushcount.questions.counted import Counted, Group
from hushcount.questions.sides import side_of
from hushcount.questions.totals import Totals, total
from tests.hushcount.questions.test_changes import remembering, with_campaign
from tests.support.statistics import deviations

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
