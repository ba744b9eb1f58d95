"""Counts of discovered values: what shown counts say of the truth, by draws of the law; wrong laws are rejected."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hushcount.arrays import IntArray
from hushcount.discovery.found_counts import NoiseLaw, combine
from hushcount.discovery.keep_rules import KeepRule
from tests.support.statistics import deviations, variance_ratio_bounds

RULES = (
    KeepRule("optimal", 1.0, 1e-8, counts=True),
    KeepRule("optimal", 2.0, 1e-6, counts=True),
    KeepRule("optimal", 1.0, 1e-8, cap=3, counts=True),
    KeepRule("optimal", 1.0, 1e-8, "add-remove", counts=True),
)
LAWS = tuple(map(NoiseLaw.of, RULES))
REFERENCE = LAWS[0]
DRAWS = 200_000
FAR = 10_000
"""A count far above every threshold: each bin of it is shown."""
laws = pytest.mark.parametrize("law", LAWS, ids=lambda law: f"from {law.least}")


def draw(law: NoiseLaw, count: int, draws: int = DRAWS) -> IntArray:
    """Return int64[draws], `c + Z` of bins of one count, kept or not."""
    values = law.first + np.arange(len(law.chances))
    return count + np.random.default_rng(18).choice(values, draws, p=law.chances)


def kurtosis(law: NoiseLaw) -> float:
    values = law.first + np.arange(len(law.chances)) - law.mean
    return float(values**4 @ law.chances) / law.deviation**4 - 3.0


def is_unbiased(law: NoiseLaw, errors: np.ndarray) -> bool:
    return abs(errors.mean()) < deviations() * law.deviation / math.sqrt(len(errors))


def test_the_reference_law_has_its_published_figures() -> None:
    """At (1, 1e-8) an even chance at 30 clients, with a standard deviation of 2.98."""
    assert REFERENCE.least == 30
    assert REFERENCE.deviation == pytest.approx(2.98, abs=5e-3)
    assert REFERENCE.kept(np.array([29, 30])).tolist() == pytest.approx([0.286, 0.522], abs=1e-3)


@laws
def test_counts_far_above_the_threshold_are_unbiased_and_as_exact_as_said(law: NoiseLaw) -> None:
    estimates = law.estimates(draw(law, FAR))
    errors = estimates.count - FAR
    assert is_unbiased(law, errors)
    low, high = variance_ratio_bounds(DRAWS, kurtosis=kurtosis(law))
    assert low < (errors**2).mean() / law.deviation**2 < high
    assert (estimates.standard_error == law.deviation).all()
    assert (estimates.bias < 1e-6).all()


@laws
def test_a_law_without_its_mean_subtracted_or_of_another_spread_is_rejected(law: NoiseLaw) -> None:
    shown = draw(law, FAR)
    assert not is_unbiased(law, shown - FAR)
    low, high = variance_ratio_bounds(DRAWS, kurtosis=kurtosis(law))
    for wrong in (0.7, 1.3):
        ratio = ((shown - law.mean - FAR) ** 2).mean() / (wrong * law.deviation) ** 2
        assert not low < ratio < high


@laws
def test_intervals_hold_the_truth_as_often_as_said(law: NoiseLaw) -> None:
    estimates = law.estimates(draw(law, FAR))
    held = ((estimates.low <= FAR) & (estimates.high >= FAR)).mean()
    below, above = law.limits(0.95)
    exact = law.chances[below - law.first : above - law.first + 1].sum()
    # A step of a law of whole numbers: with less noise, more than 95 %.
    assert 0.95 <= exact < 0.97
    assert abs(held - exact) < deviations() * math.sqrt(exact * (1 - exact) / DRAWS)
    if law is not LAWS[1]:
        assert 0.935 < held < 0.965


@laws
def test_an_interval_is_as_short_as_any(law: NoiseLaw) -> None:
    below, above = law.limits(0.95)
    width = above - below
    assert np.convolve(law.chances, np.ones(width))[: len(law.chances)].max() < 0.95


@laws
def test_the_bias_and_error_of_kept_counts_near_the_threshold_are_those_said(law: NoiseLaw) -> None:
    counts = [law.least + round(step * law.deviation) for step in (-1.0, 0.0, 1.0, 3.0)]
    tests = 2 * len(counts)
    for count in counts:
        shown = draw(law, count)
        kept = shown[shown >= law.least]
        errors, here = kept - law.mean - count, np.array([count])
        chance, bias, square = (float(each(here)[0]) for each in (law.kept, law.bias, law.square))
        assert abs(len(kept) / DRAWS - chance) < deviations(tests) * math.sqrt(chance * (1 - chance) / DRAWS)
        assert abs(errors.mean() - bias) < deviations(tests) * errors.std() / math.sqrt(len(kept))
        assert abs((errors**2).mean() - square) < deviations(tests) * (errors**2).std() / math.sqrt(len(kept))
        assert bias > 0.0
    assert (np.diff(law.bias(np.arange(law.least, law.least + 40))) <= 0.0).all()
    unbiased = law.unbiased_from()
    assert law.bias(np.array([unbiased]))[0] < 0.1 * law.deviation <= law.bias(np.array([unbiased - 1]))[0]


def test_no_interval_reaches_below_one_report_and_no_count_is_below_the_threshold() -> None:
    law = NoiseLaw.of(KeepRule("optimal", 8.0, 0.01, counts=True))
    estimates = law.estimates(np.arange(law.least, law.least + 5))
    assert estimates.low.min() >= 1
    assert (estimates.low <= estimates.high).all()


@pytest.mark.parametrize("error", [1.0, 3.0, 40.0])
def test_combined_counts_have_the_predicted_variance(error: float) -> None:
    """The frequency estimate's error is drawn as noise and collisions; forgetting the second part is rejected."""
    generator = np.random.default_rng(19)
    noise, collisions = 0.8 * error, 0.6 * error
    estimates = FAR + generator.normal(0.0, noise, DRAWS) + generator.normal(0.0, collisions, DRAWS)
    counts = REFERENCE.estimates(draw(REFERENCE, FAR))
    low, high = variance_ratio_bounds(DRAWS, kurtosis=kurtosis(REFERENCE))

    def ratio(whole: float) -> tuple[float, float]:
        both, errors = combine(counts.count, counts.standard_error, estimates, np.full(DRAWS, whole))
        assert is_unbiased(REFERENCE, both - FAR)
        assert (errors < min(whole, REFERENCE.deviation)).all()
        return float(((both - FAR) ** 2).mean()) / float(errors[0]) ** 2, float(errors[0])

    right, predicted = ratio(error)
    assert low < right < high
    assert predicted == pytest.approx(1 / math.sqrt(1 / REFERENCE.deviation**2 + 1 / error**2))
    if error < 40.0:
        # Beside an error of 40 the noisy count alone has all the weight.
        assert not low < ratio(noise)[0] < high


def test_an_error_of_zero_cannot_be_weighed() -> None:
    one, zero = np.ones(1), np.zeros(1)
    with pytest.raises(ValueError, match="cannot be weighed"):
        combine(one, zero, one, one)


def test_a_law_whose_probabilities_do_not_add_up_is_refused() -> None:
    with pytest.raises(ValueError, match="must be 1"):
        NoiseLaw(0, np.array([0.5, 0.4]), 1)
