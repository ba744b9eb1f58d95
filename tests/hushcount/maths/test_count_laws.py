"""Counts of what is discovered: the claimed (epsilon, delta) by exact enumeration, and what a count says."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from aux_server.keep import draw_counts
from hushcount.discovery.keep_rules import KeepRule
from hushcount.maths.count_laws import CountLaw, count_law
from hushcount.maths.drawn_noise import count_noise
from hushcount.randomness import WORD_VALUES, SystemWords
from tests.support.divergence import moves
from tests.support.listed import ListedWords
from tests.support.shown_counts import LEAST, noise_law, worst_chance, worst_delta
from tests.support.statistics import FAILURE

ROUNDING = 1e-14
both_relations = pytest.mark.parametrize("relation", ["add-remove", "replace-one"])


def ruled(epsilon: float, delta: float, cap: int = 1, relation: str = "replace-one") -> KeepRule:
    return KeepRule("optimal", epsilon, delta, relation, cap, counts=True)  # type: ignore[arg-type]


def worst(law: CountLaw, epsilon: float, cap: int, *, replace: bool) -> float:
    """Return the largest delta over all ways in which one client changes the bins, and all their counts before."""
    noise = noise_law(law)
    return max(worst_delta(noise, epsilon, steps) for steps in moves(cap, replace=replace))


# Reference values


def test_shares_of_epsilon_make_these_laws(subtests: pytest.Subtests) -> None:
    for share, most, even, sure, spread in (
        (0.5, 35, 36, 41, 2.80),
        (0.6, 29, 30, 36, 2.98),
        (0.7, 25, 27, 35, 3.60),
        (0.75, 23, 26, 35, 4.20),
    ):
        with subtests.test(share=share, most=most):
            law = count_law(Decimal(share), Decimal(1 - share), Fraction(1e-8), 1)
            assert law.most == most
            assert law.standard_deviation == pytest.approx(spread, abs=0.005)
            kept = [law.keep_probability(count) for count in range(100)]
            assert [next(c for c, chance in enumerate(kept) if chance >= wanted) for wanted in (0.5, 0.95)] == [
                even,
                sure,
            ]


def test_the_rule_has_three_fifths() -> None:
    rule = ruled(1.0, 1e-8)
    assert rule.count_law == count_law(Decimal("0.6"), Decimal("0.4"), Fraction(1e-8), 1)
    assert (rule.count_for(0.5), rule.count_for(0.95)) == (30, 36)
    assert rule.count_law.chance(rule.count_law.most) == pytest.approx(6.53e-9, rel=1e-3)


def test_the_law_is_what_it_says_and_cut_as_soon_as_delta_allows(subtests: pytest.Subtests) -> None:
    for relation in ("add-remove", "replace-one"):
        for cap in (1, 2, 3):
            for epsilon, delta in ((1.0, 1e-8), (0.2, 1e-4), (8.0, 0.01), (40.0, 0.3)):
                with subtests.test(relation=relation, cap=cap, epsilon=epsilon, delta=delta):
                    rule = ruled(epsilon, delta, cap, relation)
                    law = rule.count_law
                    with localcontext() as context:
                        context.prec = 60
                        for threshold, loss in ((law.right, rule.loss_epsilon), (law.left, rule.gain_epsilon)):
                            assert 0 <= threshold - (-loss).exp() * WORD_VALUES < 1
                        assert rule.loss_epsilon + rule.gain_epsilon <= Decimal(epsilon) / cap * (
                            1 if relation == "replace-one" else 2
                        )
                    exact = fractions(law)
                    tail = sum(exact[law.most - step] for step in range(cap))
                    assert tail <= Fraction(delta)
                    if law.most > cap - 1:
                        shorter = fractions(CountLaw(law.right, law.left, law.most - 1))
                        assert shorter[law.most - 1] > rule.step_delta


def fractions(law: CountLaw) -> dict[int, Fraction]:
    """Return f(0..B), in exact arithmetic."""
    a, b = Fraction(law.right, WORD_VALUES), Fraction(law.left, WORD_VALUES)
    powers = [Fraction(1)]
    for _ in range(law.most):
        powers.append(powers[-1] * a)
    whole = sum(powers) + b / (1 - b)
    return {noise: power / whole for noise, power in enumerate(powers)}


# The claim, by enumeration

SETTINGS = [
    (1.0, 1e-8, 1, "replace-one"),
    (0.4, 1e-6, 1, "replace-one"),
    (4.0, 1e-3, 1, "replace-one"),
    (3.0, 1e-6, 2, "replace-one"),
    (5.0, 1e-4, 2, "replace-one"),
    (7.0, 1e-2, 3, "replace-one"),
    (40.0, 0.3, 3, "replace-one"),
    (1.0, 1e-8, 1, "add-remove"),
    (1.0, 1e-6, 2, "add-remove"),
    (2.0, 1e-4, 3, "add-remove"),
]


@pytest.mark.parametrize(("epsilon", "delta", "cap", "relation"), SETTINGS)
@pytest.mark.long(but=("1.0-1e-08-1-replace-one", "5.0-0.0001-2-replace-one"))
def test_no_client_can_be_told_apart_better_than_claimed(epsilon: float, delta: float, cap: int, relation: str) -> None:
    law = ruled(epsilon, delta, cap, relation).count_law
    found = worst(law, epsilon, cap, replace=relation == "replace-one")
    exact = fractions(law)
    # What is spent is the chance of the `cap` greatest values, all of it.
    spent = float(sum(exact[law.most - step] for step in range(cap)))
    assert found == pytest.approx(spent, rel=1e-6, abs=ROUNDING)
    assert found <= delta + ROUNDING


@pytest.mark.parametrize(("epsilon", "delta", "cap", "relation"), SETTINGS)
@pytest.mark.long(but=("1.0-1e-08-1-replace-one", "1.0-1e-06-2-add-remove"))
def test_odds_change_by_more_than_epsilon_with_probability_delta_at_most(
    epsilon: float, delta: float, cap: int, relation: str
) -> None:
    """The bound is pointwise, so plain sentences name e^epsilon, and delta as the chance of more."""
    noise, replace = noise_law(ruled(epsilon, delta, cap, relation).count_law), relation == "replace-one"
    for steps in moves(cap, replace=replace):
        assert worst_chance(noise, epsilon, steps) <= delta + ROUNDING, steps


def test_without_counts_odds_change_by_more_than_epsilon_with_a_larger_probability_than_delta() -> None:
    kept = [KeepRule("optimal", 1.0, 1e-8).keep_probability(count) for count in (1, 2)]
    assert kept[1] > math.e * kept[0]
    assert kept[1] > 3e-8


def test_odds_of_a_law_that_is_cut_too_early_are_rejected() -> None:
    law = ruled(1.0, 1e-8).count_law
    assert worst_chance(noise_law(CountLaw(law.right, law.left, law.most - 2)), 1.0, (-1, 1)) > 2e-8


def test_other_laws_are_rejected(subtests: pytest.Subtests) -> None:
    for right, left, shorter in ((0.7, 0.4, 0), (0.6, 0.5, 0), (0.6, 0.4, 2), (1.0, 1.0, 0)):
        with subtests.test(right=right, left=left):
            law = count_law(Decimal(right), Decimal(left), Fraction(1e-8), 1)
            broken = CountLaw(law.right, law.left, law.most - shorter)
            assert worst(broken, 1.0, 1, replace=True) > 2e-8


def test_the_law_for_one_report_is_rejected_for_a_client_of_several(subtests: pytest.Subtests) -> None:
    for relation in ("add-remove", "replace-one"):
        with subtests.test(relation=relation):
            law = ruled(1.0, 1e-6, 1, relation).count_law
            assert worst(law, 1.0, 2, replace=False) > 1e-2


def test_noise_that_is_cut_on_the_left_is_rejected() -> None:
    # A bin that gains a report could then no longer show what it showed before.
    law = ruled(1.0, 1e-6).count_law
    noise = noise_law(law)
    cut = np.where(np.arange(LEAST, law.most + 1) < -10, 0.0, noise)
    assert worst_delta(cut / cut.sum(), 1.0, (1,)) > 1e-4


def test_the_shortcut_agrees_with_the_sum_over_all_outcomes(subtests: pytest.Subtests) -> None:
    for steps in ((1,), (-1,), (2,), (-3,), (1, -1), (-2, 1)):
        with subtests.test(steps=steps):
            law = ruled(3.0, 1e-2, 3).count_law
            noise, found = noise_law(law), 0.0
            counts = range(max(0, *(-step for step in steps)), 25)
            places = np.array(np.meshgrid(*[list(counts)] * len(steps))).reshape(len(steps), -1).T
            shown = [outcomes(noise, law.most, count) for count in range(max(counts) + 3)]
            for start in places:
                laws = [joint([shown[count] for count in at]) for at in (start, start + np.array(steps))]
                found = max(found, float(np.maximum(laws[0] - math.exp(3.0) * laws[1], 0.0).sum()))
            assert worst_delta(noise, 3.0, steps, range(25)) == pytest.approx(found, rel=1e-9, abs=1e-17)


def outcomes(noise: np.ndarray, most: int, count: int) -> np.ndarray:
    """Return the law of what a bin of this count shows: counts from B + 1 to B + 30, or nothing, first."""
    law = np.zeros(31)
    for value, chance in zip(range(LEAST, most + 1), noise, strict=True):
        place = count + value - most
        law[place if count and place >= 1 else 0] += chance
    return law


def joint(laws: Iterable[np.ndarray]) -> np.ndarray:
    """Return the joint law of what several bins show."""
    return reduce(np.multiply.outer, laws).reshape(-1)


# What a count says


def test_the_figures_of_a_law_are_its_sums(subtests: pytest.Subtests) -> None:
    for law in (ruled(1.0, 1e-8).count_law, ruled(0.3, 1e-4, 2, "add-remove").count_law):
        with subtests.test(law=law):
            values = np.arange(-3000, law.most + 1)
            chances = np.array([law.chance(int(value)) for value in values])
            mean = float((values * chances).sum())
            assert chances.sum() == pytest.approx(1.0, rel=1e-12)
            assert law.chance(law.most + 1) == 0.0
            assert law.mean == pytest.approx(mean, rel=1e-9, abs=1e-12)
            assert law.standard_deviation == pytest.approx(
                float(((values - mean) ** 2 * chances).sum()) ** 0.5, rel=1e-9
            )
            for value in (-40, -1, 0, 1, law.most - 1, law.most, law.most + 1):
                assert law.at_least(value) == pytest.approx(chances[values >= value].sum(), rel=1e-9)
                assert law.at_most(value) == pytest.approx(chances[values <= value].sum(), rel=1e-9)
            for wanted in (1e-6, 0.025, 0.5, 0.975, 1 - 1e-6):
                value = law.quantile(wanted)
                assert law.at_most(value - 1) < wanted <= law.at_most(value)
            for count in (1, 5, law.most, law.most + 1, law.most + 9, 10 * law.most):
                kept = values >= law.threshold - count
                assert law.keep_probability(count) == pytest.approx(chances[kept].sum(), rel=1e-9)
                given = float((values * chances)[kept].sum() / chances[kept].sum())
                assert law.bias(count) == pytest.approx(given - mean, rel=1e-6, abs=1e-9)
            assert law.keep_probability(0) == 0.0


def test_the_bias_falls_from_the_threshold_to_nothing() -> None:
    law = ruled(1.0, 1e-8).count_law
    biases = [law.bias(count) for count in range(1, 200)]
    assert all(one > two - 1e-12 for one, two in pairwise(biases))
    assert biases[29] == pytest.approx(2.03, abs=0.005)
    assert biases[99] < 1e-6


def test_intervals_hold_with_their_confidence_given_that_the_bin_is_kept(subtests: pytest.Subtests) -> None:
    for confidence in (0.5, 0.95):
        for law in (ruled(1.0, 1e-8).count_law, ruled(2.0, 1e-4, 2).count_law):
            with subtests.test(confidence=confidence, law=law):
                top = 3 * law.threshold
                limits = {shown: law.interval(shown, confidence) for shown in range(law.threshold, top + law.most + 1)}
                assert all(1 <= low <= high for low, high in limits.values())
                for count in range(1, top + 1):
                    held = sum(
                        law.chance(shown - count)
                        for shown in range(law.threshold, count + law.most + 1)
                        if limits[shown][0] <= count <= limits[shown][1]
                    )
                    assert held / law.keep_probability(count) >= confidence - 1e-9
                # Far from the threshold they are as long as the noise, and no longer.
                low, high = law.interval(top, confidence)
                error = (1 - confidence) / 2
                assert high - low <= law.quantile(1 - error) - law.quantile(error)


def test_an_interval_wants_a_confidence_and_a_count_that_is_shown(subtests: pytest.Subtests) -> None:
    for confidence in (0.0, 1.0, math.nan):
        with subtests.test(confidence=confidence):
            law = ruled(1.0, 1e-8).count_law
            with pytest.raises(ValueError, match="confidence is"):
                law.interval(50, confidence)
            with pytest.raises(ValueError, match=r"is 29,.* 30$"):
                law.interval(29, 0.95)
            for beyond in ((1 << 62) - 1, 1 << 62, (1 << 63) - 1):
                with pytest.raises(ValueError, match=f"{beyond}"):
                    law.interval(beyond, 0.95)
            assert law.interval(1 << 61, 0.95)[0] < 1 << 61 < law.interval(1 << 61, 0.95)[1]
            with pytest.raises(ValueError, match=r"count is 0,.*\b1\b"):
                law.bias(0)
            with pytest.raises(ValueError, match="probability is"):
                law.quantile(confidence)


def test_only_the_optimal_rule_has_counts() -> None:
    with pytest.raises(ValueError, match=r"laplace.*optimal.*counts"):
        KeepRule("laplace", 1.0, 1e-8, counts=True)
    with pytest.raises(ValueError, match=r"optimal .*counts"):
        _ = KeepRule("optimal", 1.0, 1e-8).count_law


# Drawing


def test_noise_is_the_difference_of_two_runs() -> None:
    law = CountLaw(1 << 63, 1 << 62, 2)
    success, failure = 0, WORD_VALUES - 1
    # Both right runs in turns, then both left runs; the first bin's 3 is above 2 and is drawn anew, as 0 - 1.
    both = [success, success, success, failure, success, failure, failure, success, failure]
    words = ListedWords([*both, failure, success, failure])
    assert count_noise(law, 2, words).tolist() == [-1, 0]
    assert words.used == 12


def test_noise_follows_the_law_and_another_is_rejected(subtests: pytest.Subtests) -> None:
    draws = 40_000
    # Two laws, and at most 40 values of each: FAILURE in all.
    for law in (ruled(1.0, 1e-3).count_law, ruled(2.0, 1e-2, 2, "add-remove").count_law):
        with subtests.test(law=law):
            drawn = count_noise(law, draws, SystemWords())
            assert drawn.max() <= law.most

            more = [(value, int((drawn >= value).sum())) for value in range(-10, law.most + 1)]

            def least(stated: CountLaw, more: list[tuple[int, int]] = more) -> float:
                tests = (stats.binomtest(number, draws, stated.at_least(value)) for value, number in more)
                return min(float(test.pvalue) for test in tests)

            assert least(law) >= FAILURE / 80
            for factor in (0.7, 1.3):
                right, left = (int((each / WORD_VALUES) ** factor * WORD_VALUES) for each in (law.right, law.left))
                assert least(CountLaw(right, left, law.most)) < FAILURE / 80


def test_bins_show_a_count_above_the_threshold_or_none() -> None:
    rule = ruled(1.0, 1e-2)
    law, draws = rule.count_law, 20_000
    for count in (1, law.most // 2, law.most, law.threshold, 3 * law.threshold):
        shown = draw_counts(rule, np.full(draws, count), SystemWords())
        assert ((shown == 0) | ((shown >= law.threshold) & (shown <= count + law.most))).all()
        kept = int((shown > 0).sum())
        assert stats.binomtest(kept, draws, law.keep_probability(count)).pvalue >= FAILURE / 5


def test_no_bins_show_no_counts() -> None:
    assert draw_counts(ruled(1.0, 1e-2), np.zeros(0, dtype=np.int64), SystemWords()).tolist() == []
