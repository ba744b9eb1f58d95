"""How far the clock is ahead of all else that tells the time: the rule by itself."""

from __future__ import annotations

from dataclasses import replace
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


def test_a_clock_is_near_as_long_as_stamps_follow_each_other() -> None:
    assert not clock(5, 1, 2).is_far
    assert not clock(6, 1, 2).is_far
    jumped = clock(402, 1, 2)
    assert (jumped.is_far, jumped.ahead, jumped.present) == (True, 400 * DAY, START + 2 * DAY)
    assert clock(6, 1, 2).present == START + 6 * DAY


def test_a_deployment_that_runs_daily_and_receives_nothing_is_not_far() -> None:
    assert not clock(400, 1, trusted=399).is_far
    assert clock(404.1, 1, trusted=400).is_far


def test_machines_that_went_on_vouch_for_one_that_was_off() -> None:
    days = range(2, 40, 3)
    assert not clock(41, *days, trusted=1).is_far


def test_a_stamp_beyond_a_gap_vouches_for_nothing() -> None:
    """A collector whose clock was 400 days ahead left a manifest; the run's clock jumps as far afterwards."""
    for trusted in (2.0, None):
        poisoned = clock(401, 1, 2, 400, trusted=trusted)
        assert (poisoned.is_far, poisoned.reach) == (True, START + 2 * DAY)
        right = clock(3, 1, 2, 400, trusted=trusted)
        assert (right.is_far, right.ahead) == (False, DAY)
        assert "after a gap, so that it proves nothing: the newest manifest 2027-12-26 00:00 UTC" in poisoned.says()


def test_witnesses_are_one_chain() -> None:
    both = clock(9, 1, trusted=1)
    assert both.is_far
    ledger = Witness("the ledger", at(5))
    assert not replace(both, witnesses=(*both.witnesses, ledger)).is_far


def test_the_stores_own_clock_decides_alone() -> None:
    idle = replace(clock(400, 1, trusted=1), store=START + 400 * DAY)
    assert (idle.is_far, idle.ahead) == (False, timedelta())
    wrong = replace(clock(400, 399, trusted=399), store=START)
    assert (wrong.is_far, wrong.ahead, wrong.present) == (True, 400 * DAY, START)
    assert wrong.says() == (
        "the clock says 2027-12-26 00:00 UTC, 400 d ahead of the store's own clock, 2026-11-21 00:00 UTC"
    )


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
