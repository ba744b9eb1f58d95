"""What was sent is counted where it arrives, in the change that removes it, and nothing is made that cannot count."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.allowance import OverCap
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.clock import Clock
from hushcount.delivery.arrivals import Arrivals
from hushcount.delivery.exchange import Reply
from hushcount.delivery.posting import COLLECTOR, held_until
from hushcount.delivery.queue import Queue, database
from hushcount.delivery.waiting import Claimed, Waiting
from hushcount.delivery.waits import LONGEST_WAIT
from hushcount.report_making import Measurement
from hushcount.window_starts import Starts
from tests.hushcount.delivery.fake_collector import campaign

NOON = 1_795_435_200.0
HOUR = 3_600
ONE = "1" * 64


def capped(cap: int) -> Campaign:
    return campaign(shuffle={"cap": cap, "minimum_batch": 10, "delta": 1e-7})


def arrivals() -> Arrivals:
    return Arrivals(Queue(database(None), "words"), lambda: Starts(86_400))


def room(one: Arrivals, cap: int, stream: Stream = "reports", anew: bool = False) -> bool:
    try:
        one.require_room(capped(cap), [stream], anew)
    except OverCap:
        return False
    return True


def claimed(one: Arrivals) -> Claimed:
    found = one.queue.claim(one.clock.seconds(), 1000, 10**6, plain=False, early=True, turn=one.turns()())
    assert found is not None
    return found


def test_a_waiting_value_takes_the_place_of_a_report_of_each_stream_or_of_its_own() -> None:
    one = arrivals()
    one.queue.put(
        [
            Waiting("", None, b"", Measurement("x")),
            Waiting("", "reports", b"", Measurement("y")),
            Waiting(ONE, "discovery", b"d", cap=3),
        ]
    )
    assert [room(one, cap) for cap in (2, 3)] == [False, True]
    assert [room(one, cap, "discovery") for cap in (2, 3)] == [False, True]
    # A report that is made of one of them takes no further place.
    assert room(one, 1, anew=True)
    assert [room(one, cap, "discovery", anew=True) for cap in (1, 2)] == [False, True]


def test_the_sentence_says_what_waits() -> None:
    one = arrivals()
    one.queue.put([Waiting(ONE, "reports", b"r", cap=3), Waiting(ONE, "reports", b"r", cap=3)])
    with pytest.raises(OverCap, match=r"^1 .*reports .*\bwords .*\b2 wait .*\b0 arrived .*\b2 "):
        one.require_room(capped(2), ["reports"])


def test_what_is_removed_is_counted_in_the_same_change_or_neither_is_done() -> None:
    one = arrivals()
    one.queue.put([Waiting(ONE, "reports", b"r", cap=3), Waiting(ONE, "reports", b"r", cap=3)])
    batch = claimed(one)

    def fails(_fact: str | None, _number: int) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        one.queue.remove(batch, "arrivals", fails)
    assert one.queue.waiting() == 2
    assert one.settled(batch, None, took=True) == 2
    assert one.settled(batch, None, took=True) == 0, "nothing counts twice"
    assert [room(one, cap) for cap in (2, 3)] == [False, True]


def test_opting_out_forgets_it_with_the_token() -> None:
    one = arrivals()
    one.queue.put([Waiting(ONE, "reports", b"r", cap=3)])
    one.settled(claimed(one), None, took=True)
    assert not room(one, 1)
    one.queue.clear()
    assert room(one, 1)


actions = st.lists(st.tuples(st.sampled_from(["report", "deliver"]), st.integers(0, 30)), max_size=30)


@settings(deadline=None)
@given(st.integers(1, 3), st.integers(-1000, 1000), st.integers(1, 30), actions)
def test_with_a_clock_that_is_wrong_by_one_amount_nothing_arrives_over_the_cap(
    cap: int, wrong: int, length: int, taken: list[tuple[str, int]]
) -> None:
    """Until the first answer the window is the device's, and there is nothing to count in it."""
    true, arrived = NOON, Counter[int]()
    clock = Clock(lambda: true + wrong * HOUR)
    one = Arrivals(Queue(database(None), "words"), lambda: Starts(3600 * length), clock)
    for action, step in taken:
        true += step * HOUR
        if action == "report" and room(one, cap):
            one.queue.put([Waiting(ONE, "reports", b"r", cap=3)])
        elif action == "deliver" and one.queue.waiting():
            arrived[int(true) // HOUR // length] += one.settled(claimed(one), true, took=True)
            assert max(arrived.values()) <= cap
    assert one.queue.waiting() <= cap


def dated(text: str) -> float | None:
    return Reply(202, {"date": text}, b"").date


@settings(deadline=None)
@given(st.datetimes(datetime(1970, 1, 1), datetime(8999, 12, 31)))
def test_every_date_of_the_form_that_senders_write_is_read(moment: datetime) -> None:
    moment = moment.replace(microsecond=0, tzinfo=timezone.utc)
    assert dated(format_datetime(moment, usegmt=True)) == moment.timestamp()


@settings(deadline=None)
@given(st.one_of(st.text(max_size=40), st.from_regex(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")))
def test_whatever_stands_there_a_date_is_read_as_it_is_or_not_at_all(text: str) -> None:
    said = dated(text)
    assert said is None or format_datetime(datetime.fromtimestamp(said, timezone.utc), usegmt=True) == text


def test_an_answer_that_a_cache_kept_tells_no_time() -> None:
    said = {"date": "Mon, 23 Nov 2026 12:00:00 GMT"}
    assert [Reply(200, {**said, **kept}, b"").date for kept in ({}, {"age": "0"})] == [NOON, None]


def test_what_is_no_such_date_says_nothing(subtests: pytest.Subtests) -> None:
    for text in [
        "", "Mon, 23 Nov 2026 12:00:00 UTC", "Mon, 23 Nov 2026 12:00:00 +00", "Mon, 23 Nov 1026 12:00:00 GMT",
        "Tue, 23 Nov 2026 12:00:00 GMT", "Mon, 23 Nov 2026 12:00:60 GMT", "Mon, 23 Nov 2026 24:00:00 GMT",
        "Wed, 01 Jan 9000 00:00:00 GMT", "mon, 23 Nov 2026 12:00:00 GMT", "Mon Nov 23 12:00:00 2026",
        "Mon, 23 Nov 2026 12:00:00 GMT ", "Mon, ٢٣ Nov 2026 12:00:00 GMT", "Wed, 31 Dec 1969 23:59:59 GMT",
    ]:  # fmt: skip
        with subtests.test(text=text):
            assert dated(text) is None
    assert dated("Mon, 23 Nov 2026 12:00:00 GMT") == NOON


def test_a_pause_is_at_most_a_day_ahead_of_any_clock() -> None:
    queue = arrivals().queue
    queue.note(COLLECTOR, f"1 {NOON + LONGEST_WAIT}")
    assert held_until(queue, NOON) == NOON + LONGEST_WAIT
    assert held_until(queue, NOON - 1.0) is None
