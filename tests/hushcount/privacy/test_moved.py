"""Noise of the mixes by enumeration of its integers: all moves of a client, the curve that bounds them, the odds."""

from __future__ import annotations

import math
from functools import cache
from itertools import product

import numpy as np
import pytest

from hushcount.discovery.keep_rules import KeepRule
from hushcount.maths.count_laws import CountLaw
from hushcount.privacy.joint import joint_epsilon
from hushcount.privacy.moved import Moved
from tests.support.divergence import moves
from tests.support.shown_counts import LEAST, noise_law

ROUNDING = 1e-14
_DIGITS = 12
Losses = dict[float, float]
"""The probability of each loss, before the change; losses are rounded."""


def law_of(epsilon: float, delta: float, cap: int) -> CountLaw:
    return KeepRule("optimal", epsilon, delta, "replace-one", cap, counts=True).count_law


@cache
def of_item(law: CountLaw, step: int) -> Losses:
    """Return the losses of one item that gains `step` reports, or loses them: from all numbers of its dummies."""
    # B - X dummies, for X from B down to LEAST.
    dummies = noise_law(law)[::-1]
    found: Losses = {}
    for number, chance in enumerate(dummies):
        other = number - step
        if chance < 1e-300 or other >= len(dummies):
            continue
        loss = math.inf if other < 0 else round(math.log(chance / dummies[other]), _DIGITS)
        found[loss] = found.get(loss, 0.0) + float(chance)
    return found


@cache
def of_move(law: CountLaw, steps: tuple[int, ...]) -> Losses:
    """Return the losses of items that change by these steps, independently."""
    found: Losses = {0.0: 1.0}
    for step in steps:
        grown: Losses = {}
        for (one, first), (other, second) in product(found.items(), of_item(law, step).items()):
            loss = round(one + other, _DIGITS)
            grown[loss] = grown.get(loss, 0.0) + first * second
        found = grown
    return found


def divergence(losses: Losses, epsilon: float) -> float:
    return math.fsum(chance * -math.expm1(epsilon - loss) for loss, chance in losses.items() if loss > epsilon)


SETTINGS = [(epsilon, delta, cap) for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0) for delta in (1e-8, 1e-2) for cap in (1, 2)]
SETTINGS += [(1.0, 1e-8, 3), (4.0, 1e-2, 3), (0.5, 0.3, 3), (8.0, 0.3, 3), (2.0, 0.1, 4)]


@pytest.mark.parametrize(("epsilon", "delta", "cap"), SETTINGS)
def test_all_reports_to_one_other_item_bound_every_move(epsilon: float, delta: float, cap: int) -> None:
    law = law_of(epsilon, delta, cap)
    curve, all_moved = Moved(law, cap).curve(), of_move(law, (cap, -cap))
    for steps in moves(cap, replace=True):
        losses = of_move(law, steps)
        # Both are straight lines in exp(epsilon) between the losses, so these places are all.
        for place in {0.0, *(loss for loss in (*losses, *all_moved) if 0.0 <= loss < math.inf)}:
            assert divergence(losses, place) <= curve(place) * (1.0 + 1e-10) + ROUNDING, (steps, place)
    for place in np.linspace(0.0, 1.1 * epsilon, 23):
        assert divergence(all_moved, place) == pytest.approx(curve(place), rel=1e-7, abs=ROUNDING)


@pytest.mark.parametrize(("epsilon", "delta", "cap"), SETTINGS)
def test_odds_change_by_more_than_epsilon_with_probability_delta_at_most(
    epsilon: float, delta: float, cap: int
) -> None:
    law = law_of(epsilon, delta, cap)
    for steps in moves(cap, replace=True):
        beyond = math.fsum(chance for loss, chance in of_move(law, steps).items() if abs(loss) > epsilon + 1e-6)
        assert beyond <= delta + ROUNDING, steps
    spent = math.fsum(law.chance(law.most - less) for less in range(cap))
    assert of_move(law, (cap, -cap))[math.inf] == pytest.approx(spent, rel=1e-9) == Moved(law, cap).lost


def test_a_law_for_fewer_reports_is_rejected(subtests: pytest.Subtests) -> None:
    law = law_of(1.0, 1e-6, 1)
    for wrong, cap in ((CountLaw(law.right, law.left, law.most - 2), 1), (law, 2)):
        with subtests.test(cap=cap):
            assert of_move(wrong, (cap, -cap))[math.inf] > 2e-6
            assert Moved(wrong, cap).curve()(1.0) > 2e-6


def test_one_mix_at_1_and_1e_8_has_four_losses() -> None:
    law = law_of(1.0, 1e-8, 1)
    losses = of_move(law, (1, -1))
    assert sorted(losses) == pytest.approx([-1.0, 0.0, 1.0, math.inf])
    assert losses[math.inf] == pytest.approx(6.53e-9, rel=1e-3)


def test_more_reports_than_the_cap_cost_what_enumeration_says() -> None:
    """A dishonest mix that saved one client's reports of several windows would learn this."""
    law = law_of(1.0, 1e-8, 1)
    for reports, lost in ((7, 5.22e-7), (14, 3.53e-5), (30, 0.5215)):
        moved = Moved(law, reports)
        assert moved.lost == pytest.approx(lost, rel=1e-3)
        assert of_move(law, (reports, -reports))[math.inf] == pytest.approx(moved.lost, rel=1e-9)
        assert moved.most == pytest.approx(reports)
    assert Moved(law, 30).hides
    assert not Moved(law, 31).hides


def composed(losses: Losses, windows: int, step: float) -> Losses:
    """Return the losses of several windows; all finite ones are multiples of a step."""
    found: Losses = {0.0: 1.0}
    for _ in range(windows):
        grown: Losses = {}
        for (one, first), (other, second) in product(found.items(), losses.items()):
            loss = math.inf if math.inf in (one, other) else round((one + other) / step) * step
            grown[loss] = grown.get(loss, 0.0) + first * second
        found = grown
    return found


def test_thirty_windows_cost_22_9_jointly(subtests: pytest.Subtests) -> None:
    delta = 1e-6
    for cap, wanted in ((1, 22.856), (2, 21.493)):
        with subtests.test(cap=cap):
            moved = Moved(law_of(1.0, 1e-8, cap), cap)
            together = composed(of_move(moved.law, (cap, -cap)), 30, 1.0 / cap)
            stated = joint_epsilon([moved] * 30, delta)
            assert stated == pytest.approx(wanted, abs=1e-3)
            # Never below the truth, and above it by the grid alone.
            assert divergence(together, stated) <= delta <= divergence(together, 0.999 * stated)


def test_the_noise_that_is_tested_is_cut_where_nothing_is_missing() -> None:
    for epsilon, delta, cap in SETTINGS:
        assert law_of(epsilon, delta, cap).at_most(LEAST) < 1e-16
