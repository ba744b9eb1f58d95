"""The table of cases of the one rule for windows."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from hushcount.collection.windows import Window, window_at
from pipelines.log.closing import Listed, Rule, Segment, next_closing

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
START = datetime(2026, 11, 21, tzinfo=timezone.utc)
FILE = (1, "a" * 16)
RULE = Rule(HOUR, 90 * MINUTE, 10 * MINUTE, frozenset({"c"}), {FILE: {"reports": 50}})


def hour(number: int) -> Window:
    return window_at(START + number * HOUR, HOUR)


def segment(name: str, window: Window, records: int = 60) -> Segment:
    return Segment(name, FILE, window, "reports", records, 100, "0" * 64, "client-token")


def listed(window: Window, *segments: Segment, after: timedelta = MINUTE, collector: str = "c") -> Listed:
    return Listed(f"{window.name}/{collector}", window, collector, window.end + after, segments)


def test_a_window_closes_when_all_collectors_reported() -> None:
    one = segment("a", hour(0))
    closing = next_closing(None, (), [listed(hour(0), one)], RULE, hour(0).end + MINUTE)
    assert closing is not None
    assert (closing.window, closing.batches, closing.dropped) == (hour(0), {FILE: {"reports": (one,)}}, {})


def test_a_window_that_has_not_ended_blocks_no_other() -> None:
    # A collector that was not restarted closes windows of a day.
    day = Window(START, START + 24 * HOUR)
    closing = next_closing(None, (), [listed(day), listed(hour(0), segment("a", hour(0)))], RULE, hour(0).end + MINUTE)
    assert closing is not None and closing.window == hour(0)


@pytest.mark.parametrize(("after", "reason"), [(89, None), (90, None), (91, "after the grace")])
def test_grace_counts_in_time(after: int, reason: str | None) -> None:
    late = segment("late", hour(0))
    there = [listed(hour(0), late, after=after * MINUTE, collector="d"), listed(hour(2))]
    closing = next_closing(hour(1).end, (), there, RULE, hour(2).end + MINUTE)
    assert closing is not None and closing.window == hour(2)
    assert closing.batches == ({} if reason else {FILE: {"reports": (late,)}})
    assert [reason in said for said in closing.dropped.values()] == ([True] if reason else [])


def test_what_waits_is_dropped_by_name_when_no_window_can_take_it() -> None:
    few = segment("few", hour(0), 10)
    assert next_closing(hour(0).end, [few], [], RULE, hour(2).end + 9 * MINUTE) is None
    closing = next_closing(hour(0).end, [few], [], RULE, hour(2).end + 10 * MINUTE)
    assert closing is not None
    assert (closing.window, closing.batches, list(closing.dropped)) == (hour(2), {}, [few])
