"""What a number of reports can show, before they are collected: held against simulated collections."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from hushcount.oracles.catalogue import build
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.power import detection_power
from hushcount.oracles.sight import FALSE_DETECTIONS, POWER, percent, sight_of
from hushcount.oracles.tally import Tally
from tests.support.statistics import deviations
from tests.support.words import SeededWords

ITEMS, REPORTS, RUNS = 1001, 1500, 600
LOOKS = ITEMS - 1


def plain(_: int) -> Mechanism:
    """Return a mechanism whose reports support items independently."""
    return build("ais", 2.0, ITEMS, {"s": 120})


def pool(run: int) -> Mechanism:
    """Return a sketch with a pool of its own."""
    return build("gcms", 2.0, None, {"k": 32, "m": 256, "s": 32, "seed": f"{run:064x}"})


def blocks(_: int) -> Mechanism:
    """Return a mechanism that puts items in blocks."""
    return build("rhr", 2.0, ITEMS, {"b": 2})


def detected(mechanism_of: Callable[[int], Mechanism], held: int) -> float:
    """Return how often the analyzer's rule detects the first item, which `held` clients hold; others by Zipf's law."""
    items, random = np.arange(ITEMS, dtype=np.uint64), np.random.default_rng(held)
    others = 1.0 / np.arange(1, ITEMS)
    found = 0
    for run in range(RUNS):
        mechanism, rest = mechanism_of(run), random.choice(items[1:], REPORTS - held, p=others / others.sum())
        holds = np.concatenate([np.zeros(held, dtype=np.uint64), rest])
        tally = mechanism.new_tally(items)
        mechanism.accumulate(tally, mechanism.encode(holds, SeededWords(run)), items)
        estimate = mechanism.estimate(Tally(tally, REPORTS, items), items[:1])
        found += bool(estimate.detected(FALSE_DETECTIONS, LOOKS)[0])
    return found / RUNS


@pytest.mark.parametrize("mechanism_of", [plain, pool, blocks])
@pytest.mark.long(but=("plain",))
def test_an_item_of_the_least_share_is_detected_and_one_of_half_of_it_seldom(
    mechanism_of: Callable[[int], Mechanism],
) -> None:
    """Fails with probability below 1e-6; a power of 0.86 is rejected, and of independent reports 0.99 too."""
    sight, reports = sight_of(mechanism_of(0), REPORTS, LOOKS), np.array([float(REPORTS)])
    assert sight.least_share is not None
    held = math.ceil(sight.least_share * REPORTS)
    for number in (held, held // 2):
        rate = FALSE_DETECTIONS / LOOKS
        power = float(detection_power(mechanism_of(0), reports, number / REPORTS, rate)[0])
        assert (power >= POWER) == (number == held)
        error, found = deviations(2) * math.sqrt(power * (1.0 - power) / RUNS), detected(mechanism_of, number)
        assert found >= power - error if number == held else found < 0.5
        # In a pool and in blocks the power is an approximation, and in blocks that of the worst case.
        assert mechanism_of is not plain or abs(found - power) <= error


def test_the_sight_is_what_the_planner_plans_and_the_rule_of_the_analyzer() -> None:
    sight = sight_of(plain(0), 10_000, LOOKS, 0.01)
    assert sight.needed is not None
    assert sight.least_share is not None
    assert not sight.shows
    there = sight_of(plain(0), sight.needed, LOOKS, 0.01)
    assert there.shows
    assert there.needed == sight.needed
    assert not sight_of(plain(0), int(0.98 * sight.needed), LOOKS, 0.01).shows
    assert sight_of(plain(0), 10_000, LOOKS, 1.0001 * sight.least_share).shows
    assert not sight_of(plain(0), 10_000, LOOKS, 0.9999 * sight.least_share).shows
    assert sight.standard_error == math.sqrt(float(plain(0).variance(10_000, 0.01)))
    # More items to look at hide more; answers that clients repeat count as fewer.
    assert (sight_of(plain(0), 10_000, 10 * LOOKS).least_share or 1.0) > sight.least_share
    twice = sight_of(plain(0), 20_000, LOOKS, 0.01, repeats=2)
    assert (twice.least_share, twice.needed) == (sight.least_share, 2 * sight.needed)
    assert twice.standard_error == pytest.approx(2.0 * sight.standard_error)


def test_it_is_said_what_shows_what_is_needed_and_what_is_hopeless() -> None:
    many, some, few = (sight_of(plain(0), reports, LOOKS, 0.1) for reports in (10_000, 2_000, 10))
    assert (many.shows, many.is_hopeless) == (True, False)
    assert (some.shows, some.is_hopeless) == (False, False)
    assert (few.shows, few.is_hopeless, few.least_share) == (False, True, None)
    assert some.needed is not None
    assert f" {some.needed:,} reports " in some.words("reports")
    assert "2,000 people" in some.words()
    held = math.ceil((some.least_share or 0.0) * 2_000)
    assert f"({held:,})" in some.words()
    assert "hopeless" in few.words()
    assert "hopeless" not in some.words()
    assert [percent(share) for share in (0.049, 0.223, 0.00012, 1.0)] == ["4.9 %", "22 %", "0.012 %", "100 %"]
    for reports, share in ((0, 0.1), (10, 0.0), (10, 1.1), (10, math.nan)):
        with pytest.raises(ValueError, match=r"must be in \(0, 1\]"):
            sight_of(plain(0), reports, LOOKS, share)
