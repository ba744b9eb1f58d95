"""The mechanism `line`: its weights by enumeration, its rounding, its errors at every place of the range."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hushcount.maths.line import best_line, weights
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import CATALOGUE, build, plan
from hushcount.oracles.encoders.line import Line
from hushcount.oracles.influence import influence
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.tally import Tally
from hushcount.randomness import WORD_VALUES, SystemWords
from tests.support.enumeration import all_reports, laws
from tests.support.statistics import deviations, variance_ratio_bounds

EPSILONS = (0.3, 1.0, 2.0, 4.0, 6.0)
RUNS, CLIENTS = 2_000, 200
KURTOSIS = 3.3
"""At least that of a sum of so many weights."""


def line_of(epsilon: float, **settings: int) -> tuple[Mechanism, Line]:
    made = build("line", epsilon, 2, plan("line", epsilon, 2, settings, Objective(), ""))
    assert made.encoder.line is not None
    return made, made.encoder.line


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_weights_have_the_position_as_mean_and_state_their_variance(epsilon: float) -> None:
    made, line = line_of(epsilon)
    points, found = np.arange(line.domain, dtype=np.uint64), line.weights
    law = laws(made, all_reports(made), points[::-1])
    positions = points / (line.domain - 1.0)
    assert law.sum(axis=1) == pytest.approx(np.ones(line.domain), abs=1e-12)
    assert law @ found.mean == pytest.approx(positions, abs=1e-11)
    variance = law @ found.mean**2 - positions**2
    assert found.at == pytest.approx(variance, rel=1e-9)
    assert law @ found.noise == pytest.approx(variance, rel=1e-9)
    # Both ends are alike, so that "other" has the counts that the highest point lacks.
    assert found.mean == pytest.approx(1.0 - found.mean[::-1], abs=1e-11)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_worst_variance_is_that_of_all_places(epsilon: float) -> None:
    _, line = line_of(epsilon)
    found, places = line.weights, np.linspace(0.0, 1.0, 4_001)
    square = np.interp(places, np.linspace(0.0, 1.0, line.domain), found.at + np.linspace(0.0, 1.0, line.domain) ** 2)
    assert found.worst == pytest.approx(float((square - places**2).max()), rel=1e-4)
    gap = square - places**2 - np.interp(places, np.linspace(0.0, 1.0, line.domain), found.at)
    assert gap.max() <= found.rounding * (1.0 + 1e-9)


@pytest.mark.parametrize(("epsilon", "published"), [(1.0, 4.68), (2.0, 1.09), (4.0, 0.16), (6.0, 0.035)])
def test_a_planned_line_has_at_most_the_published_variance(epsilon: float, published: float) -> None:
    # On [-1, 1], four times that on [0, 1]: one bit of Duchi et al. at epsilon 1, discrete square waves above.
    _, line = line_of(epsilon)
    assert 4.0 * line.weights.worst < 1.02 * published
    # No other choice near the planned one is better by more than 2 %.
    for points in (line.domain - 1, line.domain + 1):
        other = line_of(epsilon, m=points)[1].weights.worst
        assert other > 0.98 * line.weights.worst


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_report_moves_the_sum_by_the_stated_influence_and_no_further(epsilon: float) -> None:
    made, line = line_of(epsilon)
    moved = [float(line.weights.mean[start]) for start in range(line.cells)]
    found = influence(made)
    assert (found.up, found.down) == pytest.approx((max(moved), -min(moved)))
    assert found.items == 1


def test_rounding_takes_the_two_points_beside_a_place_without_bias() -> None:
    line = Line(5, 1, 0.5)
    first, last = np.uint64(0), np.uint64(WORD_VALUES - 1)
    for position, low, high in ((0.0, 4, 4), (1.0, 0, 0), (0.25, 3, 3), (0.3, 3, 2), (0.99, 1, 0)):
        words = np.array([last, first], dtype=np.uint64)
        assert line.points(np.full(2, position), words).tolist() == [low, high]
    # 0.3 is 0.2 of the way from point 3 to point 2: exactly so many of all 2^53 numbers are below it.
    edge = math.ceil((0.3 * 4 - 1.0) * 2.0**53)
    for number, item in ((edge - 1, 2), (edge, 3)):
        assert line.points(np.array([0.3]), np.array([number << 11], dtype=np.uint64)).tolist() == [item]


@pytest.mark.parametrize("position", [0.0, 0.07, 0.5, 0.93, 1.0])
def test_counts_are_unbiased_with_the_stated_error_at_every_place(position: float) -> None:
    made, line = line_of(2.0)
    found = np.empty(RUNS)
    stated = np.empty(RUNS)
    for run in range(RUNS):
        items = line.points(np.full(CLIENTS, position), SystemWords().words(CLIENTS))
        counts = made.new_tally(items)
        made.accumulate(counts, made.encode(items, SystemWords()), items)
        estimate = made.estimate(Tally(counts, CLIENTS, items), np.array([0, line.domain - 1], dtype=np.uint64))
        assert estimate.count.sum() == pytest.approx(CLIENTS)
        found[run], stated[run] = estimate.count[0], estimate.standard_error[0] ** 2
    error = math.sqrt(CLIENTS * line.weights.worst)
    assert abs(found.mean() - CLIENTS * position) < deviations(5) * error / math.sqrt(RUNS)
    low, high = variance_ratio_bounds(RUNS, 5, KURTOSIS)
    # The stated error holds the greatest variance of rounding.
    assert low <= found.var(ddof=1) / stated.mean() <= high
    assert stated.mean() < 1.02 * CLIENTS * (line.weights.worst + line.weights.rounding)


def test_other_points_have_no_count_and_no_sum() -> None:
    made, line = line_of(2.0)
    tally = Tally(made.new_tally(np.arange(2, dtype=np.uint64)) + 5, 5 * line.cells, np.arange(2, dtype=np.uint64))
    with pytest.raises(ValueError, match="highest and the lowest"):
        made.estimate(tally, np.array([1], dtype=np.uint64))
    with pytest.raises(ValueError, match="no sum"):
        made.sums(tally, [np.array([0, line.domain - 1], dtype=np.uint64)])


def test_a_line_serves_one_item_and_is_no_frequency_oracle() -> None:
    assert "line" not in CATALOGUE
    with pytest.raises(ValueError, match="--mean"):
        build("line", 1.0, 3, {"m": 5, "b": 1})
    for wrong in ({"m": 1, "b": 0}, {"m": 257, "b": 0}, {"m": 5, "b": 6}, {"m": 5, "b": -1}):
        with pytest.raises(ValueError, match=r"(m|b|s|width) is -?\d+, must be"):
            build("line", 1.0, 2, wrong)


def test_best_line_is_the_best_of_its_candidates() -> None:
    points, spare = best_line(4.0)
    inside = build("line", 4.0, 2, {"m": points, "b": spare}).responder.p
    assert best_line(4.0, points) == (points, spare)
    for other in (spare - 1, spare + 1):
        size, width = 2 * other + 1, points + 2 * other
        beside = size * math.exp(4.0) / (size * math.exp(4.0) + width - size)
        assert weights(points, other, beside).worst > weights(points, spare, inside).worst
