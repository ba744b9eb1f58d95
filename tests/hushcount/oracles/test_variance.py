"""The variance of pool estimates, simulated: the corrected form holds, the printed Theorem 3 of [J] does not."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from hushcount.arrays import UInt64Array
from hushcount.oracles.catalogue import build
from hushcount.oracles.encoders.nested import Nested
from hushcount.oracles.encoders.pool import Pooled, sum_of_squares
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.tally import Tally
from tests.hushcount.oracles.cases import SMALL, Case, each, pool_seed
from tests.support.enumeration import all_reports, laws, repeated
from tests.support.statistics import deviations, variance_ratio_bounds
from tests.support.words import SeededWords

ROWS = CELLS = 20
SIZE = 5  # nearest integer to m/(e+1) at epsilon 1
RUNS = 1600
POOLED = ("gcms", "apple-cms", "hcms")
HELD = np.array([150, 90, 40, 15, 5, 0])
ITEMS = np.arange(len(HELD), dtype=np.uint64)
KURTOSIS = 0.2
"""Excess kurtosis allowed for: sums of 300 bounded reports, and a collision term that is small beside them."""


def pooled(number: int, rows: int = ROWS, cells: int = CELLS, size: int = SIZE, epsilon: float = 1.0) -> Mechanism:
    return build("gcms", epsilon, None, {"k": rows, "m": cells, "s": size, "seed": pool_seed(number)})


def of_name(name: str, number: int) -> Mechanism:
    """Return the named oracle with a pool, as large as `pooled`."""
    if name == "gcms":
        return pooled(number)
    return build(name, 1.0, None, {"k": ROWS, "m": CELLS, "seed": pool_seed(number)})


def tallied(mechanism: Mechanism, clients: UInt64Array, run: int) -> Tally:
    counts = mechanism.new_tally(ITEMS)
    mechanism.accumulate(counts, mechanism.encode(clients, SeededWords(run)), ITEMS)
    return Tally(counts, len(clients), ITEMS)


@lru_cache(maxsize=len(POOLED))
def squared_errors(name: str) -> np.ndarray:
    """Return float64[items]: the mean squared error over pools of fresh functions and fresh responses."""
    clients = np.repeat(ITEMS, HELD)
    errors = []
    for run in range(RUNS):
        mechanism = of_name(name, run)
        errors.append(mechanism.counts(tallied(mechanism, clients, run), ITEMS) - HELD)
    return (np.array(errors) ** 2).mean(axis=0)


def others_squared(held: np.ndarray) -> np.ndarray:
    return (held.astype(float) ** 2).sum() - held.astype(float) ** 2


def printed_variance(mechanism: Mechanism) -> np.ndarray:
    """Theorem 3 of [J] as printed: `p^2/k` and `alpha1^2/k` where a client answers in one row only.

    [J] prints it for subsets. Its proof takes a row's bit at an item for independent of the other rows', whoever makes
    the bit, so the same step stands in the variance of unary responses and of signs: alpha1 is what another item's
    bit has on average, alpha2 the squared collision part of it.
    """
    n, own, alpha1 = HELD.sum(), mechanism.p_star, mechanism.q_star
    alpha2 = mechanism.law.clash * (own - alpha1) ** 2
    noise = HELD * (own - own**2 / ROWS) + (n - HELD) * (alpha1 - alpha1**2 / ROWS - alpha2)
    return (noise + alpha2 * others_squared(HELD)) / (own - alpha1) ** 2


def within(name: str, variance: np.ndarray) -> np.ndarray:
    """Return bool[items]: whether each simulated error agrees with the variance, at FAILURE for all together."""
    low, high = variance_ratio_bounds(RUNS, len(ITEMS), KURTOSIS)
    ratio = squared_errors(name) / variance
    return (low <= ratio) & (ratio <= high)


every_pooled = pytest.mark.parametrize("name", POOLED)


@every_pooled
@pytest.mark.long(but=("gcms",))
def test_noise_and_collisions_together_are_the_simulated_error(name: str) -> None:
    mechanism = of_name(name, 0)
    total = mechanism.variance(HELD.sum(), HELD / HELD.sum()) + mechanism.collision_variance(others_squared(HELD))
    assert within(name, total).all()


@every_pooled
@pytest.mark.long(but=("gcms",))
def test_the_printed_theorem_3_is_rejected_for_every_item(name: str) -> None:
    assert not within(name, printed_variance(of_name(name, 0))).any()


def test_the_printed_theorem_3_is_that_of_the_paper() -> None:
    # Letter for letter, for subsets.
    mechanism = pooled(0)
    n, p, q, k, m = HELD.sum(), mechanism.responder.p, mechanism.responder.q, ROWS, CELLS
    alpha1 = (p + (m - 1) * q) / m
    alpha2 = (p - q) ** 2 / (k * m) * (1 - 1 / m)
    noise = HELD * (p - p**2 / k) + (n - HELD) * (alpha1 - alpha1**2 / k - alpha2)
    printed = (noise + alpha2 * others_squared(HELD)) / ((p - q) * (1 - 1 / m)) ** 2
    assert printed_variance(mechanism) == pytest.approx(printed, rel=1e-12)


def test_the_variance_is_the_corrected_formula() -> None:
    # Section 5, letter for letter, at the parameters of [J] Figure 2.
    n, k, m = 48_842, 100, 100
    mechanism = pooled(0, k, m, 27)
    share = np.array([0.0, 0.1, 0.9, 1.0])
    p, q, held = mechanism.responder.p, mechanism.responder.q, n * share
    alpha1 = (p + (m - 1) * q) / m
    alpha2 = (p - q) ** 2 / (k * m) * (1 - 1 / m)
    scale = ((p - q) * (1 - 1 / m)) ** 2
    expected = (held * p * (1 - p) + (n - held) * (alpha1 - alpha1**2 - alpha2)) / scale
    assert mechanism.variance(n, share) == pytest.approx(expected, rel=1e-12)
    assert mechanism.collision_variance(1e8) == pytest.approx(alpha2 * 1e8 / scale, rel=1e-12)


def test_symmetric_mechanisms_have_the_variance_of_their_two_probabilities() -> None:
    # [P26] Theorem 2.6, in counts.
    n, share = 10_000, np.array([0.0, 0.3, 1.0])
    named = {"grr": {}, "ss": {"s": 27}, "sue": {}, "oue": {}, "he": {}, "ocms": {"B": 4}, "ais": {"s": 27}}
    for name, parameters in named.items():
        mechanism = build(name, 1.0, 100, parameters)
        p, q = mechanism.p_star, mechanism.q_star
        expected = n * (q * (1 - q) / (p - q) ** 2 + share * (1 - p - q) / (p - q))
        assert mechanism.variance(n, share) == pytest.approx(expected, rel=1e-12)
        assert mechanism.collision_variance(1e8) == 0.0


# The collision term, without responses: what a fixed pool adds to an estimate however many reports arrive

POOLS = 2000


def biases(held: np.ndarray, rows: int, cells: int, size: int) -> np.ndarray:
    """Return float64[pools, items]: the mean error of each item under each pool, exact but for the pool."""
    items = np.arange(len(held), dtype=np.uint64)
    p, q = (pooled(0, rows, cells, size).responder.p, pooled(0, rows, cells, size).responder.q)
    found = np.empty((POOLS, len(held)))
    for number in range(POOLS):
        mechanism = pooled(number, rows, cells, size)
        reports = np.zeros(rows, dtype=mechanism.report)
        reports["row"] = np.arange(rows)
        placed = np.stack([mechanism.encoder.cell(reports, np.full(rows, item, np.uint64)) for item in items])
        shared = (placed[:, None] == placed[None]).mean(axis=2)
        support = (q + (p - q) * shared) @ held
        n = held.sum()
        found[number] = (support - n * mechanism.q_star) / (mechanism.p_star - mechanism.q_star) - held
    return found


def over_all_polynomials(degree: int, prime: int = 31, cells: int = 8, items: int = 8) -> float:
    """Return the variance of the clients that share item 0's cell over all polynomials, in that of independent pairs.

    One client holds each of the other items.
    """
    hashed = np.zeros((1, items), dtype=np.int64)
    for _ in range(degree + 1):
        hashed = (hashed[:, None] * np.arange(items) + np.arange(prime)[:, None]).reshape(-1, items) % prime
    shared = hashed[:, 1:] % cells == hashed[:, :1] % cells
    chance = shared.mean(axis=0)
    assert np.ptp(chance) < 1e-12
    return float(shared.sum(axis=1).var() / (chance * (1.0 - chance)).sum())


def test_a_pool_of_pairwise_independent_functions_exceeds_the_collision_formula_and_of_degree_two_does_not() -> None:
    """[P25] says after Theorem 3.10 that pairwise independence suffices."""
    assert over_all_polynomials(1) == pytest.approx(2.29, abs=0.005)
    assert over_all_polynomials(2) == pytest.approx(1.005, abs=0.0005)


@pytest.mark.long
def test_collisions_are_a_bias_of_the_stated_size() -> None:
    # Squared biases over pools: normal bounds from their own spread, at FAILURE for all items together. Consecutive
    # ids, which pools of affine functions fail.
    held = np.array([3000, 1000, 300, 100, 30, 10, 0])
    squares = biases(held, 8, 8, 2) ** 2
    stated = pooled(0, 8, 8, 2).collision_variance(others_squared(held))
    error = squares.std(axis=0) / np.sqrt(POOLS)
    miss = np.abs(squares.mean(axis=0) - stated)
    assert np.all(miss <= deviations(len(held)) * error)
    # Sharp enough to tell: a quarter more or less would be seen for the items that suffer most.
    assert np.all((deviations(len(held)) * error / stated)[1:] < 0.25)


def test_the_collision_error_of_an_estimate_covers_the_bias() -> None:
    # As deployed: one pool; root mean square over items of bias / collision_error is about 1.
    clients = np.repeat(np.arange(200, dtype=np.uint64), np.round(20_000 / np.arange(1, 201) ** 1.2).astype(int))
    items, held = np.unique(clients, return_counts=True)
    ratios = []
    for number in range(6):
        mechanism = pooled(number, 16, 64, 9, epsilon=6.0)
        estimate = mechanism.estimate(tallied(mechanism, clients, number), items)
        error = np.hypot(estimate.standard_error, estimate.collision_error)
        ratios.append((estimate.count - held) / error)
        assert np.median(estimate.collision_error / estimate.standard_error) > 3.0, "collisions must dominate here"
    assert 0.8 <= np.sqrt(np.mean(np.array(ratios) ** 2)) <= 1.25


# The sum of squares from a tally alone


def sums_of_squares(name: str, held: np.ndarray, runs: int) -> np.ndarray:
    clients = np.repeat(np.arange(len(held), dtype=np.uint64), held)
    found = []
    for run in range(runs):
        mechanism = of_name(name, run)
        found.append(sum_of_squares(mechanism.encoder, tallied(mechanism, clients, run), mechanism.responder))
    return np.array(found)


@every_pooled
@pytest.mark.long(but=("gcms",))
def test_the_sum_of_squares_is_estimated_without_bias(name: str, subtests: pytest.Subtests) -> None:
    # Normal bounds for a mean, from the sample's own spread, at FAILURE for all together.
    populations = {
        "skewed": np.array([400, 200, 100, 50, 25, 12, 6, 3, 2, 1, 1]),
        # Four times the clients, no two alike: n^2 grows by 16, the sum of squares by 4.
        "all different": np.ones(500, dtype=int),
        "all different, more of them": np.ones(2000, dtype=int),
        "all the same": np.array([800]),
    }
    runs = 300
    for people, held in populations.items():
        with subtests.test(people):
            found = sums_of_squares(name, held, runs)
            error = deviations(len(populations)) * found.std() / np.sqrt(runs)
            assert abs(found.mean() - (held**2).sum()) <= error
            assert error < 0.2 * held.sum() ** 2


@each([case for case in SMALL if case.pooled])
def test_the_squares_of_cells_are_exact_on_average(case: Case) -> None:
    # Two clients, every pair of reports. Their squares are 1 each, and 4 for both in one row and cell: 2 more.
    mechanism, items = case.mechanism, case.items[:2]
    encoder = mechanism.encoder
    assert isinstance(encoder, Pooled)
    reports = all_reports(mechanism)
    law = laws(mechanism, reports, items)
    alone = []
    for number in range(len(reports)):
        alone.append(mechanism.new_tally(items))
        mechanism.accumulate(alone[number], reports[number : number + 1], items)
    squares = [[encoder.cell_squares(one + other, 2, mechanism.responder) for other in alone] for one in alone]
    functions = np.zeros(encoder.rows, dtype=mechanism.report)
    functions["row"] = np.arange(len(functions))
    pool = encoder.outer if isinstance(encoder, Nested) else encoder
    cells = [pool.cell(functions, repeated(item, len(functions))) for item in items]
    assert law[0] @ np.array(squares) @ law[1] == pytest.approx(2 + 2 * (cells[0] == cells[1]).mean() / encoder.rows)
