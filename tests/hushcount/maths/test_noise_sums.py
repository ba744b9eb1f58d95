"""Sums of the dummies of mixes, against convolutions and enumerations that are written here anew."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pytest
from scipy import stats

from hushcount.discovery.keep_rules import KeepRule
from hushcount.maths.count_laws import CountLaw
from hushcount.maths.drawn_noise import count_noise
from hushcount.maths.noise_sums import LEAST_TAIL, NOTHING, NoiseSum, WeightedSum, dummies_of
from hushcount.randomness import SystemWords
from tests.support.shown_counts import noise_law
from tests.support.statistics import FAILURE

BUDGETS = (0.25, 0.5, 1.0, 2.0, 4.0)


def law_of(epsilon: float, delta: float = 1e-8, cap: int = 1) -> CountLaw:
    return KeepRule("optimal", epsilon, delta, "replace-one", cap, counts=True).count_law


def of_one(law: CountLaw) -> np.ndarray:
    """Return float64[...], the chance of 0, 1, ... dummies of one mix, from the law's integers alone."""
    return noise_law(law)[::-1]


@pytest.mark.parametrize("draws", [1, 2, 5])
def test_a_sum_is_the_convolution_of_its_draws(draws: int) -> None:
    law = law_of(1.0)
    exact = reduce(np.convolve, [of_one(law)] * draws)
    found = dummies_of(law, draws)
    values = np.arange(len(exact))
    mean = float(exact @ values)
    assert found.chances == pytest.approx(exact[found.least : found.least + len(found.chances)], rel=1e-9, abs=1e-30)
    assert found.mean == pytest.approx(mean, rel=1e-12)
    assert found.mean == pytest.approx(draws * (law.most - law.mean), rel=1e-12)
    assert found.variance == pytest.approx(draws * law.standard_deviation**2, rel=1e-9)
    asked = np.arange(-3.0, 400.0)
    above = np.array([exact[values >= number].sum() for number in asked])
    below = np.array([exact[values <= number].sum() for number in asked])
    assert found.at_least(asked) == pytest.approx(np.clip(above, LEAST_TAIL, 1.0), rel=1e-9)
    assert found.at_most(asked) == pytest.approx(np.clip(below, LEAST_TAIL, 1.0), rel=1e-9)
    # Between whole numbers the next one counts.
    assert np.array_equal(found.at_least(asked - 0.5), found.at_least(asked))
    assert np.array_equal(found.at_most(asked + 0.5), found.at_most(asked))


def test_a_long_sum_keeps_its_tails() -> None:
    """Sums of many draws are made by Fourier transforms: their tails agree with sums made without."""
    law, draws = law_of(1.0), 20_000
    found = dummies_of(law, draws)
    assert len(found.chances) > 1 << 12
    half = dummies_of(law, draws // 2)
    exact = NoiseSum(2 * half.least, np.convolve(half.chances, half.chances))
    deviation = math.sqrt(found.variance)
    asked = found.mean + deviation * np.linspace(-6.0, 6.0, 49)
    assert found.at_least(asked) == pytest.approx(exact.at_least(asked), rel=1e-3)
    assert found.at_most(asked) == pytest.approx(exact.at_most(asked), rel=1e-3)
    assert found.at_least(asked) == pytest.approx(stats.norm.sf(np.linspace(-6.0, 6.0, 49)), rel=0.2, abs=1e-7)
    assert found.variance == pytest.approx(draws * law.standard_deviation**2, rel=1e-9)


def test_no_tail_is_said_to_be_smaller_than_its_law_is_known() -> None:
    found = dummies_of(law_of(4.0), 2)
    assert found.at_least(np.array([1e9])).tolist() == [LEAST_TAIL]
    assert found.at_most(np.array([-1e9])).tolist() == [LEAST_TAIL]
    assert NOTHING.at_least(np.array([0.0, 1.0])).tolist() == [1.0, LEAST_TAIL]


def test_a_weighted_sum_has_tails_that_are_exact_or_a_little_larger() -> None:
    law, other = dummies_of(law_of(1.0), 2), dummies_of(law_of(2.0), 3)
    weights = (1.0 / 700.0, -1.0 / 2_000.0)
    found = WeightedSum.of([(weights[0], law), (weights[1], other)])
    first, second = np.meshgrid(law.values - law.mean, other.values - other.mean, indexing="ij")
    sums, chances = weights[0] * first + weights[1] * second, np.outer(law.chances, other.chances)
    deviation = math.sqrt(float((sums**2 * chances).sum()))
    for number in deviation * np.linspace(-6.0, 6.0, 25):
        above, below = (float(chances[place].sum()) for place in (sums >= number, sums <= number))
        nearer = (
            float(chances[place].sum())
            for place in (sums >= number - 0.03 * deviation, sums <= number + 0.03 * deviation)
        )
        said = float(found.two_sided(np.array([number]))[0])
        assert said >= min(1.0, 2.0 * min(above, below)) * (1.0 - 1e-9)
        assert said <= min(1.0, 2.0 * min(nearer)) + 1e-9


# What a mix adds protects


def losses(law: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the losses of a bin that changes by a step, and their chances before: those that differ, each once."""
    before = np.pad(law, (abs(step), abs(step)))
    after = np.roll(before, step)
    seen = before > 0.0
    with np.errstate(divide="ignore"):
        each = np.round(np.log(before[seen] / after[seen]), 9)
    distinct, place = np.unique(each, return_inverse=True)
    return distinct, np.bincount(place, weights=before[seen])


def delta_of(law: np.ndarray, epsilon: float, steps: tuple[int, ...]) -> float:
    """Return the hockey-stick divergence of bins that change by these steps, by all their losses together.

    The counts themselves do not matter, because the dummies do not depend on them.
    """
    total, chances = np.zeros(1), np.ones(1)
    for step in steps:
        loss, weight = losses(law, step)
        total, place = np.unique(np.round(np.add.outer(total, loss).reshape(-1), 8), return_inverse=True)
        chances = np.bincount(place, weights=np.multiply.outer(chances, weight).reshape(-1))
    over = total > epsilon + 1e-7
    return float(chances[over] @ -np.expm1(epsilon - total[over]))


MOVES = {1: [(-1, 1)], 2: [(-1, 1), (-2, 2), (-1, -1, 2), (-2, 1, 1), (-1, -1, 1, 1)]}
"""The bins that lose and gain if a client's reports, one or two, are others: all ways, order aside."""


@pytest.mark.parametrize("cap", [1, 2])
@pytest.mark.parametrize("epsilon", BUDGETS)
def test_the_dummies_of_one_mix_alone_keep_epsilon_and_delta(epsilon: float, cap: int) -> None:
    delta = 1e-8
    law = law_of(epsilon, delta, cap)
    dummies = of_one(law)
    found = {steps: delta_of(dummies, epsilon, steps) for steps in MOVES[cap]}
    assert max(found.values()) <= delta
    # What is spent is the chance of too few dummies: a bin cannot show fewer reports than it has.
    assert found[-cap, cap] == pytest.approx(dummies[:cap].sum(), rel=1e-5)
    assert found[-cap, cap] == max(found.values())
    # Half of the width: twice the loss.
    half = dummies[: len(dummies) // 2 * 2].reshape(-1, 2).sum(axis=1)
    assert delta_of(half, epsilon, (-cap, cap)) > 1e3 * delta


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_whoever_knows_the_dummies_of_one_mix_faces_those_of_the_other(epsilon: float) -> None:
    """The whole view of one mix with the analyzer, enumerated: its own dummies, and the counts with all dummies."""
    law = law_of(epsilon, 1e-4)
    own = of_one(law)[:60]
    views = []
    for moved in (0, 1):
        # Two items, of which the client holds the first or the second.
        shown = np.zeros((2, len(own), 2 * len(own) + 1))
        for item, held in enumerate((1 - moved, moved)):
            for known in range(len(own)):
                shown[item, known, known + held : known + held + len(own)] = own[known] * own
        views.append(shown)
    before, after = views
    (first, first_after), (second, second_after) = ((before[item], after[item]) for item in (0, 1))
    assert joined(first, first_after, second, second_after, epsilon) == pytest.approx(
        delta_of(own / own.sum(), epsilon, (-1, 1)), rel=1e-4
    )
    assert joined(first, first_after, second, second_after, epsilon) <= 1e-4
    # Both mixes honest: more noise, and less is lost.
    both = np.convolve(own, own)
    assert delta_of(both, epsilon, (-1, 1)) < delta_of(own, epsilon, (-1, 1))


def joined(
    first: np.ndarray, first_after: np.ndarray, second: np.ndarray, second_after: np.ndarray, epsilon: float
) -> float:
    """Return the divergence of two items' views: outcomes of one loss are alike, so they are added up first."""
    total, chances = np.zeros(1), np.ones(1)
    for was, now in ((first, first_after), (second, second_after)):
        seen = was > 0.0
        with np.errstate(divide="ignore"):
            loss, place = np.unique(np.round(np.log(was[seen] / now[seen]), 9), return_inverse=True)
        weight = np.bincount(place, weights=was[seen])
        total = np.add.outer(total, loss).reshape(-1)
        chances = np.multiply.outer(chances, weight).reshape(-1)
    over = total > epsilon + 1e-7
    return float(chances[over] @ -np.expm1(epsilon - total[over]))


def test_both_mixes_together_lose_less() -> None:
    both = np.convolve(of_one(law_of(1.0)), of_one(law_of(1.0)))
    assert delta_of(both, 0.9, (-1, 1)) <= 1e-8
    assert delta_of(both, 0.8, (-1, 1)) > 1e-8


def test_drawn_dummies_follow_the_law_and_half_of_it_is_rejected() -> None:
    law, draws = law_of(1.0), 40_000
    drawn = law.most - count_noise(law, draws, SystemWords())
    assert drawn.min() >= 0
    more = np.arange(20, 45)
    found = [
        (int((drawn >= number).sum()), float(tail))
        for number, tail in zip(more, dummies_of(law, 1).at_least(more), strict=True)
    ]
    assert min(stats.binomtest(number, draws, tail).pvalue for number, tail in found) >= FAILURE / len(more)
    narrow = law.most - law_of(2.0).most + dummies_of(law_of(2.0), 1).values
    assert narrow[0] > 0
    tails = dummies_of(law_of(2.0), 1).at_least(more - (law.most - law_of(2.0).most))
    assert min(
        stats.binomtest(number, draws, float(tail)).pvalue for (number, _), tail in zip(found, tails, strict=True)
    ) < FAILURE / len(more)
