"""A sender of a campaign whose mixes add the noise: a report counts in the window in which it is due, or not at all."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hushcount.allowance import OverCap
from hushcount.campaigns.campaign import Campaign
from hushcount.delivery import Sender
from hushcount.policy import Policy, terms_of
from hushcount.window_starts import window_of
from tests.hushcount.campaigns.vouched import KEY, public_part
from tests.hushcount.delivery import fake_collector
from tests.hushcount.delivery.fake_collector import FakeCollector
from tests.support.clocks import Hands

DAY = 86_400.0
MIDNIGHT = 20_783 * DAY
"""2026-11-26."""


def campaign() -> Campaign:
    noise = {"epsilon": 1.0, "delta": 1e-8, "seconds": 86_400}
    shuffle = {"cap": 1, "minimum_batch": 1, "delta": 1e-8}
    return fake_collector.campaign(noise=noise, mechanism=None, discovery=None, shuffle=shuffle)


def sender(collector: FakeCollector, folder: Path, hands: Hands, **options: Any) -> Sender:
    collector.epochs, collector.date = [campaign()], ""
    accepts = Policy(**dict(terms_of(campaign(), (public_part(KEY, -3650, 7300),))))
    return fake_collector.sender(collector, folder, policy=accepts, clock=hands.clock, **options)


def test_what_is_not_sent_in_its_window_is_dropped_and_counted_after_a_restart_too(
    collector: FakeCollector, tmp_path: Path
) -> None:
    hands = Hands(MIDNIGHT + DAY / 2)
    one = sender(collector, tmp_path / "own", hands)
    one.report("one")
    with pytest.raises(OverCap):
        one.report("two")
    collector.down = True
    assert one.deliver().waiting == 1
    collector.down, hands.now = False, MIDNIGHT + DAY
    again = sender(collector, tmp_path / "own", hands)
    again.report("two")
    done = again.deliver()
    assert (done.sent, done.waiting, done.dropped) == (1, 0, {"other_window": 1})
    assert [window_of(report) for report in collector.received()] == [MIDNIGHT + DAY]
    assert again.spent().epsilon == 2.0


def test_a_report_that_is_due_in_the_next_window_waits_for_it(collector: FakeCollector, tmp_path: Path) -> None:
    # Of a delay of up to a day, all but a part of 1.2e-8 ends in the next window.
    hands = Hands(MIDNIGHT - 1e-3)
    one = sender(collector, tmp_path / "own", hands, delay=timedelta(days=1))
    one.report("one")
    assert one.deliver(early=True).waiting == 1
    hands.now = MIDNIGHT + 1.0
    assert one.deliver(early=True).sent == 1
    assert [window_of(report) for report in collector.received()] == [MIDNIGHT]


def test_a_clock_that_is_behind_learns_that_the_window_is_over(collector: FakeCollector, tmp_path: Path) -> None:
    hands = Hands(MIDNIGHT - 1.0)
    one = sender(collector, tmp_path / "own", hands)
    one.report("one")
    collector.date = "Thu, 26 Nov 2026 00:00:01 GMT"
    collector.answers = [(409, "window_over", {})]
    assert one.deliver().waiting == 1
    hands.now += 3600.0
    assert one.deliver().dropped == {"other_window": 1}
    assert collector.received() == []
