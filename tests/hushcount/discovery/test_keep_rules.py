"""Keep rules: the reference values, and the claimed (epsilon, delta) against exact enumeration of all small cases."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import stats

from aux_server.keep import draw_kept
from hushcount.discovery.keep_rules import KeepRule
from hushcount.maths.drawn_noise import laplace_noise
from hushcount.randomness import WORD_VALUES, SystemWords
from tests.support.divergence import moves, worst_delta
from tests.support.listed import ListedWords
from tests.support.statistics import FAILURE

ROUNDING = 1e-14
"""Float error of a sum of differences of probabilities; an absolute error, since the terms cancel."""
both_rules = pytest.mark.parametrize("name", ["optimal", "laplace"])
both_relations = pytest.mark.parametrize("relation", ["add-remove", "replace-one"])


def probabilities(rule: KeepRule) -> np.ndarray:
    """Return float64[counts]: the keep probability of every count from 0 to well past certainty or the threshold."""
    top = len(rule.optimal_thresholds) if rule.name == "optimal" else 2 * rule.laplace_threshold
    return np.array([rule.keep_probability(count) for count in range(top + rule.cap + 1)])


def worst(rule: KeepRule, epsilon: float, cap: int, *, replace: bool) -> float:
    keep = probabilities(rule)
    return max(worst_delta(keep, epsilon, steps) for steps in moves(cap, replace=replace))


# Reference values


def test_the_laplace_threshold_is_the_least_that_delta_allows() -> None:
    for epsilon in (0.3, 1.0, 4.0):
        for delta in (1e-3, 1e-6, 1e-9):
            rule = KeepRule("laplace", epsilon, delta, "add-remove")
            ratio = math.exp(-epsilon)
            tail = [ratio**t / (1 + ratio) for t in (rule.laplace_threshold - 1, rule.laplace_threshold - 2)]
            assert tail[0] <= delta * (1 + 1e-12)
            assert tail[1] > delta or rule.laplace_threshold == 2


def test_the_laplace_law_sums_the_noise_beyond_the_threshold() -> None:
    rule = KeepRule("laplace", 0.7, 1e-3, "add-remove")
    ratio = math.exp(-0.7)
    noise = {value: (1 - ratio) / (1 + ratio) * ratio ** abs(value) for value in range(-400, 401)}
    for count in range(1, 40):
        kept = sum(chance for value, chance in noise.items() if count + value >= rule.laplace_threshold)
        assert rule.keep_probability(count) == pytest.approx(kept, rel=1e-9)


def test_the_optimal_rule_keeps_at_least_as_much_as_laplace(subtests: pytest.Subtests) -> None:
    for relation in ("add-remove", "replace-one"):
        with subtests.test(relation=relation):
            optimal, laplace = (KeepRule(name, 1.0, 1e-6, relation, cap=2) for name in ("optimal", "laplace"))
            # Under replace-one with a quarter of epsilon, where laplace has half: where a bin is as good as certain.
            for count in range(200 if relation == "add-remove" else optimal.count_for(0.99)):
                assert optimal.keep_probability(count) >= laplace.keep_probability(count) - ROUNDING


def test_the_optimal_rule_for_replace_one_needs_so_many_clients(subtests: pytest.Subtests) -> None:
    for epsilon, cap, even, sure in (
        (0.5, 1, 47, 65),
        (1.0, 1, 25, 34),
        (2.0, 1, 13, 18),
        (4.0, 1, 7, 9),
        (1.0, 3, 74, 102),
    ):
        with subtests.test(epsilon=epsilon, cap=cap):
            rule = KeepRule("optimal", epsilon, 1e-8, "replace-one", cap)
            assert (rule.count_for(0.5), rule.count_for(0.95)) == (even, sure)


def test_no_other_share_needs_fewer_clients_for_an_even_chance() -> None:
    rule = KeepRule("optimal", 1.0, 1e-8)
    even = {share: recursion(share, 1.0 - share, 1e-8, 0.0) for share in (0.5, 0.6, 0.65, 0.7, 0.75, 0.78, 0.8, 0.9)}
    clients = {share: int(np.argmax(keep >= 0.5)) for share, keep in even.items()}
    assert clients[0.75] == rule.count_for(0.5) == 25
    assert clients[0.5] == 35
    assert sorted(clients.items(), key=lambda each: each[1])[0] == (0.78, 24)


# The step law, in exact arithmetic


def test_every_step_of_the_rounded_optimal_rule_is_within_its_bounds(subtests: pytest.Subtests) -> None:
    for relation in ("add-remove", "replace-one"):
        for cap in (1, 2, 3):
            for epsilon, delta in ((1.0, 1e-6), (0.2, 1e-9), (8.0, 0.01)):
                with subtests.test(relation=relation, cap=cap, epsilon=epsilon, delta=delta):
                    rule = KeepRule("optimal", epsilon, delta, relation, cap)
                    replace = relation == "replace-one"
                    with localcontext() as context:
                        context.prec = 60
                        loss, gain = (Decimal(epsilon) * share / (4 * cap) for share in ((3, 1) if replace else (4, 4)))
                        rise, fall = Fraction(loss.exp()), Fraction(gain.exp())
                        lost = Fraction(delta) / sum(Fraction((loss * i).exp()) for i in range(cap))
                    gained = 0 if replace else lost
                    exact = [Fraction(threshold, WORD_VALUES) for threshold in rule.optimal_thresholds]
                    slack = Fraction(1, 10**40)
                    assert exact[0] == 0
                    # Without a delta for bins that gain no bin is certain: the rounded chance of a drop ends at
                    # 1/S times 2**-64.
                    assert 0 <= 1 - exact[-1] <= (Fraction(fall / (fall - 1)) / WORD_VALUES if replace else 0)
                    assert exact[-1] < 1 or not replace
                    for less, more in pairwise(exact):
                        assert less < more
                        assert more - rise * less <= lost + slack
                        assert (1 - less) - fall * (1 - more) <= gained + slack


# The claim, by enumeration

SETTINGS = [
    # epsilon, delta, cap, relation: those with many bins affected reach certainty at few reports, to be enumerable.
    (1.0, 1e-6, 1, "add-remove"),
    (1.0, 1e-6, 2, "add-remove"),
    (1.0, 1e-4, 3, "add-remove"),
    (1.0, 1e-6, 1, "replace-one"),
    (4.0, 1e-3, 2, "replace-one"),
    (9.0, 5e-2, 3, "replace-one"),
]
OPTIMAL = [
    (0.5, 1e-8, 1), (1.0, 1e-8, 1), (2.0, 1e-8, 1), (4.0, 1e-12, 1),
    (1.0, 1e-4, 2), (3.0, 1e-6, 2),
    (3.0, 1e-3, 3), (6.0, 1e-4, 3),
]  # fmt: skip


@both_rules
@pytest.mark.parametrize(("epsilon", "delta", "cap", "relation"), SETTINGS)
@pytest.mark.long(
    but=(
        "1.0-1e-06-1-replace-one-optimal",
        "1.0-1e-06-2-add-remove-laplace",
    )
)
def test_no_client_can_be_told_apart_better_than_claimed(
    epsilon: float, delta: float, cap: int, relation: str, name: str
) -> None:
    rule = KeepRule(name, epsilon, delta, relation, cap)
    assert worst(rule, epsilon, cap, replace=relation == "replace-one") <= delta + ROUNDING


@pytest.mark.parametrize(("epsilon", "delta", "cap"), OPTIMAL)
@pytest.mark.long(but=("1.0-1e-08-1", "3.0-1e-06-2", "6.0-0.0001-3"))
def test_the_optimal_rule_for_replace_one_spends_delta_and_no_more(epsilon: float, delta: float, cap: int) -> None:
    rule = KeepRule("optimal", epsilon, delta, "replace-one", cap)
    found = worst(rule, epsilon, cap, replace=True)
    assert 0.999 * delta <= found <= delta + ROUNDING
    # What it spends is of bins that lose: alone, they have all of delta at three quarters of epsilon, no less.
    assert worst(rule, 0.75 * epsilon, cap, replace=False) <= delta + ROUNDING
    assert worst(rule, 0.70 * epsilon, cap, replace=False) > 2 * delta


def recursion(loss: float, gain: float, lost: float, gained: float) -> np.ndarray:
    """Return float64[counts]: the greatest keep probabilities of these bounds, in floating point."""
    keep = [0.0]
    while keep[-1] < 1 - 1e-15:
        keep.append(min(math.exp(loss) * keep[-1] + lost, 1 - math.exp(-gain) * (1 - keep[-1] - gained), 1.0))
    return np.array([*keep, keep[-1]])


@both_relations
def test_the_optimal_rule_is_its_recursion(relation: str) -> None:
    rule = KeepRule("optimal", 1.0, 1e-8, relation)
    keep = recursion(0.75, 0.25, 1e-8, 0.0) if relation == "replace-one" else recursion(1.0, 1.0, 1e-8, 1e-8)
    for count, kept in enumerate(keep):
        assert rule.keep_probability(count) == pytest.approx(kept, rel=1e-9, abs=1e-15)


def test_other_shares_of_epsilon_and_delta_are_rejected(subtests: pytest.Subtests) -> None:
    cases = [
        (0.75, 0.25, 1.0, 0.0, None),
        (0.50, 0.50, 0.5, 0.5, None),
        # Losses of more than epsilon together; delta in full for bins that gain as well; all of it for each of both.
        (0.75, 0.35, 1.0, 0.0, 2.0),
        (0.85, 0.25, 1.0, 0.0, 2.0),
        (0.75, 0.75, 1.0, 0.0, 2.0),
        (1.00, 1.00, 1.0, 1.0, 2.0),
        (0.75, 0.25, 1.0, 1.0, 1.5),
        (0.50, 0.50, 1.0, 1.0, 1.5),
        (0.75, 0.25, 0.5, 1.0, 1.1),
        (0.75, 0.25, 1.5, 0.0, 1.4),
    ]
    for loss, gain, lost, gained, least in cases:
        with subtests.test(loss=loss, gain=gain):
            delta = 1e-6
            keep = recursion(loss, gain, lost * delta, gained * delta)
            found = max(worst_delta(keep, 1.0, steps) for steps in moves(1, replace=True))
            if least is None:
                assert found <= delta + ROUNDING
            else:
                assert found > least * delta


def test_no_count_is_left_out_that_tells_more(subtests: pytest.Subtests) -> None:
    # Every pair of starting counts of two bins, without the shortcut.
    for replace in (False, True):
        with subtests.test(replace=replace):
            rule = KeepRule("optimal", 2.0, 1e-3, "replace-one" if replace else "add-remove")
            keep = probabilities(rule)
            for steps in ((1, -1), (-2, 1), (3, -3)) if replace else ((1, 1), (-2, -1)):
                starts = [range(max(0, -step), len(keep) - max(0, step)) for step in steps]
                found = 0.0
                for counts in product(*starts):
                    laws = []
                    for at in (counts, [count + step for count, step in zip(counts, steps, strict=True)]):
                        laws.append(np.multiply.outer(*([keep[count], 1.0 - keep[count]] for count in at)))
                    found = max(found, float(np.maximum(laws[0] - math.exp(1.0) * laws[1], 0.0).sum()))
                assert worst_delta(keep, 1.0, steps) == pytest.approx(found, rel=1e-12)


def test_the_optimal_rule_spends_all_of_its_delta() -> None:
    rule = KeepRule("optimal", 1.0, 1e-6, "add-remove")
    assert worst(rule, 1.0, 1, replace=False) == pytest.approx(1e-6, rel=1e-6)


def test_the_claim_of_the_paper_is_rejected_under_its_own_relation() -> None:
    # [J] Theorem 4 calibrates for add-remove and states replace-one. As printed, with continuous noise and the
    # threshold 14.12, the truth at epsilon 1 and delta 1e-6 is 0.19.
    threshold = 1.0 + math.log(1.0 / (2.0 * 1e-6))
    printed = np.array([0.0, *(stats.laplace.sf(threshold - count) for count in range(1, 40))])
    assert max(worst_delta(printed, 1.0, steps) for steps in moves(1, replace=False)) <= 1e-6 + ROUNDING
    assert max(worst_delta(printed, 1.0, steps) for steps in moves(1, replace=True)) == pytest.approx(0.19, abs=5e-3)


def test_a_rule_for_add_remove_is_rejected_under_replace_one(subtests: pytest.Subtests) -> None:
    for name in ("optimal", "laplace"):
        with subtests.test(name=name):
            rule = KeepRule(name, 1.0, 1e-6, "add-remove")
            assert worst(rule, 1.0, 1, replace=False) <= 1e-6 + ROUNDING
            assert worst(rule, 1.0, 1, replace=True) > 0.1


def test_the_claim_per_message_is_rejected_for_a_client_of_several(subtests: pytest.Subtests) -> None:
    for name in ("optimal", "laplace"):
        with subtests.test(name=name):
            rule = KeepRule(name, 1.0, 1e-6, "add-remove", cap=1)
            assert worst(rule, 1.0, 2, replace=False) > 0.1


def test_the_moves_of_a_client_are_all_there() -> None:
    assert set(moves(1, replace=False)) == {(1,), (-1,)}
    assert set(moves(1, replace=True)) == {(1,), (-1,), (1, -1)}
    assert set(moves(2, replace=False)) == {(1,), (2,), (1, 1), (-1,), (-2,), (-1, -1)}
    assert len(list(moves(3, replace=True))) == 7 * 7 - 1
    assert max(len(steps) for steps in moves(3, replace=True)) == 6


def test_the_divergence_of_one_bin_by_hand() -> None:
    keep = np.array([0.0, 0.1, 0.5])
    assert worst_delta(keep, 0.0, (1,)) == pytest.approx(0.4)
    assert worst_delta(keep, math.log(2.0), (1,)) == pytest.approx(max(0.0, 0.9 - 2 * 0.5, 1.0 - 2 * 0.9))
    assert worst_delta(keep, math.log(2.0), (-1,)) == pytest.approx(0.5 - 2 * 0.1)
    # Two bins, one up and one down, by total variation of the products.
    assert worst_delta(np.array([0.0, 0.25]), 0.0, (1, -1)) == pytest.approx(0.25)


# Counts for a wanted chance


def test_count_for_is_the_least_count(subtests: pytest.Subtests) -> None:
    for name in ("optimal", "laplace"):
        for relation in ("add-remove", "replace-one"):
            for wanted in (1e-9, 0.05, 0.5, 0.95, 1 - 1e-9):
                with subtests.test(name=name, relation=relation, wanted=wanted):
                    rule = KeepRule(name, 1.0, 1e-6, relation, 2)
                    count = rule.count_for(wanted)
                    assert rule.keep_probability(count) >= wanted
                    assert rule.keep_probability(count - 1) < wanted


def test_count_for_refuses_certainty_and_nonsense(subtests: pytest.Subtests) -> None:
    for wanted in (0.0, 1.0, -1.0, math.nan):
        with subtests.test(wanted=wanted):
            rule = KeepRule("optimal", 1.0, 1e-6)
            with pytest.raises(ValueError, match=rf"probability is {wanted},.*\(0, 1\)"):
                rule.count_for(wanted)


def test_bad_rules_raise_with_name_and_value(subtests: pytest.Subtests) -> None:
    cases = [
        ({"epsilon": 0.0}, r"epsilon is 0.0,.*\[0.0001, 40.0\]"),
        ({"epsilon": math.nan}, "epsilon is nan,"),
        ({"epsilon": math.inf}, "epsilon is inf,"),
        ({"delta": 0.0}, r"delta is 0.0,.*\(0, 1\)"),
        ({"delta": 1.0}, r"delta is 1.0,.*\(0, 1\)"),
        ({"delta": math.nan}, r"delta is nan,.*\(0, 1\)"),
        ({"delta": 1e-25}, r"delta is 1e-25, .* 2\*\*-64"),
        ({"cap": 0}, "cap is 0,.*1..1000"),
        ({"epsilon": 1e-4, "cap": 3}, "epsilon is 0.0001 for cap 3"),
    ]
    for changed, message in cases:
        with subtests.test(changed=changed), pytest.raises(ValueError, match=message):
            KeepRule(**{"name": "optimal", "epsilon": 1.0, "delta": 1e-6, **changed})


# Drawing

DRAWS = 5000


def p_values(drawn: KeepRule, stated: KeepRule, counts: list[int]) -> list[float]:
    """Return, for each count, the exact binomial p-value of how often its bin was kept."""
    kept = draw_kept(drawn, np.repeat(np.array(counts), DRAWS), SystemWords()).reshape(len(counts), DRAWS).sum(axis=1)
    return [
        float(stats.binomtest(int(times), DRAWS, stated.keep_probability(count)).pvalue)
        for times, count in zip(kept, counts, strict=True)
    ]


@both_rules
@pytest.mark.long(but=("optimal",))
def test_bins_are_kept_with_the_stated_probability_and_a_law_off_is_rejected(name: str) -> None:
    # Exact binomial tests at FAILURE for all counts together. 30 % of the budget more or less moves some count's
    # probability by more than ten standard deviations.
    def rule(factor: float) -> KeepRule:
        return KeepRule(name, factor * 1.0, 1e-3, "replace-one")

    counts = [1, 2, 3, 4, 7, 9, 11, 13, 14, 15, 17, 20, 30, 60]
    assert min(p_values(rule(1.0), rule(1.0), counts)) >= FAILURE / len(counts)
    for factor in (0.7, 1.3):
        assert min(p_values(rule(factor), rule(1.0), counts)) < FAILURE / len(counts)


def test_bins_are_drawn_each_by_itself(subtests: pytest.Subtests) -> None:
    # Neighbouring bins of an even chance or nearly so: both kept as often as independence says.
    for name in ("optimal", "laplace"):
        with subtests.test(name=name):
            rule = KeepRule(name, 1.0, 1e-3, "add-remove")
            count = rule.count_for(0.4)
            chance = rule.keep_probability(count)
            kept = draw_kept(rule, np.full(2 * DRAWS, count), SystemWords()).reshape(-1, 2).all(axis=1).sum()
            assert stats.binomtest(int(kept), DRAWS, chance**2).pvalue >= FAILURE


def test_the_optimal_rule_decides_at_its_threshold() -> None:
    rule = KeepRule("optimal", 1.0, 1e-3)
    count = 5
    threshold = rule.optimal_thresholds[count]
    words = ListedWords([threshold - 1, threshold])
    assert draw_kept(rule, np.array([count, count]), words).tolist() == [True, False]
    last = len(rule.optimal_thresholds) - 1
    greatest = rule.optimal_thresholds[last]
    words = ListedWords([greatest - 1, greatest] * 2)
    assert draw_kept(rule, np.array([last, last, last + 9, last + 9]), words).tolist() == [True, False] * 2


def test_the_optimal_rule_for_add_remove_is_certain_at_last() -> None:
    rule = KeepRule("optimal", 1.0, 1e-3, "add-remove")
    certain = len(rule.optimal_thresholds) - 1
    worst_word = WORD_VALUES - 1
    assert draw_kept(rule, np.array([certain, certain + 9]), ListedWords([worst_word] * 2)).all()
    assert not draw_kept(rule, np.array([certain - 1]), ListedWords([worst_word])).any()


def test_no_bins_at_all_are_drawn_as_none(subtests: pytest.Subtests) -> None:
    for name in ("optimal", "laplace"):
        with subtests.test(name=name):
            assert draw_kept(KeepRule(name, 1.0, 1e-3), np.zeros(0, dtype=np.int64), SystemWords()).tolist() == []


def test_the_noise_follows_its_law_and_no_other_near_it(subtests: pytest.Subtests) -> None:
    """The share of every value, exact binomial at FAILURE over all values and epsilons; 0.7 and 1.3 R are rejected."""
    for epsilon in (0.5, 2.0, 6.0):
        with subtests.test(epsilon=epsilon):
            rule = KeepRule("laplace", epsilon, 1e-3, "replace-one")
            drawn = laplace_noise(rule.laplace_ratio, 200_000, SystemWords())

            seen = {value: int((drawn == value).sum()) for value in range(-5, 6)}

            def fits(ratio: float, seen: dict[int, int] = seen) -> bool:
                chances = {value: (1 - ratio) / (1 + ratio) * ratio ** abs(value) for value in seen}
                return all(
                    stats.binomtest(seen[value], 200_000, chance).pvalue >= FAILURE / (3 * len(chances))
                    for value, chance in chances.items()
                )

            loss = float(rule.loss_epsilon)
            assert fits(math.exp(-loss))
            assert not fits(math.exp(-0.7 * loss))
            assert not fits(math.exp(-1.3 * loss))


def test_the_noise_is_the_difference_of_two_runs_of_events() -> None:
    """Each run ends at the first word that is not below the ratio. The first runs are the positive ones."""
    ratio = 1 << 63
    below, above = ratio - 1, ratio
    words = ListedWords([below, above, below, above, above, below, above])
    # Positive runs: of the first number 2, of the second 0. Negative ones: 0, and 1.
    assert laplace_noise(ratio, 2, words).tolist() == [2, -1]


def test_the_noise_is_never_less_than_the_loss_asks(subtests: pytest.Subtests) -> None:
    for epsilon in (1e-3, 0.01, 0.5, 1.0, 20.0, 40.0):
        with subtests.test(epsilon=epsilon):
            rule = KeepRule("laplace", epsilon, 1e-3, "add-remove")
            with localcontext() as context:
                context.prec = 60
                exact = (-rule.loss_epsilon).exp() * WORD_VALUES
            assert exact <= rule.laplace_ratio < exact + 1
            assert rule.noise_scale >= float(1 / rule.loss_epsilon)
