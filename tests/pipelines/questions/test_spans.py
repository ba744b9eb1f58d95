"""Spans: the windows that options choose, and what is said of windows that only overlap a range."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from hushcount.collection.tilings import Tiling, zone_of
from hushcount.collection.windows import window_names
from hushcount.errors import UsageError
from pipelines.questions.sides import of_windows
from pipelines.questions.sources import Source, from_store
from pipelines.questions.spans import Span, against_of, month_before, named
from tests.support.jobs import done, refused
from tests.support.site import Site

OCTOBER = datetime(2026, 9, 30, 22, tzinfo=timezone.utc)
"""When it begins in Berlin."""
HOURS = [f"202611{day}T{hour:02d}0000Z" for day in (22, 23) for hour in range(24)]


def test_each_printed_name_of_a_window_is_taken() -> None:
    quarters = [f"20261122T{hour:02d}{minute:02d}00Z" for hour in range(24) for minute in (0, 15)]
    for window, text in window_names(quarters).items():
        assert named(text, quarters) == named(window, quarters) == window
    with pytest.raises(UsageError, match="48 windows: give one, as 2026-11-22T00:00Z"):
        named("2026-11-22", quarters)
    with pytest.raises(UsageError, match="48 windows with results, 2026-11-22T00:00Z to 2026-11-22T23:15Z"):
        named("2026-11-23", quarters)


def test_a_range_has_all_windows_that_begin_in_its_months_days_or_hours() -> None:
    for span, chosen in (
        (Span(first="2026-11-22", end="2026-11-22"), HOURS[:24]),
        (Span(first="2026-11", end="2026-11"), HOURS),
        (Span(month="2026-11"), HOURS),
        (Span(first="2026-11-01", end="2026-12-31"), HOURS),
        (Span(first="2026-11-22T22:00Z"), HOURS[22:]),
        (Span(end="2026-11-23T01"), HOURS[:26]),
        (Span(first="2026-11-22T22:00Z", end="2026-11-23T01:30Z"), HOURS[22:26]),
        (Span(first=HOURS[5], end=HOURS[7]), HOURS[5:8]),
        (Span(window="2026-11-22T07"), HOURS[7:8]),
        (Span(3), HOURS[-3:]),
        (Span(), HOURS),
    ):
        assert span.chosen(HOURS) == chosen, span
    assert Span().chosen(HOURS, usual=2) == HOURS[-2:]
    for span in (Span(first="2026-11-24"), Span(end="2026-10"), Span(month="2026-12"), Span(month="2025-11")):
        with pytest.raises(UsageError, match="48 windows with results, 2026-11-22T00:00Z to 2026-11-23T23:00Z"):
            span.chosen(HOURS)


def test_days_and_months_are_those_of_the_zone() -> None:
    berlin = Tiling("day", "Europe/Berlin")
    days = [f"{start:%Y%m%dT%H%M%SZ}" for start in berlin.begins(OCTOBER, OCTOBER + timedelta(days=61))]
    assert (days[0], days[31]) == ("20260930T220000Z", "20261031T230000Z")
    for span, chosen in (
        (Span(month="2026-10"), days[:31]),
        (Span(month="2026-11"), days[31:61]),
        (Span(first="2026-10-25", end="2026-10-26"), days[24:26]),
        (Span(window="2026-10-25"), days[24:25]),
        (Span(window=days[24]), days[24:25]),
        # What ends with Z is UTC.
        (Span(first="2026-10-24T23Z", end="2026-10-25T23Z"), days[25:26]),
    ):
        assert span.chosen(days, zone=berlin.clock) == chosen, span
    with pytest.raises(UsageError, match="2026-10-01 to 2026-11-30"):
        Span(month="2026-12").chosen(days, zone=berlin.clock)


def test_months_follow_each_other_without_gap_or_overlap() -> None:
    """Leap days, years, and the last years that windows may have."""
    for month, before, days in (("2028-02", "2028-01", 29), ("2027-02", "2027-01", 28), ("2027-01", "2026-12", 31)):
        period = Span(month=month).period()
        assert period is not None
        assert (period.end - period.start).days == days
        assert month_before(month) == before
        previous = Span(month=before).period()
        assert previous is not None
        assert previous.end == period.start


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"first": "2026"}, "--from is '2026'"),
        ({"end": "2026-13"}, "--to is '2026-13'"),
        ({"first": "2026-02-30"}, "--from is"),
        ({"end": "1969-12"}, "--to is"),
        ({"month": "2026-11-22"}, "--month is"),
        ({"month": "9001-01"}, "--month is"),
        ({"month": "november"}, "--month is 'november', must be a month, as 2026-12"),
        ({"month": "x" * 10_000}, "--month is"),
        ({"first": "2026-12", "month": "2026-11"}, "--month and --from or --to"),
        ({"last": 2, "window": "2026-11-22"}, "--last and --window"),
    ],
)
def test_what_is_no_range_is_refused(options: dict[str, Any], names: str) -> None:
    with pytest.raises(UsageError, match=names):
        Span(**options)


def test_a_range_is_the_wrong_way_round_by_the_clock_of_its_zone() -> None:
    """24 December lasts in New York until 5:00 of the next day in UTC."""
    days = [f"202612{day}T{hour}0000Z" for day in (24, 25) for hour in ("03", "04")]
    span = Span(first="2026-12-25T04:00Z", end="2026-12-24")
    assert span.chosen(days, zone=zone_of("America/New_York")) == days[3:]
    for wrong in (span, Span(first="2026-12", end="2026-11")):
        with pytest.raises(UsageError, match=f"--from {wrong.first} is later than --to {wrong.end}"):
            wrong.chosen(days)


def test_a_side_before_is_a_number_or_a_time() -> None:
    assert (against_of(None), against_of("7")) == (None, 7)
    assert against_of("2026-11") == Span(month="2026-11")
    assert against_of("202611") == Span(month="202611")
    day = against_of("2026-11-30")
    assert day == Span(first="2026-11-30", end="2026-11-30")
    assert str(day) == "the windows that begin in 2026-11-30"
    for text in ("0", "-1", "1000001", "9" * 5000, "last"):
        with pytest.raises(UsageError, match=f"--against is '{text}'"):
            against_of(text)


def test_windows_that_only_overlap_a_range_are_named(asked: Site) -> None:
    """Windows here are days: the first began before the range, the last one ends after it."""
    (place, *_) = from_store(asked.deployment, "android").places
    days = [f"202611{day}T000000Z" for day in (21, 22, 23, 24)]
    source = Source("android", tuple(replace(place, window=day) for day in days), asked.deployment)
    chosen = Span(first="2026-11-22T12", end="2026-11-23T11").of(source)
    assert chosen.windows == (days[2],)
    early, late = chosen.fits
    said = "in the range from 2026-11-22T12 to 2026-11-23T11"
    assert early == f"window 2026-11-22 ends at 2026-11-23 00:00:00Z, and nothing of it counts {said}"
    assert late == f"window 2026-11-23 ends at 2026-11-24 00:00:00Z, and all of it counts {said}"
    assert Span(first="2026-11-22", end="2026-11-23").of(source).fits == ()
    assert Span(month="2026-11").of(source).fits == ("4 of the 30 days of 2026-11 have a result",)
    # A part of a day, in which no window begins, is in one window.
    hour = Span(window="2026-11-22T13").of(source)
    assert (hour.windows, hour.fits) == ((days[1],), ("2026-11-22T13 lies in window 2026-11-22",))
    for outside in ("2026-11-25T13", "2026-11-20T23"):
        with pytest.raises(UsageError, match="4 windows with results, 2026-11-21 to 2026-11-24"):
            Span(window=outside).of(source)


def test_a_month_is_compared_with_the_month_before(asked: Site) -> None:
    (place, *_) = from_store(asked.deployment, "android").places
    days = [f"2026{day}T000000Z" for day in ("1128", "1129", "1130", "1201", "1202")]
    source = Source("android", tuple(replace(place, window=day) for day in days), asked.deployment)
    for span, against, before, after in (
        (Span(month="2026-12"), None, days[:3], days[3:]),
        (Span(month="2026-12"), 2, days[1:3], days[3:]),
        (Span(month="2026-12"), Span(first="2026-11-29", end="2026-11-29"), days[1:2], days[3:]),
        (Span(window="2026-11-30"), None, days[1:2], days[2:3]),
        (Span(2), None, days[1:3], days[3:]),
        (Span(), 4, days[:4], days[4:]),
        (Span(), None, days[3:4], days[4:]),
    ):
        sides = of_windows(source, span, against)
        assert (list(sides.before.windows), list(sides.after.windows)) == (before, after)
    sides = of_windows(source, Span(month="2026-12"))
    assert sides.names == ("2026-11-28 to 2026-11-30", "2026-12-01 to 2026-12-02")
    with pytest.raises(UsageError, match="no results of 2026-10, the month before 2026-11: give --against"):
        of_windows(source, Span(month="2026-11"))


def test_a_page_has_a_range(asked: Site) -> None:
    month = f"{from_store(asked.deployment, 'ios').windows[-1]:.6}"
    page = asked.root / "page.html"
    done("dashboard", "--config", asked.config, "--out", page, "--month", f"{month[:4]}-{month[4:]}")
    assert f"the windows that begin in {month[:4]}-{month[4:]}" in page.read_text()
    before = page.read_bytes()
    refused("dashboard", "--config", asked.config, "--out", page, "--month", "2011-01", says=["begin in 2011-01"])
    assert page.read_bytes() == before
    refused("dashboard", "--config", asked.config, "--out", page, "--month", "2011-01", "--last", 3, says=["--month"])
