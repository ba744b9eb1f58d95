"""How far the clock is ahead of all else that tells the time: the rule by itself."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from pipelines.ledger.clock import Reading, Witness, span, usual_bound

START = datetime(2026, 11, 21, tzinfo=timezone.utc)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
BOUND = 4 * DAY


def at(*days: float) -> tuple[datetime, ...]:
    return tuple(START + day * DAY for day in days)


def clock(now: float, *days: float, trusted: float | None = None) -> Reading:
    """Return a clock on a day, of a deployment with manifests of these days."""
    last = None if trusted is None else START + trusted * DAY
    return Reading(START + now * DAY, BOUND, last, (Witness("the newest manifest", at(*days)),))


def test_where_nothing_else_tells_the_time_the_clock_does() -> None:
    alone = clock(400)
    assert (alone.is_far, alone.reach, alone.ahead, alone.present) == (False, None, timedelta(), START + 400 * DAY)
    assert alone.says() == "the clock says 2027-12-26 00:00 UTC, and nothing else tells the time"


def test_a_clock_that_is_behind_is_not_far_and_says_so() -> None:
    behind = clock(-30, 1, trusted=2.5)
    assert (behind.is_far, behind.present) == (False, START - 30 * DAY)
    assert behind.says() == (
        "the clock says 2026-10-22 00:00 UTC, 32 d 12 h behind all else that tells the time: the newest manifest "
        "2026-11-22 00:00 UTC, the log 2026-11-23 12:00 UTC"
    )


def test_the_bound_follows_from_the_windows() -> None:
    for length, grace, patience, bound in (
        (DAY, 2 * DAY, HOUR, 4 * DAY + HOUR),
        (HOUR, HOUR, timedelta(), 2 * DAY),
        (7 * DAY, DAY, HOUR, 15 * DAY + HOUR),
    ):
        assert usual_bound(length, grace, patience) == bound


def test_a_length_is_said_by_its_two_largest_units() -> None:
    for length, said in (
        (398 * DAY + 2 * HOUR + timedelta(seconds=5), "398 d 2 h"),
        (timedelta(seconds=-65), "1 min 5 s"),
        (timedelta(), "0 s"),
    ):
        assert span(length) == said
