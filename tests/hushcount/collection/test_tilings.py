"""Tilings: windows of calendars tile time without gap or overlap, in every zone and over every change of its clock."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from importlib.resources import files

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hushcount.collection.tilings import WEEKDAYS, Tiling, zone_of
from hushcount.collection.windows import Window, window_names
from hushcount.window_starts import SPANS, UNITS, Unit

UTC = timezone.utc
ZONES = files("tzdata").joinpath("zones").read_text(encoding="ascii").split()
DAY = timedelta(days=1)
calendars = st.builds(Tiling, st.sampled_from(UNITS), st.sampled_from(ZONES), st.sampled_from(WEEKDAYS))
moments = st.datetimes(datetime(1970, 2, 15), datetime(2100, 1, 1)).map(lambda one: one.replace(tzinfo=UTC))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@given(tiling=calendars, moment=moments)
# A midnight that was set back to 23:00, after the next day had begun for a minute; a day that was skipped; a midnight
# that was skipped; seven hours at once.
@example(tiling=Tiling("day", "America/St_Johns"), moment=utc("2006-10-29T03:00:30"))
@example(tiling=Tiling("day", "Pacific/Apia"), moment=utc("2011-12-30T10:00:00"))
@example(tiling=Tiling("week", "Pacific/Apia", "friday"), moment=utc("2011-12-30T09:59:59"))
@example(tiling=Tiling("day", "America/Sao_Paulo"), moment=utc("2018-11-04T03:00:00"))
@example(tiling=Tiling("day", "Antarctica/Vostok"), moment=utc("1994-11-01T12:00:00"))
def test_each_moment_is_in_one_window_which_ends_where_the_next_begins(tiling: Tiling, moment: datetime) -> None:
    window = tiling.window_at(moment)
    assert window.start <= moment < window.end
    for other in (window.start, window.end - timedelta(seconds=1)):
        assert tiling.window_at(other) == window
    assert tiling.window_at(window.end).start == window.end
    assert isinstance(tiling.length, str)
    least, most = SPANS[tiling.length]
    assert least <= window.length <= most


def test_windows_begin_when_clocks_show_it() -> None:
    """By hand: both changes of Berlin's clock, a leap day, first days of weeks, and the two sides of the date line."""
    for tiling, moment, start, end in (
        (Tiling("day", "Europe/Berlin"), "2026-03-29T12:00", "2026-03-28T23:00", "2026-03-29T22:00"),
        (Tiling("day", "Europe/Berlin"), "2026-10-25T12:00", "2026-10-24T22:00", "2026-10-25T23:00"),
        (Tiling("day", "Europe/Berlin"), "2028-02-29T12:00", "2028-02-28T23:00", "2028-02-29T23:00"),
        (Tiling("month", "Europe/Berlin"), "2028-02-29T12:00", "2028-01-31T23:00", "2028-02-29T23:00"),
        (Tiling("month", "Europe/Berlin"), "2026-10-31T22:59", "2026-09-30T22:00", "2026-10-31T23:00"),
        (Tiling("month"), "2026-12-31T23:59", "2026-12-01T00:00", "2027-01-01T00:00"),
        (Tiling("week", "Europe/Berlin"), "2026-11-29T22:59", "2026-11-22T23:00", "2026-11-29T23:00"),
        (Tiling("week", "America/New_York", "sunday"), "2026-11-29T12:00", "2026-11-29T05:00", "2026-12-06T05:00"),
        (Tiling("day", "Pacific/Kiritimati"), "2026-11-29T12:00", "2026-11-29T10:00", "2026-11-30T10:00"),
        (Tiling("day", "Pacific/Pago_Pago"), "2026-11-29T12:00", "2026-11-29T11:00", "2026-11-30T11:00"),
        (Tiling("day", "America/Sao_Paulo"), "2018-11-04T12:00", "2018-11-04T03:00", "2018-11-05T02:00"),
        (Tiling("day", "Pacific/Apia"), "2011-12-30T09:00", "2011-12-29T10:00", "2011-12-30T10:00"),
        (Tiling("day", "Pacific/Apia"), "2011-12-30T11:00", "2011-12-30T10:00", "2011-12-31T10:00"),
        (Tiling(timedelta(hours=12)), "2026-11-29T12:00", "2026-11-29T12:00", "2026-11-30T00:00"),
    ):
        assert tiling.window_at(utc(moment)) == Window(utc(start), utc(end)), (tiling, moment)


@given(tiling=calendars, first=moments, days=st.integers(1, 100))
def test_the_starts_ahead_are_those_of_the_windows(tiling: Tiling, first: datetime, days: int) -> None:
    starts = [*tiling.begins(first, first + days * DAY)]
    assert starts == sorted(set(starts))
    assert starts[0] <= first < starts[-1] + DAY * 33
    assert all(tiling.window_at(start).start == start for start in starts)
    assert tiling.window_at(starts[-1]).end >= first + days * DAY


def test_as_many_windows_begin_in_a_time_as_are_named() -> None:
    since = utc("2027-01-01T12:00")
    for tiling, until, number in (
        (Tiling("month"), "2028-01-01T00:00", 11),
        (Tiling("month"), "2028-01-01T00:01", 12),
        (Tiling("week", "Europe/Berlin"), "2027-01-11T00:00", 2),
        (Tiling(timedelta(days=7)), "2027-01-15T12:00", 2),
    ):
        assert tiling.number(since, utc(until)) == number, (tiling, until)


@given(tiling=calendars | st.integers(1, 366 * 86_400).map(lambda seconds: Tiling(timedelta(seconds=seconds))))
def test_the_text_of_a_tiling_is_read_as_that_tiling(tiling: Tiling) -> None:
    read = Tiling.read(str(tiling))
    assert str(read) == str(tiling)
    assert read.window_at(utc("2026-11-29T12:00")) == tiling.window_at(utc("2026-11-29T12:00"))


@pytest.mark.parametrize(
    "text",
    [
        "", "day", "month", "week Europe/Berlin", "week Europe/Berlin monday sunday", "week Europe/Berlin today",
        "day Europe/Berlin monday", "year UTC", "day Mars/Olympus", "day ../../etc/passwd", "day europe/berlin",
        "0s", "367d", "1w", "day  UTC", "day UTC ", "day posixrules",
    ],
)  # fmt: skip
def test_what_is_no_tiling_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|tiling|zone|length"):
        Tiling.read(text)


@pytest.mark.parametrize(
    ("zone", "near"), [("europe/berlin", "Europe/Berlin"), ("New_York", "America/New_York"), ("x", "Europe/Berlin or")]
)
def test_an_unknown_zone_has_the_nearest_name_in_its_error(zone: str, near: str) -> None:
    with pytest.raises(ValueError, match=f"zone is '{zone}', must be a time zone's name, as {near}"):
        zone_of(zone)


def test_a_sentence_on_windows_has_the_clock_of_their_zone() -> None:
    week, hours = Tiling("week", "Europe/Berlin"), Tiling(timedelta(hours=5))
    said = week.words(week.window_at(utc("2026-11-29T12:00")))
    assert said.startswith("windows are the weeks of Europe/Berlin from Monday on, and a client's token lives")
    assert said.endswith("the next begins Mon 2026-11-30 00:00:00 Europe/Berlin")
    assert hours.words(hours.window_at(utc("2026-11-29T12:00"))).endswith(" UTC")
    assert (hours.said, Tiling("day").said) == ("5h long", "the days of UTC")


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="must name a time zone"):
        Tiling("day").window_at(datetime(2026, 11, 29))


@pytest.mark.parametrize("unit", UNITS)
def test_windows_of_a_calendar_are_named_by_their_first_days(unit: Unit) -> None:
    tiling = Tiling(unit, "America/Sao_Paulo")
    # Clocks skipped the midnight of 2018-11-04, so that this day began at 1:00.
    starts = [f"{start:%Y%m%dT%H%M%SZ}" for start in tiling.begins(utc("2018-11-01T12:00"), utc("2019-03-01T00:00"))]
    names = [*window_names(starts, tiling.clock).values()]
    assert all(len(name) == len("2018-11-04") for name in names)
    assert names == sorted(set(names))
    assert zone_of("America/Sao_Paulo") is tiling.clock
