"""Whatever the clocks show, a sender charges what counts, and is silent for a window at most."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from datetime import datetime
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushcount.allowance import OverCap
from hushcount.budget import Budget
from hushcount.delivery import Delivery, Sender
from shuffler.cap import over_cap
from shuffler.separate import CLAIM
from tests.hushcount.delivery import fake_collector
from tests.hushcount.delivery.fake_collector import Answer, campaign, collecting
from tests.support.clocks import Hands

TABLE = json.loads((Path(__file__).parent / "clocks.json").read_text(encoding="ascii"))
START = datetime.fromisoformat(TABLE["start"].replace("Z", "+00:00")).timestamp()
HOUR, DAY = 3_600.0, 86_400.0
ANSWERS: dict[str, Answer | None] = {"takes": None, "fails": (503, "queue_full", {}), "page": (200, "", {})}


DEVICE = Hands(math.nan)
sender = partial(fake_collector.sender, clock=DEVICE.clock)


@pytest.fixture(autouse=True)
def clock() -> Hands:
    """The device's, which a test sets."""
    DEVICE.now = START
    return DEVICE


def dated(said: float | str | None) -> str:
    return said or "" if isinstance(said, str | None) else formatdate(START + said * HOUR, usegmt=True)


def done(one: Sender, step: dict[str, Any]) -> str | int:
    """Return the outcome of a step."""
    if step["do"] == "deliver":
        return one.deliver().sent
    try:
        one.report("one")
    except OverCap:
        return "over_cap"
    return "made"


def dropped(arrived: list[tuple[float, bytes]], cap: int) -> int:
    """Return how many of the reports of one client the shuffler drops, by its own rule in each window."""
    windows = defaultdict(list)
    for at, report in arrived:
        windows[at // DAY].append((b"client", report[:16]))
    return sum(over_cap(np.array(claims, dtype=CLAIM), cap, bytes(32))[1] for claims in windows.values())


def run(home: Path, clock: Hands, case: dict[str, Any]) -> tuple[list[str | int], int, int]:
    """Return the outcome of each step, the values that were charged, and those that the shuffler drops."""
    outcomes, arrived, spent = [], [], 0
    with collecting() as collector:
        collector.epochs[:] = [campaign(shuffle={"cap": case["cap"], "minimum_batch": 10, "delta": 1e-7})]
        for step in case["steps"]:
            clock.now, known = START + step["device"] * HOUR, len(collector.received())
            true = step.get("collector", step["device"])
            collector.now = math.inf if "date" in step else START + true * HOUR
            collector.date, collector.always = dated(step.get("date", true)), ANSWERS[step.get("answer", "takes")]
            one = sender(collector, home)
            outcome = done(one, step)
            outcomes.append(outcome // 2 if isinstance(outcome, int) else outcome)
            arrived += [(START + true * HOUR, report) for report in collector.received()[known:]]
            streams = {each.stream: each.reports for each in one.spent().streams}
            spent = streams.get("reports", 0)
            assert streams.get("discovery", 0) == spent
    return outcomes, spent, dropped(arrived, case["cap"])


def test_what_is_charged_counts_whatever_the_clocks_show(
    subtests: pytest.Subtests, tmp_path: Path, clock: Hands
) -> None:
    for number, case in enumerate(TABLE["cases"]):
        with subtests.test(case["name"]):
            expected = [step.get("is", step.get("sent")) for step in case["steps"]]
            assert run(tmp_path / str(number), clock, case) == (expected, case["charged"], 0)


def test_whatever_was_kept_while_the_clock_was_40_days_ahead_is_over_when_it_is_set_back(
    subtests: pytest.Subtests, tmp_path: Path, clock: Hands
) -> None:
    """A file, a budget's day, a claim of a process that was killed, and pauses after failures, of either side."""
    with collecting() as collector:
        one = sender(collector, tmp_path, budget=Budget(per_day=5.0))
        clock.now = START + 40 * DAY
        for _ in range(2):
            one.report("one")
        assert one._queue.claim(clock.now, 1, 10**6, True, True, one._arrivals.turns()()) is not None
        collector.always = (503, "queue_full", {"Retry-After": "86400"})
        held = one.deliver().held_until
        assert held is not None
        assert held.timestamp() > clock.now
        collector.always = None
        collector.epochs.append(campaign(collector.campaign))
        collector.accepted = {each.fingerprint.hex() for each in collector.epochs}
        clock.now = START
        with subtests.test("what waited is sent at once, also what was claimed, and the file of that time is too old"):
            asked = len(collector.gets)
            assert one.deliver() == Delivery(sent=4)
            assert len(collector.gets) > asked
        with subtests.test("this day has its own limit"):
            one.report("one")
            assert one.spent().today == 2.5
            assert one.deliver() == Delivery(sent=2)
