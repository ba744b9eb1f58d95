"""Joint composition against exact enumeration: never below the truth, and a window fewer would be caught."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.maths.odds import Curve
from hushcount.privacy.amplification import shuffled_epsilon
from hushcount.privacy.blanket import BlanketLaw, general_law
from hushcount.privacy.composition import Loss
from hushcount.privacy.joint import Part, Window, joint_epsilon
from hushcount.privacy.loss_sums import Total, dominating_pair

Law = dict[tuple[int, ...], Fraction]


def grr_law(items: int) -> BlanketLaw:
    """Every report has probability 1 / (e + d - 1) times e for the own item."""
    return BlanketLaw(math.log(3.0), 1.0 / items, 0.0)


@cache
def counts(held: tuple[int, ...], items: int) -> Law:
    """Return the exact law of the counts of randomised response at e = 3, each client holding one of the items."""
    total = Fraction(3 + items - 1)
    law: Law = {(0,) * items: Fraction(1)}
    for own in held:
        grown: Law = {}
        for seen, chance in law.items():
            for said in range(items):
                place = (*seen[:said], seen[said] + 1, *seen[said + 1 :])
                grown[place] = grown.get(place, Fraction(0)) + chance * (3 if said == own else 1) / total
        law = grown
    return law


def divergence(first: Law, second: Law, factor: Fraction) -> Fraction:
    return sum((max(Fraction(0), first[seen] - factor * second[seen]) for seen in first), Fraction(0))


def of_windows(laws: list[Law]) -> Law:
    """Return the law of independent windows."""
    return {
        sum(seen, ()): math.prod((law[one] for law, one in zip(laws, seen, strict=True)), start=Fraction(1))
        for seen in product(*laws)
    }


def others(reports: int, items: int) -> list[tuple[int, ...]]:
    return list(combinations_with_replacement(range(items), reports - 1))


def test_windows_together_are_as_private_as_stated_whatever_the_others_hold(subtests: pytest.Subtests) -> None:
    for items, reports, windows in ((2, 3, 4), (2, 8, 3), (3, 3, 3), (4, 4, 1), (2, 1, 6)):
        for delta in (0.2, 1e-2, 1e-4):
            with subtests.test(items=items, reports=reports, delta=delta):
                epsilon = joint_epsilon([Window(grr_law(items), reports)] * windows, delta)
                factor = Fraction(math.exp(epsilon)) if math.isfinite(epsilon) else Fraction(10) ** 9
                for held in others(reports, items):
                    mine, other = (of_windows([counts((own, *held), items)] * windows) for own in (0, 1))
                    assert divergence(mine, other, factor) <= Fraction(delta)
                    assert divergence(other, mine, factor) <= Fraction(delta)


def test_a_window_fewer_or_a_report_more_would_be_caught() -> None:
    """One report of a window is not mixed at all: then the bound is met, by binary randomised response."""
    windows, delta = 6, 1e-2
    law = of_windows([counts((0,), 2)] * windows), of_windows([counts((1,), 2)] * windows)
    stated = joint_epsilon([Window(grr_law(2), 1)] * windows, delta)
    for wrong in (
        joint_epsilon([Window(grr_law(2), 1)] * (windows - 1), delta),
        joint_epsilon([Window(grr_law(2), 2)] * windows, delta),
        stated * 0.98,
    ):
        assert divergence(*law, Fraction(math.exp(wrong))) > Fraction(delta)


def test_it_holds_if_each_window_is_chosen_by_whoever_saw_the_earlier_ones() -> None:
    """The others' items, and which two the client may hold, follow from the first result in the worst way."""
    items, reports, delta = 3, 3, 5e-3
    epsilon = joint_epsilon([Window(grr_law(items), reports)] * 2, delta)
    factor = Fraction(math.exp(epsilon))
    choices = [
        (counts((mine, *held), items), counts((other, *held), items))
        for held in others(reports, items)
        for mine, other in ((0, 1), (1, 0), (0, 2))
    ]
    worst = Fraction(0)
    for first, second in choices:
        total = Fraction(0)
        for seen, chance in first.items():
            ratio = factor * second[seen] / chance
            total += chance * max(divergence(one, two, ratio) for one, two in choices)
        worst = max(worst, total)
    assert Fraction(delta) / 50 < worst <= Fraction(delta)


def curve_of(items: int, reports: int) -> Curve:
    """Return the true curve, the largest over what the others hold, in floats."""

    def curve(epsilon: float) -> float:
        factor = Fraction(math.exp(epsilon))
        return max(
            float(divergence(counts((mine, *held), items), counts((other, *held), items), factor))
            for held in others(reports, items)
            for mine, other in ((0, 1), (1, 0))
        )

    return curve


def test_the_pair_dominates_the_curve_everywhere_and_touches_it_on_the_grid(subtests: pytest.Subtests) -> None:
    for steps in (1, 2.7, 10, 64):
        with subtests.test(steps=steps):
            curve, most = curve_of(2, 4), math.log(3.0)
            pair = dominating_pair(curve, most, most / steps)
            assert 1.0 <= pair.masses.sum() + pair.lost <= 1.0 + 1e-11
            for epsilon in np.linspace(0.0, 1.2 * most, 40):
                above = curve(float(epsilon))
                assert pair.delta(float(epsilon)) >= above * (1 - 1e-13)
                # The other order, below 0: 1 - a + a delta(1/a).
                below = -math.expm1(-epsilon) + math.exp(-epsilon) * above
                assert pair.delta(-float(epsilon)) >= below * (1 - 1e-13)
            for place in range(pair.reach + 1):
                assert pair.delta(place * pair.step) == pytest.approx(curve(place * pair.step), rel=1e-9, abs=1e-15)


def test_the_transform_is_never_below_a_plain_convolution_in_fractions(subtests: pytest.Subtests) -> None:
    for delta in (1e-3, 1e-9, 1e-20):
        with subtests.test(delta=delta):
            law = general_law(1.0)
            curve = Window(law, 500).curve(1e-25)
            pairs = {
                dominating_pair(curve, 1.0, 1.0 / 8): 3,
                dominating_pair(Window(law, 90).curve(1e-25), 1.0, 1.0 / 8): 2,
            }
            total = Total.of(pairs, sum(pair.lost * times for pair, times in pairs.items()), delta)
            exact = [Fraction(1)]
            for pair, times in pairs.items():
                for _ in range(times):
                    exact = convolved(exact, [Fraction(mass) for mass in pair.masses])
            middle = len(exact) // 2
            for place in (0, 1, 5, 13, 24, 31):
                factors = [Fraction(-math.expm1((place - other) / 8)) for other in range(place + 1, middle + 1)]
                truth = sum(
                    (mass * factor for mass, factor in zip(exact[middle + place + 1 :], factors, strict=True)),
                    Fraction(0),
                )
                stated = total.delta(place / 8) - total.lost
                assert stated >= float(truth) * (1 - 1e-12)
                # Near the delta that it is made for it is close as well.
                if 0.01 * delta < truth < 100 * delta:
                    assert stated <= float(truth) * (1 + 1e-6)


def convolved(one: list[Fraction], other: list[Fraction]) -> list[Fraction]:
    result = [Fraction(0)] * (len(one) + len(other) - 1)
    for place, mass in enumerate(one):
        for more, chance in enumerate(other):
            result[place + more] += mass * chance
    return result


def test_thirty_windows_cost_a_sixth_of_their_sum() -> None:
    law, reports, delta = general_law(1.0), 100_000, 1e-8
    one = shuffled_epsilon(law, reports, delta)
    assert 30 * one == pytest.approx(0.506, abs=1e-3)
    assert joint_epsilon([Window(law, reports)] * 30, 30 * delta) == pytest.approx(0.08427, abs=1e-4)
    # One window alone is what it was, by 0.2 %.
    alone = joint_epsilon([Window(law, reports)], delta)
    assert one * (1 - 1e-6) <= alone <= one * 1.002


parts = st.one_of(
    st.builds(Loss, st.floats(0.001, 1.0), st.sampled_from([0.0, 1e-9, 1e-7])),
    st.builds(
        Window, st.sampled_from([general_law(1.0), grr_law(20), general_law(8.0)]),
        st.sampled_from([50, 2_000, 10**6]), st.integers(1, 3),
    ),
)  # fmt: skip


@pytest.mark.long
@settings(max_examples=6, deadline=None)
@given(st.lists(parts, min_size=1, max_size=6), parts, st.sampled_from([1e-5, 1e-10]))
def test_more_releases_cost_no_less_in_any_order_and_never_more_than_local_sums(
    listed: list[Part], more: Part, delta: float
) -> None:
    found = joint_epsilon(listed, delta)
    assert found == joint_epsilon(listed[::-1], delta)
    # Another release changes the grid, by 1 % of the epsilon at most.
    assert joint_epsilon([*listed, more], delta) >= found * 0.99
    most = sum(part.epsilon if isinstance(part, Loss) else part.most for part in listed)
    if math.isfinite(found):
        assert found <= most * 1.01 + 0.01


def test_what_is_out_of_range() -> None:
    for delta in (0.0, 1e-31, 1.0, math.nan):
        with pytest.raises(ValueError, match=rf"delta is {delta},"):
            joint_epsilon([], delta)
    with pytest.raises(ValueError, match="releases are 100001"):
        joint_epsilon([Loss(0.1, 0.0)] * 100_001, 1e-6)
    assert joint_epsilon([], 1e-6) == 0.0
    assert joint_epsilon([Loss(0.0, 1e-6)] * 3, 2e-6) == math.inf
    assert joint_epsilon([Loss(0.0, 1e-6)] * 3, 4e-6) == 0.0
    assert joint_epsilon([Loss(0.1, 1e-6)] * 3, 2e-6) == math.inf


@pytest.mark.parametrize("epsilon", [5e-324, 1e-310, 1e-300, 1e-15])
def test_the_least_losses_add_up_without_a_warning(epsilon: float) -> None:
    """A ledger asks for any part of what remains."""
    for many in (1, 30):
        # So small a loss is within delta.
        assert joint_epsilon([Loss(epsilon, 1e-9)] * many, 1e-6) <= 1e-12
