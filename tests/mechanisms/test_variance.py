"""The variance of pool estimates, simulated: the corrected form holds, the printed Theorem 3 of [J] does not."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from hushcount.mechanism import Mechanism
from hushcount.randomness import UInt64Array
from hushcount.systems import build
from hushcount.tally import Tally
from tests.mechanisms.cases import pool_seed
from tests.support.statistics import deviations, variance_ratio_bounds
from tests.support.words import SeededWords

ROWS = CELLS = 20
SIZE = 5  # nearest integer to m/(e+1) at epsilon 1
RUNS = 3000
HELD = np.array([150, 90, 40, 15, 5, 0])
ITEMS = np.arange(len(HELD), dtype=np.uint64)
KURTOSIS = 0.2
"""Excess kurtosis allowed for: sums of 300 bounded reports, and a collision term that is small beside them."""


def pooled(number: int, rows: int = ROWS, cells: int = CELLS, size: int = SIZE, epsilon: float = 1.0) -> Mechanism:
    return build("gcms", epsilon, None, {"k": rows, "m": cells, "s": size, "seed": pool_seed(number)})


def tallied(mechanism: Mechanism, clients: UInt64Array, run: int) -> Tally:
    counts = mechanism.new_tally(ITEMS)
    mechanism.accumulate(counts, mechanism.encode(clients, SeededWords(run)), ITEMS)
    return Tally(counts, len(clients), ITEMS)


@lru_cache(maxsize=1)
def squared_errors() -> np.ndarray:
    """Return float64[items]: the mean squared error over pools of fresh functions and fresh responses."""
    clients = np.repeat(ITEMS, HELD)
    errors = []
    for run in range(RUNS):
        mechanism = pooled(run)
        errors.append(mechanism.estimate(tallied(mechanism, clients, run), ITEMS).count - HELD)
    return (np.array(errors) ** 2).mean(axis=0)


def others_squared(held: np.ndarray) -> np.ndarray:
    return (held.astype(float) ** 2).sum() - held.astype(float) ** 2


def printed_variance(mechanism: Mechanism) -> np.ndarray:
    """Theorem 3 of [J] as printed: `p^2/k` and `alpha1^2/k` where a client answers in one row only."""
    n, p, q, k, m = HELD.sum(), mechanism.p, mechanism.q, ROWS, CELLS
    alpha1 = (p + (m - 1) * q) / m
    alpha2 = (p - q) ** 2 / (k * m) * (1 - 1 / m)
    noise = HELD * (p - p**2 / k) + (n - HELD) * (alpha1 - alpha1**2 / k - alpha2)
    return (noise + alpha2 * others_squared(HELD)) / ((p - q) * (1 - 1 / m)) ** 2


def within(variance: np.ndarray) -> np.ndarray:
    """Return bool[items]: whether each simulated error agrees with the variance, at FAILURE for all together."""
    low, high = variance_ratio_bounds(RUNS, len(ITEMS), KURTOSIS)
    ratio = squared_errors() / variance
    return (low <= ratio) & (ratio <= high)


def test_noise_and_collisions_together_are_the_simulated_error() -> None:
    mechanism = pooled(0)
    total = mechanism.variance(HELD.sum(), HELD / HELD.sum()) + mechanism.collision_variance(others_squared(HELD))
    assert within(total).all()


def test_the_printed_theorem_3_is_rejected_for_every_item() -> None:
    assert not within(printed_variance(pooled(0))).any()


def test_the_variance_is_the_corrected_formula() -> None:
    # Section 5, letter for letter, at the parameters of [J] Figure 2.
    n, k, m = 48_842, 100, 100
    mechanism = pooled(0, k, m, 27)
    share = np.array([0.0, 0.1, 0.9, 1.0])
    p, q, held = mechanism.p, mechanism.q, n * share
    alpha1 = (p + (m - 1) * q) / m
    alpha2 = (p - q) ** 2 / (k * m) * (1 - 1 / m)
    scale = ((p - q) * (1 - 1 / m)) ** 2
    expected = (held * p * (1 - p) + (n - held) * (alpha1 - alpha1**2 - alpha2)) / scale
    assert mechanism.variance(n, share) == pytest.approx(expected, rel=1e-12)
    assert mechanism.collision_variance(1e8) == pytest.approx(alpha2 * 1e8 / scale, rel=1e-12)


def test_symmetric_mechanisms_have_the_variance_of_their_two_probabilities() -> None:
    # [P26] Theorem 2.6, in counts.
    n, share = 10_000, np.array([0.0, 0.3, 1.0])
    for name, parameters in (("grr", {}), ("ss", {"s": 27}), ("ocms", {"B": 4}), ("ais", {"s": 27})):
        mechanism = build(name, 1.0, 100, parameters)
        p, q = mechanism.p_star, mechanism.q_star
        expected = n * (q * (1 - q) / (p - q) ** 2 + share * (1 - p - q) / (p - q))
        assert mechanism.variance(n, share) == pytest.approx(expected, rel=1e-12)
        assert mechanism.collision_variance(1e8) == 0.0


# The collision term, without responses: what a fixed pool adds to an estimate however many reports arrive

POOLS = 8000


def biases(held: np.ndarray, rows: int, cells: int, size: int) -> np.ndarray:
    """Return float64[pools, items]: the mean error of each item under each pool, exact but for the pool."""
    items = np.arange(len(held), dtype=np.uint64)
    found = np.empty((POOLS, len(held)))
    for number in range(POOLS):
        mechanism = pooled(number, rows, cells, size)
        reports = np.zeros(rows, dtype=mechanism.report)
        reports["row"] = np.arange(rows)
        placed = np.stack([mechanism.encoder.cell(reports, np.full(rows, item, np.uint64)) for item in items])
        shared = (placed[:, None] == placed[None]).mean(axis=2)
        support = (mechanism.q + (mechanism.p - mechanism.q) * shared) @ held
        n = held.sum()
        found[number] = (support - n * mechanism.q_star) / (mechanism.p_star - mechanism.q_star) - held
    return found


def test_collisions_are_a_bias_of_the_stated_size() -> None:
    # Squared biases over pools: normal bounds from their own spread, at FAILURE for all items together. Consecutive
    # ids, which pools of affine functions fail.
    held = np.array([3000, 1000, 300, 100, 30, 10, 0])
    squares = biases(held, 8, 8, 2) ** 2
    stated = pooled(0, 8, 8, 2).collision_variance(others_squared(held))
    error = squares.std(axis=0) / np.sqrt(POOLS)
    miss = np.abs(squares.mean(axis=0) - stated)
    assert np.all(miss <= deviations(len(held)) * error)
    # Sharp enough to tell: ten percent more or less would be seen for the items that suffer most.
    assert np.all((deviations(len(held)) * error / stated)[1:] < 0.12)


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


def sums_of_squares(held: np.ndarray, runs: int) -> np.ndarray:
    clients = np.repeat(np.arange(len(held), dtype=np.uint64), held)
    found = []
    for run in range(runs):
        mechanism = pooled(run)
        found.append(mechanism.sum_of_squares(tallied(mechanism, clients, run)))
    return np.array(found)


@pytest.mark.parametrize(
    "held",
    [
        np.array([400, 200, 100, 50, 25, 12, 6, 3, 2, 1, 1]),
        np.ones(600, dtype=int),
        np.array([800]),
    ],
    ids=["skewed", "all different", "all the same"],
)
def test_the_sum_of_squares_is_estimated_without_bias(held: np.ndarray) -> None:
    # Normal bounds for a mean, from the sample's own spread, at FAILURE.
    runs = 800
    found = sums_of_squares(held, runs)
    assert abs(found.mean() - (held**2).sum()) <= deviations() * found.std() / np.sqrt(runs)


def test_the_sum_of_squares_is_not_fooled_by_the_number_of_reports() -> None:
    # Four times the clients, no two alike: n^2 grows by 16, the sum of squares by 4. Bounds as above, one mean each.
    runs = 2000
    for n in (500, 2000):
        found = sums_of_squares(np.ones(n, dtype=int), runs)
        error = deviations(2) * found.std() / np.sqrt(runs)
        assert abs(found.mean() - n) <= error
        assert error < 0.05 * n**2


def test_the_sum_of_squares_counts_each_report_with_itself_once() -> None:
    # Hardly any noise and few reports, so that terms of the order of n show. Bounds from the spread, at FAILURE.
    n, runs = 60, 800
    clients = np.arange(n, dtype=np.uint64)
    found = []
    for run in range(runs):
        mechanism = pooled(run, 2, 64, 1, epsilon=12.0)
        found.append(mechanism.sum_of_squares(tallied(mechanism, clients, run)))
    error = deviations() * np.std(found) / np.sqrt(runs)
    assert error < 0.1 * n
    assert abs(np.mean(found) - n) <= error


def test_the_sum_of_squares_needs_a_pool() -> None:
    mechanism = build("ais", 1.0, 100, {"s": 27})
    with pytest.raises(ValueError, match="needs a pool"):
        mechanism.sum_of_squares(Tally(mechanism.new_tally(ITEMS), 10, ITEMS))
