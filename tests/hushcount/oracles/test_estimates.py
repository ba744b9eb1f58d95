"""What is claimed from estimates: intervals hold the truth as often as they say, detection errs as often as it says."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import pytest
from scipy import stats

from hushcount.errors import UsageError
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import ANY_SEED, build, plan
from hushcount.oracles.estimates import Estimate, Levels, SharedCells, Signs, Supports
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.tally import Tally
from tests.hushcount.oracles.cases import pool_seed
from tests.support.statistics import FAILURE, deviations
from tests.support.words import SeededWords

CONFIDENCE = 0.95
RATE = 0.001

# Affine Interval Selection: 100 items, of which five are held, one of them about as often as detection can see.
AIS_HELD = np.array([700, 185, 60, 40, 15] + [0] * 95)
AIS_RUNS = 1500

# General Count Mean Sketch with fresh functions in every run: collisions are half of the noise's variance.
POOL_HELD = np.array([50] * 20 + [0] * 40)
POOL_RUNS = 500

# RAPPOR with cohorts, one item of half the reports: what few frequent items do is no normal law.
UNEVEN_HELD = np.array([2000] + [50] * 40 + [0] * 200)
UNEVEN_RUNS = 150

# Few expected supports: n q* is 0.24.
FEW_HELD = np.array([50, 25, 13, 6, 3, 2, 1, 0, 0, 0])
FEW_RUNS = 2000


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
def few_estimates() -> list[Estimate]:
    return estimated(planned("ais", 6.0, len(FEW_HELD)), FEW_HELD, range(FEW_RUNS))


@lru_cache(maxsize=1)
def uneven_estimates() -> list[Estimate]:
    def rappor(number: int) -> Mechanism:
        return build("rappor", 4.0, None, {"k": 32, "m": 64, "seed": pool_seed(number)})

    return [one for run in range(UNEVEN_RUNS) for one in estimated(rappor(run), UNEVEN_HELD, range(run, run + 1))]


@lru_cache(maxsize=1)
def pool_estimates() -> list[Estimate]:
    return [estimate for run in range(POOL_RUNS) for estimate in estimated(pooled(run), POOL_HELD, range(run, run + 1))]


@lru_cache(maxsize=16)
def limits(estimates: Callable[[], list[Estimate]], together: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return float64[runs, items] each: counts and what their intervals begin and end with."""
    runs = estimates()
    looks, counts = len(runs[0].count) if together else 1, np.array([estimate.count for estimate in runs])
    if isinstance(first := runs[0], Supports):
        # Of one law: all runs at once, which takes a fraction of the time.
        scores = np.concatenate([run.supports for run in runs if isinstance(run, Supports)])
        low, high = replace(first, supports=scores).interval(CONFIDENCE, looks)
        return counts, low.reshape(counts.shape), high.reshape(counts.shape)
    both = [estimate.interval(CONFIDENCE, looks) for estimate in runs]
    return counts, np.array([low for low, _ in both]), np.array([high for _, high in both])


def hits(
    estimates: Callable[[], list[Estimate]], held: np.ndarray, *, together: bool, factor: float = 1.0
) -> np.ndarray:
    """Return bool[runs, items]: whether the interval holds the truth; stretched by a factor, it is a wrong one."""
    count, low, high = limits(estimates, together)
    found: np.ndarray = (count - factor * (count - low) <= held) & (held <= count + factor * (high - count))
    return found


def detections(estimates: list[Estimate], rate: float) -> np.ndarray:
    return np.array([estimate.detected(rate) for estimate in estimates])


def agrees(per_run: np.ndarray, expected: float, slack: float = 0.0) -> bool:
    """Return whether a mean over independent runs is the expected one, but with probability below FAILURE.

    Normal bounds from the runs' own spread, at 1.25 times what FAILURE needs: counts of rare events are skewed.
    """
    error = per_run.std() / math.sqrt(len(per_run))
    return bool(abs(per_run.mean() - expected) <= 1.25 * deviations() * error + slack)


# The exact law, without simulation: C is a sum of two binomial counts.


def planned(name: str, epsilon: float, domain: int) -> Mechanism:
    return build(name, epsilon, domain, plan(name, epsilon, domain, {}, Objective(), ANY_SEED))


def law(mechanism: Mechanism, n: int, held: int) -> tuple[np.ndarray, Estimate]:
    """Return the probability of every number of supporting reports, 0..n, with the estimate that it leads to."""
    own = stats.binom.pmf(np.arange(held + 1), held, mechanism.p_star)
    others = stats.binom.pmf(np.arange(n - held + 1), n - held, mechanism.q_star)
    scores = np.arange(n + 1)
    count = (scores - n * mechanism.q_star) / (mechanism.p_star - mechanism.q_star)
    noise = np.sqrt(mechanism.variance(n, np.clip(count, 0.0, n) / n))
    estimate = Supports(count, noise, np.zeros(n + 1), scores, n, mechanism.p_star, mechanism.q_star)
    return np.convolve(own, others), estimate


@lru_cache(maxsize=4)
def every_interval(mechanism: Mechanism, n: int, looks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of every number of supporting reports, which does not depend on who holds the item."""
    return law(mechanism, n, 0)[1].interval(CONFIDENCE, looks)


def exact_coverage(mechanism: Mechanism, n: int, held: int, looks: int = 1) -> float:
    weights, (low, high) = law(mechanism, n, held)[0], every_interval(mechanism, n, looks)
    return float(weights[(low <= held) & (held <= high)].sum())


def normal_coverage(mechanism: Mechanism, n: int, held: int, looks: int = 1) -> float:
    """Return the same of `count -+ z error`, which was used for few reports too."""
    weights, estimate = law(mechanism, n, held)
    half = stats.norm.isf((1.0 - CONFIDENCE) / (2.0 * looks)) * estimate.standard_error
    return float(weights[np.abs(estimate.count - held) <= half].sum())


def exact_detection(mechanism: Mechanism, n: int, held: int, rate: float) -> float:
    weights, estimate = law(mechanism, n, held)
    return float(weights[estimate.detected(rate)].sum())


GRID = [
    (name, domain, epsilon, n)
    for name, domain in (("ais", 10), ("grr", 10), ("ais", 1000), ("grr", 1000), ("oue", 100), ("he", 100))
    for epsilon in (0.5, 2.0, 6.0)
    for n in (100, 1000)
]


def test_few_supports_or_many_intervals_hold_and_detection_errs_as_rarely_as_stated(subtests: pytest.Subtests) -> None:
    """Exact, over the two-binomial law. An interval of all ten items misses with 5 % in sum at most."""
    for name, domain, epsilon, n in GRID:
        with subtests.test(name=name, domain=domain):
            mechanism = planned(name, epsilon, domain)
            shares = (0, 1, n // 100, n // 10, n // 2, n)
            assert min(exact_coverage(mechanism, n, held) for held in shares) >= 0.95 - 1e-9
            assert max(10 * (1.0 - exact_coverage(mechanism, n, held, 10)) for held in shares) <= 0.05 + 1e-9
            weights, estimate = law(mechanism, n, 0)
            seen = estimate.detected(RATE)
            assert weights[seen].sum() <= RATE
            # One report less, and the rate would be passed: no threshold is lower.
            first = int(np.flatnonzero(seen)[0])
            assert seen[first:].all()
            assert weights[first - 1 :].sum() > RATE


def test_the_normal_law_held_less_often_where_few_reports_support_an_item() -> None:
    """So that the grid above has power: what was used before is outside by far."""
    few = planned("grr", 6.0, 1000)
    assert min(normal_coverage(few, 100, held) for held in (2, 5, 10, 50)) < 0.85
    assert 9 * (1.0 - normal_coverage(planned("ais", 6.0, 10), 100, 0, 10)) > 0.2
    weights, estimate = law(few, 100, 0)
    null = math.sqrt(float(few.variance(100, 0.0)))
    assert weights[estimate.count > stats.norm.isf(RATE) * null].sum() > 60 * RATE


def test_with_many_reports_the_exact_coverage_of_an_interval_is_the_confidence(subtests: pytest.Subtests) -> None:
    # Within half a percent: the lattice of 10,000 reports.
    for held in (0, 150, 600, 1850, 7000):
        with subtests.test(held=held):
            assert exact_coverage(ais(), 10_000, held) == pytest.approx(CONFIDENCE, abs=0.002)


# Simulated, with real mechanisms.


def test_intervals_of_one_item_hold_the_truth_as_often_as_they_say() -> None:
    """Fails with probability below 1e-6; intervals of half the width, or a tenth narrower or wider, are rejected."""
    n = int(AIS_HELD.sum())
    exact = np.mean([exact_coverage(ais(), n, int(held)) for held in AIS_HELD])
    assert CONFIDENCE <= exact < CONFIDENCE + 0.01

    def covers(factor: float) -> bool:
        return agrees(hits(ais_estimates, AIS_HELD, together=False, factor=factor).mean(axis=1), exact)

    assert covers(1.0)
    for factor in (0.5, 0.9, 1.1):
        assert not covers(factor)


def all_hold(estimates: Callable[[], list[Estimate]], held: np.ndarray, factor: float = 1.0) -> bool:
    """Return whether all intervals of a table hold as often as they must."""
    together = hits(estimates, held, together=True, factor=factor).all(axis=1)
    error = math.sqrt(CONFIDENCE * (1.0 - CONFIDENCE) / len(together))
    return bool(together.mean() >= CONFIDENCE - deviations() * error)


@pytest.mark.long
def test_intervals_of_all_items_hold_all_truths_together() -> None:
    """Fails with probability below 1e-6; intervals of single items, or narrower ones, would not hold."""
    for estimates, held in (
        (ais_estimates, AIS_HELD), (pool_estimates, POOL_HELD), (uneven_estimates, UNEVEN_HELD),
        (few_estimates, FEW_HELD),
    ):  # fmt: skip
        assert all_hold(estimates, held)
        assert not all_hold(estimates, held, 0.5)
        # With few supports a lattice and its careful limits leave room.
        assert estimates is few_estimates or not all_hold(estimates, held, 0.8)
    for estimates, held in ((ais_estimates, AIS_HELD), (pool_estimates, POOL_HELD)):
        assert hits(estimates, held, together=False).all(axis=1).mean() < 0.2


@pytest.mark.parametrize("rate", [RATE, 0.05])
@pytest.mark.long(but=("0.001",))
def test_items_that_nobody_holds_are_detected_at_the_stated_rate(rate: float) -> None:
    """Fails with probability below 1e-6: the simulated rate is the exact one, which is the stated one or below.

    Rates half as large or twice as large are seen.
    """
    exact = exact_detection(ais(), int(AIS_HELD.sum()), 0, rate)
    assert 0.7 * rate < exact <= rate
    nobody = AIS_HELD == 0

    def errs(level: float) -> bool:
        return agrees(detections(ais_estimates(), level)[:, nobody].mean(axis=1), exact)

    assert errs(rate)
    assert not errs(rate / 2)
    assert not errs(2 * rate)


def test_an_item_far_above_is_always_detected_and_one_at_the_threshold_half_the_time() -> None:
    """Fails with probability below 1e-6 each: by the exact law the first is not missed in any run."""
    n = int(AIS_HELD.sum())
    seen = detections(ais_estimates(), RATE)
    assert (1.0 - exact_detection(ais(), n, int(AIS_HELD[0]), RATE)) * AIS_RUNS < FAILURE
    assert seen[:, 0].all()
    exact = exact_detection(ais(), n, int(AIS_HELD[1]), RATE)
    assert 0.4 < exact < 0.6
    assert agrees(seen[:, 1], exact)
    assert not agrees(detections(ais_estimates(), RATE / 4)[:, 1], exact)


# Pools: what others put into an item's cells, and their noise, are one law, which the tally itself tells.


@pytest.mark.parametrize("which", ["even", "uneven"])
@pytest.mark.parametrize("rate", [RATE, 0.05])
@pytest.mark.long
def test_items_of_a_pool_that_nobody_holds_are_detected_at_the_stated_rate_over_pools(which: str, rate: float) -> None:
    """Fails with probability below 1e-6: within a quarter of the stated rate, with one item of half the reports too.

    By root mean squares and the normal law, as it was done before, the rate is several times as large as stated.
    """
    estimates, held = (pool_estimates(), POOL_HELD) if which == "even" else (uneven_estimates(), UNEVEN_HELD)
    nobody = held == 0
    assert agrees(detections(estimates, rate)[:, nobody].mean(axis=1), 0.9 * rate, slack=0.15 * rate)
    assert not agrees(detections(estimates, rate / 4)[:, nobody].mean(axis=1), 0.9 * rate, slack=0.15 * rate)
    if which == "uneven" and rate == RATE:
        sizes = [np.hypot(one.standard_error, one.collision_error) for one in estimates]
        before = [one.count > stats.norm.isf(rate) * size for one, size in zip(estimates, sizes, strict=True)]
        assert np.array(before)[:, nobody].mean() > 4 * rate


@pytest.mark.parametrize("which", ["even", "uneven"])
@pytest.mark.long
def test_intervals_of_a_pool_hold_the_truth_over_pools(which: str) -> None:
    """Fails with probability below 1e-6; up to a hundredth is left to what is careful in them."""
    estimates, held = (pool_estimates, POOL_HELD) if which == "even" else (uneven_estimates, UNEVEN_HELD)
    assert agrees(hits(estimates, held, together=False).mean(axis=1), CONFIDENCE + 0.005, slack=0.01)
    for factor in (0.5, 0.8, 1.3):
        assert not agrees(
            hits(estimates, held, together=False, factor=factor).mean(axis=1), CONFIDENCE + 0.005, slack=0.01
        )


@pytest.mark.long
def test_a_frequent_item_of_a_pool_has_no_collisions_with_itself() -> None:
    """Fails with probability below 1e-6; its interval is that of its own noise and of what the others put beside it."""
    held = hits(uneven_estimates, UNEVEN_HELD, together=False)[:, 0]
    assert held.mean() >= CONFIDENCE - deviations() * math.sqrt(0.05 * 0.95 / len(held))
    _, low, high = limits(uneven_estimates, False)
    assert ((high - low)[:, 0] / (high - low)[:, 1:].mean(axis=1)).mean() < 0.75


# Small pools: of few cells, whose law shows no small tail.

SMALL_HELD = np.array([20] * 25 + [0] * 50)
SMALL = ((1, 64), (4, 8))


@lru_cache(maxsize=2)
def small_estimates(k: int, m: int) -> list[Estimate]:
    def rappor(number: int) -> Mechanism:
        return build("rappor", 4.0, None, {"k": k, "m": m, "seed": pool_seed(number)})

    return [one for run in range(200) for one in estimated(rappor(run), SMALL_HELD, range(run, run + 1))]


@pytest.mark.parametrize(("k", "m"), SMALL)
@pytest.mark.long
def test_a_small_pool_claims_no_more_than_its_cells_show(k: int, m: int) -> None:
    """Fails with probability below 1e-6. The extremes of 64 cells would not hold for all items together."""
    estimates = partial(small_estimates, k, m)
    nobody = SMALL_HELD == 0
    for rate in (RATE, 0.05):
        seen = detections(estimates(), rate)[:, nobody].mean(axis=1)
        assert seen.mean() <= rate + 1.25 * deviations() * seen.std() / math.sqrt(len(seen))
    assert agrees(hits(estimates, SMALL_HELD, together=False).mean(axis=1), CONFIDENCE + 0.005, slack=0.015)
    assert all_hold(estimates, SMALL_HELD)
    _, low, high = limits(estimates, True)
    nothing = (low <= 0.0) & (high >= SMALL_HELD.sum())
    assert nothing.all() == (k == 1)
    if k == 1:
        before = [one for one in estimates() if isinstance(one, SharedCells)]
        bold = [replace(one, law=replace(one.law, least=0.0)) for one in before]
        both = [one.limits((1.0 - CONFIDENCE) / (2 * len(SMALL_HELD))) for one in bold]
        held = [bool(((low <= SMALL_HELD) & (high >= SMALL_HELD)).all()) for low, high in both]
        assert len(held) == 200
        assert np.mean(held) < CONFIDENCE - deviations() * math.sqrt(CONFIDENCE * (1.0 - CONFIDENCE) / len(held))


# Blocks: signed scores.

SIGNED_HELD = np.array([120, 30, 0, 0, 0, 0, 0, 0, 0, 50])


@lru_cache(maxsize=2)
def signed_estimates(epsilon: float) -> list[Estimate]:
    mechanism = planned("rhr", epsilon, len(SIGNED_HELD))
    assert mechanism.encoder.blocks > 1
    return estimated(mechanism, SIGNED_HELD, range(2000))


@pytest.mark.parametrize("epsilon", [2.0, 6.0])
@pytest.mark.long(but=("2.0",))
def test_signed_scores_of_blocks_keep_the_normal_interval_and_an_exact_detection(epsilon: float) -> None:
    """Fails with probability below 1e-6. With 200 reports intervals hold in 93 to 99 %, and detection errs no more."""
    estimates = signed_estimates(epsilon)
    runs = hits(partial(signed_estimates, epsilon), SIGNED_HELD, together=False).mean(axis=1)
    assert agrees(runs, 0.96, slack=0.03)
    nobody = SIGNED_HELD == 0
    for rate in (0.01, 0.05):
        seen = detections(estimates, rate)[:, nobody].mean(axis=1)
        assert seen.mean() <= rate + 1.25 * deviations() * seen.std() / math.sqrt(len(seen))
    assert detections(estimates, RATE)[:, 0].mean() > 0.99


# Equal answers of one client.


@pytest.mark.parametrize("name", ["ais", "rhr", "rappor"])
@pytest.mark.long(but=("ais",))
def test_reports_that_repeat_one_answer_are_as_many_answers_as_clients(name: str) -> None:
    """Fails with probability below 1e-6: three equal answers of each client. Without `repeated` it is far too bold."""
    parameters = {"seed": pool_seed(1), "k": 16, "m": 32} if name == "rappor" else {}
    domain = None if name == "rappor" else 20
    mechanism = build(name, 2.0, domain, {**plan(name, 2.0, domain, parameters, Objective(), pool_seed(1))})
    held, items = np.array([150, 50, 0, 0, 0, 0, 0, 0, 0, 0] + [10] * 10), np.arange(20, dtype=np.uint64)
    n, runs = int(held.sum()), 400
    reports = mechanism.encode(np.tile(np.repeat(items, held), runs), SeededWords(5)).reshape(runs, n)
    found = []
    for run in range(runs):
        counts = mechanism.new_tally(items)
        mechanism.accumulate(counts, np.repeat(reports[run], 3), items)
        found.append(mechanism.estimate(Tally(counts, 3 * n, items), items))
    nobody = held == 0
    careful = [estimate.repeated(3) for estimate in found]
    if name != "rappor":
        assert detections(careful, 0.01)[:, nobody].mean() <= 0.01 + 5 * math.sqrt(0.01 / (runs * 8))
        assert detections(found, 0.01)[:, nobody].mean() > 0.05
    coverage = hits(lambda: careful, 3 * held, together=False).mean()
    assert coverage > 0.94
    assert name == "rappor" or hits(lambda: found, 3 * held, together=False).mean() < 0.85


# The plain laws.


def test_many_looks_are_one_look_at_a_smaller_level(subtests: pytest.Subtests) -> None:
    for looks in (1, 7, 10**6):
        with subtests.test(looks=looks):
            estimate = ais_estimates()[0]
            low, high = estimate.interval(0.9, looks)
            assert np.stack([low, high]) == pytest.approx(np.stack(estimate.interval(1.0 - 0.1 / looks)), rel=1e-6)
            assert np.array_equal(estimate.detected(0.05, looks), estimate.detected(0.05 / looks))


def test_no_items_have_no_intervals() -> None:
    none, scores = np.zeros(0), np.zeros(0, dtype=np.int64)
    for estimate in (Supports(none, none, none, scores, 10, 0.5, 0.1), Signs(none, none, none, scores, scores)):
        low, high = estimate.interval(0.95, 0)
        assert len(low) == len(high) == 0
        assert not len(estimate.p_values())


def test_confidences_out_of_range(subtests: pytest.Subtests) -> None:
    for confidence in (0.0, 1.0, -0.5, math.nan):
        with subtests.test(confidence=confidence):
            for call in (ais_estimates()[0].interval, Levels):
                with pytest.raises(UsageError, match=r"confidence is .*,.*\(0, 1\)"):
                    call(confidence)


def test_false_positive_rates_out_of_range(subtests: pytest.Subtests) -> None:
    for rate in (0.0, 0.5, -1e-3, 1.0, math.nan):
        with subtests.test(rate=rate):
            with pytest.raises(UsageError, match=r"false-positive rate is .*,.*\(0, 0.5\)"):
                ais_estimates()[0].detected(rate)
            with pytest.raises(UsageError, match="false-positive rate"):
                Levels(false_positive_rate=rate)
