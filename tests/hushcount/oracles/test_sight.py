"""What a number of reports can show, before they are collected: held against simulated collections."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from hushcount.oracles.catalogue import build
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.power import detection_power
from hushcount.oracles.sight import FALSE_DETECTIONS, sight_of
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
    """Fails with probability below 1e-6; a power of 0.88, or for independent reports of 0.99, is rejected."""
    sight, reports = sight_of(mechanism_of(0), REPORTS, LOOKS), np.array([float(REPORTS)])
    assert sight.least_share is not None
    held = math.ceil(sight.least_share * REPORTS)
    for number in (held, held // 2):
        power = float(detection_power(mechanism_of(0), reports, number / REPORTS, FALSE_DETECTIONS / LOOKS)[0])
        error = deviations(2) * math.sqrt(power * (1.0 - power) / RUNS)
        found = detected(mechanism_of, number)
        print(number, power, error, found)
