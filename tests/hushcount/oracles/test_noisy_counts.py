"""Estimates of counts that hold the dummies of both mixes: their laws by enumeration, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from hushcount.campaigns.parts import MOST_DUMMIES, NoisePart
from hushcount.maths.drawn_noise import count_noise
from hushcount.oracles.influence import influence
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.noisy_counts import MixNoise, NoisyCounts
from hushcount.oracles.sight import sight_of
from hushcount.oracles.tally import Tally
from hushcount.randomness import SystemWords
from tests.support.shown_counts import noise_law
from tests.support.statistics import FAILURE, deviations, variance_ratio_bounds

BUDGETS = (0.25, 0.5, 1.0, 2.0, 4.0)


def mechanism_of(domain: int, epsilon: float = 1.0) -> Mechanism:
    return NoisePart(epsilon=epsilon, delta=1e-8).mechanism(domain, 1)


def noise_of(epsilon: float, mixes: int = 2) -> MixNoise:
    noise = mechanism_of(5, epsilon).encoder.noise
    assert noise is not None
    return MixNoise(noise.law, mixes)


def drawn(mechanism: Mechanism, held: np.ndarray, batches: int = 1) -> Tally:
    """Return a tally of so many clients of each item in all batches, and of the dummies of both mixes in each."""
    noise, counts = mechanism.encoder.noise, held.astype(np.int64)
    assert noise is not None
    for _ in range(noise.mixes * batches):
        counts = counts + noise.law.most - count_noise(noise.law, len(held), SystemWords())
    return Tally(counts[None, :], int(held.sum()), np.arange(len(held), dtype=np.uint64), batches=batches)


def exact(noise: MixNoise) -> np.ndarray:
    """Return float64[...], the chance of 0, 1, ... dummies of all mixes."""
    one = noise_law(noise.law)[::-1][:900]
    return one if noise.mixes == 1 else np.convolve(one, one)


@pytest.mark.parametrize("mixes", [1, 2])
@pytest.mark.parametrize("epsilon", BUDGETS)
def test_intervals_and_detection_hold_by_enumeration(epsilon: float, mixes: int) -> None:
    noise = noise_of(epsilon, mixes)
    law, chances = noise.error_of(1, 5), exact(noise)
    # An item of 7 clients, for every number of dummies.
    estimate = NoisyCounts.of(7 + np.arange(len(chances)) - noise.mean, law)
    mean = float(chances @ estimate.count)
    assert mean == pytest.approx(7.0, abs=1e-6)
    assert estimate.standard_error[0] ** 2 == pytest.approx(float(chances @ (estimate.count - mean) ** 2), rel=1e-6)
    for confidence in (0.5, 0.95, 0.999):
        low, high = estimate.interval(confidence)
        holds = float(chances[(low <= 7.0) & (high >= 7.0)].sum())
        # The next narrower limits in whole numbers would miss one of the tails.
        assert holds >= confidence - 1e-9
        narrower = float(chances[(low + 1 <= 7.0) & (high - 1 >= 7.0)].sum())
        assert narrower < confidence
    nobody = NoisyCounts.of(np.arange(len(chances)) - noise.mean, law)
    for rate in (0.05, 0.001):
        found = nobody.detected(rate)
        assert float(chances[found].sum()) <= rate
        # One count less would be too many.
        assert float(chances[np.argmax(found) - 1 :].sum()) > rate
    everybody = nobody.p_values_of_all(7)
    assert everybody == pytest.approx(
        np.clip(np.cumsum(np.append(np.zeros(7), chances))[: len(chances)], 1e-12, 1.0), abs=1e-9
    )


def test_the_intervals_of_the_documents(subtests: pytest.Subtests) -> None:
    for epsilon, held, spread in (
        (0.25, 0.952, 12.0),
        (0.5, 0.955, 6.0),
        (1.0, 0.966, 2.98),
        (2.0, 0.968, 1.45),
        (4.0, 0.986, 0.65),
    ):
        with subtests.test(epsilon):
            noise = noise_of(epsilon, 1)
            chances, law = exact(noise), noise.error_of(1, 5)
            low, high = NoisyCounts.of(np.arange(len(chances)) - noise.mean, law).interval(0.95)
            assert float(chances[(low <= 0.0) & (high >= 0.0)].sum()) == pytest.approx(held, abs=6e-4)
            assert math.sqrt(noise.variance) == pytest.approx(spread, rel=0.01)
    assert math.sqrt(noise_of(1.0).variance) == pytest.approx(4.21, abs=0.01)


def test_26_000_items_are_covered_and_rare_ones_not_detected() -> None:
    """Coverage is 95.9 % exactly, so 93.5 or 97 % are 9 and more deviations off: fails below 1e-15. Detection of items
    of nobody: a binomial bound at FAILURE. Root mean square error: chi-square bounds at FAILURE."""
    mechanism, items = mechanism_of(26_000), 26_000
    held = np.zeros(items)
    held[:100] = 100_000
    held[100:1_000] = 5
    estimate = mechanism.estimate(drawn(mechanism, held), np.arange(items, dtype=np.uint64))
    low, high = estimate.interval(0.95)
    assert 0.935 <= ((low <= held) & (held <= high)).mean() <= 0.97
    low, high = variance_ratio_bounds(items, kurtosis=3.0)
    assert low <= ((estimate.count - held) ** 2).mean() / estimate.standard_error[0] ** 2 <= high
    assert estimate.standard_error.max() == pytest.approx(4.21, abs=0.01)
    found = int(estimate.detected(0.001)[held == 0.0].sum())
    assert found <= stats.binom.isf(FAILURE, 25_000, 0.001)
    assert estimate.detected(0.001, looks=items)[:100].all()


def test_sums_know_the_number_of_all_reports() -> None:
    """Spreads by chi-square bounds, means by normal ones, and coverage by binomial ones, each at FAILURE.

    Without the correction by the total, 39 of 40 items would err by 39 times the variance.
    """
    domain, runs, sizes = 40, 400, (1, 2, 10, 30, 39, 40)
    mechanism, noise = mechanism_of(domain), noise_of(1.0)
    held = np.arange(domain) * 3.0
    groups = [np.arange(size, dtype=np.uint64) for size in sizes]
    truth = np.array([held[group.astype(int)].sum() for group in groups])
    found = [mechanism.sums(drawn(mechanism, held), groups) for _ in range(runs)]
    error = np.array([one.count - truth for one in found])
    stated = np.array([noise.variance * size * ((1.0 - size / domain) if size > 1 else 1.0) for size in sizes])
    assert found[0].standard_error ** 2 == pytest.approx(stated, rel=1e-9, abs=1e-9)
    assert not error[:, -1].any()
    low, high = variance_ratio_bounds(runs, tests=5, kurtosis=3.0)
    ratio = (error[:, :-1] ** 2).mean(axis=0) / stated[:-1]
    assert low <= ratio.min()
    assert ratio.max() <= high
    assert high < 2.0
    assert np.all(np.abs(error.mean(axis=0)) <= deviations(6) * np.sqrt(stated / runs) + 1e-9)
    limits = [one.interval(0.9) for one in found]
    holds = np.mean([(down <= truth + 1e-6) & (truth - 1e-6 <= up) for down, up in limits], axis=0)
    assert holds.min() >= stats.binom.isf(1.0 - FAILURE, runs, 0.9) / runs
    rest = np.zeros(domain)
    rest[-1] = 500
    nobody = np.mean([mechanism.sums(drawn(mechanism, rest), groups[:4]).detected(0.05) for _ in range(runs)], axis=0)
    assert nobody.max() <= stats.binom.isf(FAILURE, runs, 0.05) / runs


def test_tallies_of_several_batches_hold_the_dummies_of_each() -> None:
    mechanism, held = mechanism_of(500), np.full(500, 20.0)
    items = np.arange(500, dtype=np.uint64)
    one, three = (mechanism.estimate(drawn(mechanism, held, batches), items) for batches in (1, 3))
    assert three.standard_error == pytest.approx(math.sqrt(3.0) * one.standard_error)
    bound = deviations() * three.standard_error[0] / math.sqrt(500)
    assert abs((three.count - held).mean()) <= bound
    assert (mechanism.sums(drawn(mechanism, held, 3), [items[:50]]).standard_error[0] ** 2) == pytest.approx(
        3 * noise_of(1.0).variance * 50 * 0.9
    )


def test_what_is_detected_is_what_is_said_beforehand() -> None:
    """The least share that is detected with probability 0.95, simulated 4,000 times: binomial bounds at FAILURE."""
    mechanism, reports, runs = mechanism_of(5), 2_000, 4_000
    sight = sight_of(mechanism, reports, 5, 0.05)
    assert sight.least_share is not None
    assert sight.standard_error == pytest.approx(4.21, abs=0.01)
    noise = noise_of(1.0)
    held = np.random.default_rng(1).binomial(reports, sight.least_share, runs)
    dummies = sum(noise.law.most - count_noise(noise.law, runs, SystemWords()) for _ in range(2))
    seen = NoisyCounts.of(held + dummies - noise.mean, noise.error_of(1, 5)).detected(0.05, 5).mean()
    assert stats.binom.isf(1 - FAILURE, runs, 0.949) / runs <= seen <= stats.binom.isf(FAILURE, runs, 0.956) / runs
    # A sum of 4 counts has twice the error, and not that of a quarter of the reports.
    wider = sight_of(mechanism, reports, 5, 0.05, repeats=4)
    assert wider.standard_error == pytest.approx(2.0 * sight.standard_error)
    assert sight.least_share < wider.least_share < 2.5 * sight.least_share


def test_a_forged_report_counts_as_one() -> None:
    bound = influence(mechanism_of(100))
    assert (bound.up, bound.down, bound.items) == (1.0, 0.0, 1)
    assert influence(mechanism_of(100), 10).up == 1.0


def test_the_bound_on_dummies_holds_and_depends_on_no_draw() -> None:
    noise = noise_of(1.0)
    assert noise.most_dummies(1_000) == NoisePart(epsilon=1.0, delta=1e-8).mechanism(
        1_000, 1
    ).encoder.noise.most_dummies(1_000)  # type: ignore[union-attr]
    law = noise_of(1.0, 1).error_of(1, 2).inside.times(1_000)
    assert law.at_least(np.array([noise.most_dummies(1_000)]))[0] <= 1e-11
    with pytest.raises(ValueError, match=rf"dummies of each mix, must be at most {MOST_DUMMIES:,}"):
        mechanism_of(2_000_000)
