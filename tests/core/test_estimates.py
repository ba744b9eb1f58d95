"""What is claimed from estimates: intervals hold the truth as often as they say, detection errs as often as it says."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hushcount.errors import UsageError
from hushcount.estimates import Estimate, Levels
from hushcount.mechanism import Mechanism
from hushcount.systems import build
from hushcount.tally import Tally
from tests.mechanisms.cases import pool_seed
from tests.support.statistics import FAILURE, deviations
from tests.support.words import SeededWords

CONFIDENCE = 0.95
RATE = 0.001

# Affine Interval Selection: 100 items, of which five are held, one of them about as often as detection can see.
AIS_HELD = np.array([700, 185, 60, 40, 15] + [0] * 95)
AIS_RUNS = 4000

# General Count Mean Sketch with fresh functions in every run: collisions are half of the noise's variance.
POOL_HELD = np.array([50] * 20 + [0] * 40)
POOL_RUNS = 2500


def ais() -> Mechanism:
    return build("ais", 1.0, len(AIS_HELD), {"s": 27})


def pooled(number: int) -> Mechanism:
    return build("gcms", 2.0, None, {"k": 8, "m": 16, "s": 2, "seed": pool_seed(number)})


def estimated(mechanism: Mechanism, held: np.ndarray, runs: range) -> list[Estimate]:
    """Encode, tally and estimate anew for each run, all runs' reports drawn in one call."""
    items = np.arange(len(held), dtype=np.uint64)
    n = int(held.sum())
    reports = mechanism.encode(np.tile(np.repeat(items, held), len(runs)), SeededWords(runs.start))
    found = []
    for run in range(len(runs)):
        counts = mechanism.new_tally(items)
        mechanism.accumulate(counts, reports[run * n : (run + 1) * n], items)
        found.append(mechanism.estimate(Tally(counts, n, items), items))
    return found


@lru_cache(maxsize=1)
def ais_estimates() -> list[Estimate]:
    return [
        estimate
        for start in range(0, AIS_RUNS, 500)
        for estimate in estimated(ais(), AIS_HELD, range(start, start + 500))
    ]


@lru_cache(maxsize=1)
def pool_estimates() -> list[Estimate]:
    return [estimate for run in range(POOL_RUNS) for estimate in estimated(pooled(run), POOL_HELD, range(run, run + 1))]


def scaled(estimate: Estimate, factor: float) -> Estimate:
    """Return the estimate with errors that are `factor` times as large: a wrong law for any factor but 1."""
    return Estimate(
        estimate.count,
        factor * estimate.standard_error,
        factor * estimate.collision_error,
        factor * estimate.null_error,
    )


def without_collisions(estimate: Estimate) -> Estimate:
    return replace(estimate, collision_error=np.zeros_like(estimate.collision_error))


def hits(estimates: list[Estimate], held: np.ndarray, *, together: bool) -> np.ndarray:
    """Return bool[runs, items]: whether the interval holds the truth."""
    found = []
    for estimate in estimates:
        low, high = (estimate.simultaneous_interval if together else estimate.interval)(CONFIDENCE)
        found.append((low <= held) & (held <= high))
    return np.array(found)


def detections(estimates: list[Estimate], rate: float) -> np.ndarray:
    return np.array([estimate.detected(rate) for estimate in estimates])


def agrees(per_run: np.ndarray, expected: float, slack: float = 0.0) -> bool:
    """Return whether a mean over independent runs is the expected one, but with probability below FAILURE.

    Normal bounds from the runs' own spread, at 1.25 times what FAILURE needs: counts of rare events are skewed.
    """
    error = per_run.std() / math.sqrt(len(per_run))
    return bool(abs(per_run.mean() - expected) <= 1.25 * deviations() * error + slack)


# The exact law, without simulation: C is a sum of two binomial counts.


def law(mechanism: Mechanism, n: int, held: int) -> tuple[np.ndarray, Estimate]:
    """Return the probability of every number of supporting reports, 0..n, with the estimate that it leads to."""
    own = stats.binom.pmf(np.arange(held + 1), held, mechanism.p_star)
    others = stats.binom.pmf(np.arange(n - held + 1), n - held, mechanism.q_star)
    count = (np.arange(n + 1) - n * mechanism.q_star) / (mechanism.p_star - mechanism.q_star)
    noise = np.sqrt(mechanism.variance(n, np.clip(count, 0.0, n) / n))
    null = np.full(n + 1, math.sqrt(float(mechanism.variance(n, 0.0))))
    return np.convolve(own, others), Estimate(count, noise, np.zeros(n + 1), null)


def exact_coverage(held: int, factor: float = 1.0) -> float:
    weights, estimate = law(ais(), int(AIS_HELD.sum()), held)
    low, high = scaled(estimate, factor).interval(CONFIDENCE)
    return float(weights[(low <= held) & (held <= high)].sum())


def exact_detection(held: int, rate: float) -> float:
    weights, estimate = law(ais(), int(AIS_HELD.sum()), held)
    return float(weights[estimate.detected(rate)].sum())


@pytest.mark.parametrize("held", [0, 15, 60, 185, 700])
def test_the_exact_coverage_of_an_interval_is_the_confidence(held: int) -> None:
    # Within half a percent: the lattice of 1,000 reports. One tenth narrower or wider is not.
    assert exact_coverage(held) == pytest.approx(CONFIDENCE, abs=0.005)
    assert exact_coverage(held, 0.9) < CONFIDENCE - 0.01
    assert exact_coverage(held, 1.1) > CONFIDENCE + 0.01


@pytest.mark.parametrize(("chance", "factor"), [(30, 2.0), (100, 1.5), (1000, 1.15)])
def test_with_few_reports_detection_is_too_bold_by_the_stated_factors(chance: int, factor: float) -> None:
    # The exact tail where hardly any report supports an item by chance, averaged over the lattice by some values of n.
    q = 0.01
    z = stats.norm.isf(RATE)
    n = np.arange(chance / q, 1.1 * chance / q).astype(int)
    tail = stats.binom.sf(np.floor(n * q + z * np.sqrt(n * q * (1 - q))), n, q).mean()
    assert 0.9 * factor * RATE < tail < 1.02 * factor * RATE


# Simulated, with real mechanisms.


def test_intervals_of_one_item_hold_the_truth_as_often_as_they_say() -> None:
    """Fails with probability below 1e-6; intervals of half the width, or a tenth narrower or wider, are rejected."""
    exact = np.mean([exact_coverage(int(held)) for held in AIS_HELD])

    def covers(factor: float) -> bool:
        wrong = [scaled(estimate, factor) for estimate in ais_estimates()]
        return agrees(hits(wrong, AIS_HELD, together=False).mean(axis=1), exact)

    assert covers(1.0)
    for factor in (0.5, 0.9, 1.1):
        assert not covers(factor)


def all_hold(estimates: list[Estimate], held: np.ndarray) -> bool:
    """Return whether all intervals of a table hold as often as they must, but for 1 % of the normal law's."""
    together = hits(estimates, held, together=True).all(axis=1)
    error = math.sqrt(CONFIDENCE * (1.0 - CONFIDENCE) / len(estimates))
    return bool(together.mean() >= CONFIDENCE - 0.01 - deviations() * error)


def test_intervals_of_all_items_hold_all_truths_together() -> None:
    """Fails with probability below 1e-6; intervals of single items, or narrower ones, would not hold."""
    assert all_hold(ais_estimates(), AIS_HELD)
    assert all_hold(pool_estimates(), POOL_HELD)
    for estimates, held in ((ais_estimates(), AIS_HELD), (pool_estimates(), POOL_HELD)):
        for factor in (0.5, 0.85):
            assert not all_hold([scaled(estimate, factor) for estimate in estimates], held)
        assert hits(estimates, held, together=False).all(axis=1).mean() < 0.2


def test_intervals_of_a_pool_hold_the_truth_over_pools_only_with_their_collisions() -> None:
    """Fails with probability below 1e-6; half a percent is left for the collisions' law, which is not quite normal."""
    runs = hits(pool_estimates(), POOL_HELD, together=False).mean(axis=1)
    assert agrees(runs, CONFIDENCE, slack=0.005)
    noise = [without_collisions(estimate) for estimate in pool_estimates()]
    assert not agrees(hits(noise, POOL_HELD, together=False).mean(axis=1), CONFIDENCE, slack=0.005)
    half = [scaled(estimate, 0.5) for estimate in pool_estimates()]
    assert not agrees(hits(half, POOL_HELD, together=False).mean(axis=1), CONFIDENCE, slack=0.005)


@pytest.mark.parametrize("rate", [RATE, 0.05])
def test_items_that_nobody_holds_are_detected_at_the_stated_rate(rate: float) -> None:
    """Fails with probability below 1e-6: the simulated rate is the exact one, which is near the stated one.

    Errors a fifth too small or too large are seen.
    """
    exact = exact_detection(0, rate)
    assert exact == pytest.approx(rate, rel=0.25)
    nobody = AIS_HELD == 0

    def errs(factor: float) -> bool:
        wrong = [scaled(estimate, factor) for estimate in ais_estimates()]
        return agrees(detections(wrong, rate)[:, nobody].mean(axis=1), exact)

    assert errs(1.0)
    assert not errs(0.8)
    assert not errs(1.2)


def test_items_of_a_pool_that_nobody_holds_are_detected_at_the_stated_rate_over_pools() -> None:
    """Fails with probability below 1e-6: at 0.05 within a sixth, at 0.001 up to the stated factor of 4.

    Without the collision error both rates are too high.
    """
    nobody = POOL_HELD == 0
    assert agrees(detections(pool_estimates(), 0.05)[:, nobody].mean(axis=1), 0.05, slack=0.008)
    noise = [without_collisions(estimate) for estimate in pool_estimates()]
    assert not agrees(detections(noise, 0.05)[:, nobody].mean(axis=1), 0.05, slack=0.008)
    rare = detections(pool_estimates(), RATE)[:, nobody].mean(axis=1)
    assert agrees(rare, 2.5 * RATE, slack=1.5 * RATE)
    assert not agrees(detections(noise, RATE)[:, nobody].mean(axis=1), 2.5 * RATE, slack=1.5 * RATE)


def test_an_item_far_above_is_always_detected_and_one_at_the_threshold_half_the_time() -> None:
    """Fails with probability below 1e-6 each: by the exact law the first is not missed in any run."""
    seen = detections(ais_estimates(), RATE)
    weights, estimate = law(ais(), int(AIS_HELD.sum()), int(AIS_HELD[0]))
    assert weights[~estimate.detected(RATE)].sum() * AIS_RUNS < FAILURE
    assert seen[:, 0].all()
    exact = exact_detection(int(AIS_HELD[1]), RATE)
    assert 0.4 < exact < 0.6
    assert agrees(seen[:, 1], exact)
    blind = detections([scaled(estimate, 1.2) for estimate in ais_estimates()], RATE)
    assert not agrees(blind[:, 1], exact)


# The plain laws.

ERRORS = st.lists(st.floats(0.0, 1e6), min_size=1, max_size=20)


@given(
    errors=ERRORS,
    confidence=st.floats(0.01, 0.999999),
    rate=st.floats(1e-12, 0.499),
    seed=st.integers(0, 1000),
)
def test_intervals_and_detection_are_what_their_docstrings_say(
    errors: list[float], confidence: float, rate: float, seed: int
) -> None:
    standard = np.array(errors)
    draw = np.random.default_rng(seed)
    count, collision, null = (draw.uniform(0.0, 1e6, len(standard)) for _ in range(3))
    estimate = Estimate(count, standard, collision, null)
    error = np.sqrt(standard**2 + collision**2)
    for interval, items in ((estimate.interval, 1), (estimate.simultaneous_interval, len(count))):
        low, high = interval(confidence)
        half = stats.norm.isf((1.0 - confidence) / (2.0 * items)) * error
        assert low == pytest.approx(count - half, rel=1e-9, abs=1e-6)
        assert high == pytest.approx(count + half, rel=1e-9, abs=1e-6)
    threshold = stats.norm.isf(rate) * np.hypot(null, collision)
    clear = np.abs(count - threshold) > 1e-6 * threshold
    assert np.array_equal(estimate.detected(rate)[clear], (count > threshold)[clear])


def test_no_items_have_no_intervals() -> None:
    none = np.zeros(0)
    low, high = Estimate(none, none, none, none).simultaneous_interval(0.95)
    assert len(low) == len(high) == 0


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, math.nan])
def test_confidences_out_of_range(confidence: float) -> None:
    one = np.ones(1)
    estimate = Estimate(one, one, one, one)
    for call in (estimate.interval, estimate.simultaneous_interval, Levels):
        with pytest.raises(UsageError, match=r"confidence is .*, must be in \(0, 1\)"):
            call(confidence)


@pytest.mark.parametrize("rate", [0.0, 0.5, -1e-3, 1.0, math.nan])
def test_false_positive_rates_out_of_range(rate: float) -> None:
    one = np.ones(1)
    with pytest.raises(UsageError, match=r"false-positive rate is .*, must be in \(0, 0.5\)"):
        Estimate(one, one, one, one).detected(rate)
    with pytest.raises(UsageError, match="false-positive rate"):
        Levels(false_positive_rate=rate)
