"""Counts of a population: intervals hold its share, with the error of the sample."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from benchmarks.calibration_changes import Scene, zipf
from hushcount.arrays import FloatArray
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import items_of, tally_items
from hushcount.campaigns.parts import SamplePart
from hushcount.errors import UsageError
from hushcount.oracles.simulation import SeededWords
from hushcount.oracles.tally import Tally
from hushcount.questions.counted import Counted
from hushcount.questions.population import scaled
from hushcount.questions.totals import total
from hushcount.senders import Senders
from tests.hushcount.questions.test_changes import with_campaign
from tests.support.statistics import deviations

CLIENTS, POPULATION = 2000, 10**6
NOISY = Scene("hr", "hr", 1.0, zipf(8), (CLIENTS, CLIENTS))
CLEAR = Scene("grr", "grr", 8.0, zipf(8), (CLIENTS, CLIENTS))
"""With hardly any noise of responses: what is left is the error of the sample."""
SAMPLE = SamplePart(layer="simulated", buckets=((0, 500),))


def sampled(campaign: Campaign, sample: SamplePart | None = SAMPLE) -> Campaign:
    return campaign.model_copy(update={"sample": sample})


def windows(scene: Scene, run: int, number: int) -> list[Counted]:
    """Return windows in which the same clients, a random sample, report the same values; responses are drawn anew."""
    campaign = scene.campaign("")
    drawn = np.random.default_rng([run]).multinomial(CLIENTS, scene.before)
    mechanism = campaign.require_frequency()
    items, columns = items_of(mechanism, scene.dictionary, scene.dictionary.items), tally_items(mechanism)
    found = []
    for window in range(number):
        counts = mechanism.new_tally(columns)
        reports = mechanism.encode(np.repeat(items, drawn), SeededWords(window, run))
        mechanism.accumulate(counts, reports, columns)
        one = Counted(campaign, Tally(counts, CLIENTS, columns), f"window {window}")
        one.__dict__["dictionary"] = scene.dictionary
        found.append(with_campaign(one, sampled(campaign)))
    return found


@lru_cache(maxsize=2)
def answers(scene: Scene, number: int, runs: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return errors in stated errors, float64[runs, groups], and the share of groups that limits hold, float64[runs].

    The limits are of the population, and of the clients that reported.
    """
    truth, errors, holds, alone = scene.truth[0], [], [], []
    for run in range(runs):
        results = windows(scene, run, number)
        found, those = scaled(results, scene.groups, POPULATION, 0.95), total(results, scene.groups, 0.95)
        errors.append((found.count - POPULATION * truth) / found.error)
        holds.append(((found.low <= POPULATION * truth) & (POPULATION * truth <= found.high)).mean())
        expected = number * CLIENTS * truth
        alone.append(((those.low <= expected) & (expected <= those.high)).mean())
    return np.array(errors), np.array(holds), np.array(alone)


@pytest.mark.parametrize(("scene", "number", "runs"), [(NOISY, 1, 150), (CLEAR, 5, 60)], ids=["noisy", "clear"])
def test_intervals_hold_the_share_of_the_population(scene: Scene, number: int, runs: int) -> None:
    """Each assertion fails with probability below 1e-6. Intervals without the error of the sample are rejected."""
    _, holds, alone = answers(scene, number, runs)
    slack = 1.25 * deviations() / math.sqrt(runs)
    assert holds.mean() >= 0.95 - 0.006 - slack * holds.std()
    assert holds.mean() - slack * holds.std() < 0.975
    if scene is CLEAR:
        assert alone.mean() < 0.95 - 0.006 - slack * alone.std()


@pytest.mark.parametrize(("scene", "number", "runs"), [(NOISY, 1, 150), (CLEAR, 5, 60)], ids=["noisy", "clear"])
def test_errors_are_those_of_responses_and_sample(scene: Scene, number: int, runs: int) -> None:
    """Fails with probability below 1e-6; errors of 2/3 or 3/2 of the size are rejected."""
    squares = (answers(scene, number, runs)[0] ** 2).mean(axis=1)
    near = 1.25 * deviations() * squares.std() / math.sqrt(runs)
    assert abs(squares.mean() - 1.0) <= near
    assert abs(squares.mean() / 1.5**2 - 1.0) > near / 1.5**2
    assert abs(squares.mean() * 1.5**2 - 1.0) > near * 1.5**2


def test_limits_of_a_whole_sample_are_clopper_and_pearsons() -> None:
    """Without noise of responses: nobody of 2,000 clients leaves a share of up to 1 - 0.025^(1/2000)."""
    scene = replace(CLEAR, before=np.r_[1.0, np.zeros(7)], epsilon=16.0)
    found = scaled(windows(scene, 0, 1), scene.groups, POPULATION, 0.95)
    sure = int(np.argmax(scene.truth[0]))
    assert found.count[sure] == pytest.approx(POPULATION, rel=1e-3)
    assert found.low[sure] == pytest.approx(POPULATION * 0.025 ** (1 / CLIENTS), rel=1e-3)
    nobody = int(np.argmin(scene.truth[0]))
    assert found.high[nobody] == pytest.approx(POPULATION * (1.0 - 0.025 ** (1 / CLIENTS)), rel=0.05)


def test_what_is_no_sample_of_clients_is_not_scaled(subtests: pytest.Subtests) -> None:
    (one,) = windows(NOISY, 0, 1)
    twice = Senders("client-token", 2, 2)
    doubled = replace(one, tally=replace(one.tally, senders=twice))
    doubled.__dict__["dictionary"] = NOISY.dictionary
    assert scaled([doubled], NOISY.groups, CLIENTS // 2, 0.95).error[0] > 0.0
    capped = one.campaign.model_copy(update={"shuffle": one.campaign.shuffle.model_copy(update={"cap": 3})})
    for result, population, said in [
        (with_campaign(one, sampled(one.campaign, None)), POPULATION, "all its clients"),
        (with_campaign(one, capped), POPULATION, "3 reports"),
        (one, CLIENTS - 1, "at least 2,000"),
    ]:
        with subtests.test(said=said), pytest.raises(UsageError, match=said):
            scaled([result], NOISY.groups, population, 0.95)
