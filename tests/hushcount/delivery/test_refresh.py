"""A report causes no request: when the campaign file is fetched again does not tell when a value was used."""

from __future__ import annotations

import math
import random
import time
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from hushcount.errors import NotYet
from hushcount.newest import Untrusted
from tests.hushcount.campaigns.vouched import STRANGER, public_part, signed
from tests.hushcount.delivery import fake_collector
from tests.hushcount.delivery.fake_collector import FakeCollector, campaign, collecting, policy, wait_for
from tests.support.clocks import Hands

VALUE = "one"
DELAY = 600.0
USES = 20


HANDS = Hands(math.nan)
sender = partial(fake_collector.sender, delay=timedelta(seconds=DELAY), clock=HANDS.clock)


@pytest.fixture(autouse=True)
def clock() -> Hands:
    HANDS.now = time.time()
    return HANDS


def requests(collector: FakeCollector) -> int:
    return len(collector.gets) + len(collector.posts) + len(collector.asked)


def gaps() -> list[float]:
    """Return the seconds between uses, 5 to 55 minutes."""
    drawn = random.Random(33)
    return [drawn.uniform(300.0, 3300.0) for _ in range(USES)]


def test_no_use_causes_a_request_while_rounds_go_on(subtests: pytest.Subtests, clock: Hands) -> None:
    for max_age in (0, 600):
        with subtests.test(max_age=max_age), collecting(max_age=max_age) as collector:
            one = sender(collector)
            one.deliver()
            first, caused = len(collector.gets), 0
            for gap in gaps():
                # What a thread does meanwhile, which wakes at least once a minute.
                for _ in range(4):
                    clock.now += gap / 4
                    one.deliver()
                before = requests(collector)
                one.report(VALUE)
                # A report may wake the thread.
                one.deliver()
                caused += requests(collector) - before
            assert caused == 0
            # In ten hours; each waits from one to one and a half, the next round and the delay.
            assert 4 <= len(collector.gets) - first <= 10


def test_no_use_causes_a_request_in_processes_without_a_thread(
    subtests: pytest.Subtests, clock: Hands, tmp_path: Path
) -> None:
    for max_age in (0, 600):
        home = tmp_path / str(max_age)
        with subtests.test(max_age=max_age), collecting(max_age=max_age) as collector:
            one = sender(collector, home)
            one.deliver()
            before = requests(collector)
            for place, gap in enumerate(gaps()):
                clock.now += gap
                # Every other use is of a new process.
                one = one if place % 2 else sender(collector, home)
                one.report(VALUE)
            assert requests(collector) == before


def test_an_overdue_file_waits_a_random_time_from_the_start_of_a_process(clock: Hands, tmp_path: Path) -> None:
    with collecting() as collector:
        sender(collector, tmp_path).deliver()
        clock.now += 3 * 86_400.0
        before, waits = requests(collector), []
        for _ in range(24):
            one = sender(collector, tmp_path)
            one.deliver()
            waits.append(one._present.next_due() - clock.now)
        assert requests(collector) == before
        # 24 uniform draws fall into one half with probability 1.2e-7.
        assert 0.0 < min(waits) < DELAY / 2 < max(waits) <= DELAY
        assert one._deliverer.seconds_to_wait(clock.now) == waits[-1]
        clock.now += waits[-1]
        one.deliver()
        assert requests(collector) == before + 1
        # The next process knows of it.
        other = sender(collector, tmp_path)
        clock.now += 3_599.0
        other.deliver()
        clock.now += DELAY
        other.deliver()
        assert requests(collector) == before + 1


def test_a_process_that_slept_past_its_random_time_does_not_ask_as_it_wakes(clock: Hands, tmp_path: Path) -> None:
    with collecting() as collector:
        one = sender(collector, tmp_path)
        one.deliver()
        before = requests(collector)
        for later in (3 * 86_400.0, 3 * 3_600.0):
            clock.now += later
            one.deliver()
            assert requests(collector) == before
        clock.now = one._present.next_due()
        one.deliver()
        assert requests(collector) == before + 1


def test_a_process_that_lives_too_short_asks_where_it_sends(clock: Hands, tmp_path: Path) -> None:
    with collecting() as collector:
        one = sender(collector, tmp_path)
        one.report(VALUE)
        asked = len(collector.gets)
        clock.now += 86_400.0
        assert sender(collector, tmp_path).deliver().sent == 2
        assert len(collector.gets) == asked + 1
        # Once is enough.
        one = sender(collector, tmp_path)
        one.report(VALUE)
        clock.now += DELAY
        assert sender(collector, tmp_path).deliver().sent == 2
        assert len(collector.gets) == asked + 1


def test_a_clock_that_is_set_back_stops_no_refresh(clock: Hands) -> None:
    with collecting() as collector:
        one = sender(collector)
        clock.now += 40 * 86_400.0
        one.deliver()
        asked = len(collector.gets)
        clock.now -= 40 * 86_400.0
        for _ in range(11):
            one.deliver()
            clock.now += DELAY / 10
        assert len(collector.gets) == asked + 1


def test_a_kept_file_that_cannot_be_used_is_said_and_fetched_anew_by_a_round(tmp_path: Path) -> None:
    with collecting() as collector:
        sender(collector, tmp_path).deliver()
        before = requests(collector)
        collector.signature = signed(campaign(), STRANGER)
        one = sender(collector, tmp_path, policy=policy(operator_keys=(public_part(STRANGER),)))
        for _ in range(2):
            with pytest.raises(Untrusted):
                one.report(VALUE)
        assert requests(collector) == before
        one.deliver()
        one.report(VALUE)


def test_the_first_file_comes_when_the_thread_starts() -> None:
    with collecting() as collector, sender(collector) as one:
        wait_for(lambda: one._present.client() is not None)
        before = requests(collector)
        one.report(VALUE)
        assert requests(collector) == before
    with collecting(down=True) as collector, sender(collector) as one:
        wait_for(lambda: bool(one.log))
        for _ in range(3):
            with pytest.raises(NotYet):
                one.report(VALUE)
        one._present._due = 0.0
        with pytest.raises(NotYet):
            one.report(VALUE)
        assert len(collector.gets) == 1, "the thread asks again, and no report does"
