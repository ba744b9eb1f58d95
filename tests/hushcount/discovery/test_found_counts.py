"""Counts of discovered values: what shown counts say of the truth, by draws of the law; wrong laws are rejected."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from hushcount.arrays import FloatArray, IntArray
from hushcount.discovery.found_counts import CountEstimates, combine, count_estimates, kept_bias, unbiased_from
from hushcount.discovery.keep_rules import KeepRule
from hushcount.maths.count_laws import CountLaw
from hushcount.maths.drawn_noise import count_noise
from hushcount.randomness import SystemWords
from tests.support.statistics import deviations, variance_ratio_bounds

REFERENCE = KeepRule("optimal", 1.0, 1e-8, counts=True).count_law
SHARP = KeepRule("optimal", 2.0, 1e-6, counts=True).count_law
CAPPED = KeepRule("optimal", 1.0, 1e-8, cap=3, counts=True).count_law
ADD_REMOVE = KeepRule("optimal", 1.0, 1e-8, "add-remove", counts=True).count_law
DRAWS = 200_000
FAR = 10_000
"""A count far above every threshold: each bin of it is shown."""
LAWS = {"reference": REFERENCE, "sharp": SHARP, "cap 3": CAPPED, "add-remove": ADD_REMOVE}
TESTS = 4 * len(LAWS)
"""As many comparisons of one test fail together with the probability that statistical tests have."""


def draw(law: CountLaw, count: int, draws: int = DRAWS) -> IntArray:
    """Return int64[draws], `c + Z` of bins of one count, kept or not, as the auxiliary server draws it."""
    return count + count_noise(law, draws, SystemWords())


def chances(law: CountLaw) -> tuple[IntArray, np.ndarray]:
    """Return every z that matters, and its probability."""
    values = np.arange(law.quantile(1e-13) - 10, law.most + 1)
    return values, np.array([law.chance(int(z)) for z in values])


def kurtosis(law: CountLaw) -> float:
    values, probabilities = chances(law)
    return float((values - law.mean) ** 4 @ probabilities) / law.standard_deviation**4 - 3.0


def is_unbiased(law: CountLaw, errors: np.ndarray) -> bool:
    return abs(errors.mean()) < deviations(TESTS) * law.standard_deviation / math.sqrt(len(errors))


def test_the_reference_law_has_its_figures() -> None:
    """At (1, 1e-8) an even chance at 30 clients, with a standard deviation of 2.98."""
    assert REFERENCE.threshold == 30
    assert REFERENCE.standard_deviation == pytest.approx(2.98, abs=5e-3)
    assert unbiased_from(REFERENCE) == 37


def test_counts_far_above_the_threshold_are_unbiased_and_as_exact_as_said(subtests: pytest.Subtests) -> None:
    for name, law in LAWS.items():
        with subtests.test(law=name):
            estimates = count_estimates(law, draw(law, FAR))
            errors = estimates.count - FAR
            assert is_unbiased(law, errors)
            low, high = variance_ratio_bounds(DRAWS, TESTS, kurtosis=kurtosis(law))
            assert low < (errors**2).mean() / law.standard_deviation**2 < high
            assert (estimates.standard_error == law.standard_deviation).all()
            assert (estimates.bias < 1e-6).all()


def test_a_law_without_its_mean_subtracted_or_of_another_spread_is_rejected(subtests: pytest.Subtests) -> None:
    for name, law in LAWS.items():
        with subtests.test(law=name):
            shown = draw(law, FAR)
            # Under add-remove both sides of the law fall alike, and its mean is next to 0.
            assert is_unbiased(law, shown - FAR) == (law is ADD_REMOVE)
            low, high = variance_ratio_bounds(DRAWS, TESTS, kurtosis=kurtosis(law))
            for wrong in (0.7, 1.3):
                ratio = ((shown - law.mean - FAR) ** 2).mean() / (wrong * law.standard_deviation) ** 2
                assert not low < ratio < high


def test_of_the_intervals_that_are_shown_as_many_hold_the_truth_as_said(subtests: pytest.Subtests) -> None:
    """At, below and above the threshold: near it the interval of the noise alone, without the draw, is rejected."""
    for name, law in LAWS.items():
        for steps in (-2.0, 0.0, 2.0, 1000.0):
            with subtests.test(law=name, steps=steps):
                count = max(1, law.threshold + round(steps * law.standard_deviation))
                shown = draw(law, count)
                shown = shown[shown >= law.threshold]
                estimates = count_estimates(law, shown)
                held = float(((estimates.low <= count) & (estimates.high >= count)).mean())
                slack = deviations(2 * TESTS) * math.sqrt(0.05 * 0.95 / len(shown))
                assert held > 0.95 - slack
                # A law of whole numbers holds more than is asked for, by less than a step at each end.
                if steps == 1000.0:
                    assert held - 0.95 < 2 * chances(law)[1].max() + slack
                if steps == -2.0:
                    wide = (shown - law.quantile(0.975) <= count) & (count <= shown - law.quantile(0.025))
                    assert wide.mean() < 0.95


def test_the_bias_and_error_of_kept_counts_near_the_threshold_are_those_said(subtests: pytest.Subtests) -> None:
    for name, law in LAWS.items():
        with subtests.test(law=name):
            counts = [law.threshold + round(step * law.standard_deviation) for step in (-1.0, 0.0, 1.0, 3.0)]
            for count in counts:
                shown = draw(law, count)
                errors = shown[shown >= law.threshold] - law.mean - count
                bias = float(kept_bias(law, np.array([count]))[0])
                assert abs(errors.mean() - bias) < deviations(TESTS) * errors.std() / math.sqrt(len(errors))
                assert bias > 0.0
                # The bias is no small matter that a loose test would pass.
                assert step_is_seen(errors) or bias < 0.1 * law.standard_deviation
            assert (np.diff(kept_bias(law, np.arange(1, law.threshold + 60))) <= 1e-9).all()
            unbiased = unbiased_from(law)
            assert law.bias(unbiased) < 0.1 * law.standard_deviation <= law.bias(unbiased - 1)


def step_is_seen(errors: np.ndarray) -> bool:
    return bool(errors.mean() > deviations() * errors.std() / math.sqrt(len(errors)))


def test_no_interval_reaches_below_one_report() -> None:
    law = KeepRule("optimal", 8.0, 0.01, counts=True).count_law
    estimates = count_estimates(law, np.arange(law.threshold, law.threshold + 5))
    assert estimates.low.min() >= 1
    assert (estimates.low <= estimates.high).all()


def ratio(counts: CountEstimates, estimates: FloatArray, error: float) -> tuple[float, float]:
    """Return the variance of combined counts over the predicted one, and the predicted error."""
    both, errors = combine(counts.count, counts.standard_error, estimates, np.full(DRAWS, error))
    assert is_unbiased(REFERENCE, both - FAR)
    assert (errors < min(error, REFERENCE.standard_deviation)).all()
    return float(((both - FAR) ** 2).mean()) / float(errors[0]) ** 2, float(errors[0])


def test_combined_counts_have_the_predicted_variance(subtests: pytest.Subtests) -> None:
    """The frequency estimate's error is drawn as noise and collisions; forgetting the second part is rejected."""
    for error in (1.0, 3.0, 40.0):
        with subtests.test(error=error):
            generator = np.random.default_rng(19)
            noise, collisions = 0.8 * error, 0.6 * error
            estimates = FAR + generator.normal(0.0, noise, DRAWS) + generator.normal(0.0, collisions, DRAWS)
            counts = count_estimates(REFERENCE, draw(REFERENCE, FAR))
            low, high = variance_ratio_bounds(DRAWS, TESTS, kurtosis=kurtosis(REFERENCE))

            right, predicted = ratio(counts, estimates, error)
            assert low < right < high
            assert predicted == pytest.approx(1 / math.sqrt(1 / REFERENCE.standard_deviation**2 + 1 / error**2))
            if error < 40.0:
                # Beside an error of 40 the noisy count alone has all the weight.
                assert not low < ratio(counts, estimates, noise)[0] < high


def test_an_error_of_zero_cannot_be_weighed() -> None:
    one, zero = np.ones(1), np.zeros(1)
    with pytest.raises(ValueError, match="must be above 0"):
        combine(one, zero, one, one)


def test_a_combined_count_is_shown_only_where_its_error_is_true(subtests: pytest.Subtests) -> None:
    """Exact sums over the noise: of the draws that show a value, so many have a combined count that misses it."""
    law, error = REFERENCE, 60.0
    noise, least = np.arange(-200, law.most + 1), unbiased_from(law)
    chances = np.array([law.chance(int(each)) for each in noise])
    among = [law.interval(int(shown), 0.95)[0] for shown in range(law.threshold, law.threshold + 400)]
    missed = {}
    for count in (5, 15, 22, 26, 28, 30, 33, 36, 38, 40, 45, 60, 100, 200):
        kept = count + noise >= law.threshold
        shown, odds = (count + noise)[kept], chances[kept] / chances[kept].sum()
        sd = np.full(len(shown), law.standard_deviation)
        # The frequency estimate is drawn by the normal law about the count: its quantiles stand for it.
        quantiles = norm.ppf((np.arange(400) + 0.5) / 400)
        beside = np.full(len(shown), error)
        both = [combine(shown - law.mean, sd, count + each * beside, beside) for each in quantiles]
        misses = np.mean([np.abs(made - count) > 1.96 * errors for made, errors in both], axis=0)
        sure = np.array([among[each - law.threshold] for each in shown]) >= least
        missed[count] = float((odds * misses).sum()), float((odds * misses)[sure].sum())
        with subtests.test(count=count):
            assert missed[count][1] <= (0.025 if count < least else 0.064)
    # Shown always, it would miss a value of 26 clients in four of ten.
    assert missed[26][0] == pytest.approx(0.408, abs=0.01)
    assert missed[22][0] > 0.99
