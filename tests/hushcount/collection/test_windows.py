"""Windows tile time, and their names give them back."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import duration, named_window, window_at, window_names, window_text

MOMENTS = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(timezone.utc))
LENGTHS = st.integers(1, 366 * 86400).map(lambda seconds: timedelta(seconds=seconds))


@given(MOMENTS, LENGTHS)
def test_windows_tile_time_without_gap_or_overlap(moment: datetime, length: timedelta) -> None:
    window = window_at(moment, length)
    assert window.start <= moment < window.end
    assert window.length == length
    assert window_at(window.end, length).start == window.end
    assert window_at(window.end - timedelta(microseconds=1), length) == window
    assert window_at(window.start, length) == window


@given(MOMENTS, LENGTHS)
def test_a_name_gives_its_window_back_and_names_sort_as_windows_do(moment: datetime, length: timedelta) -> None:
    window = window_at(moment, length)
    assert named_window(window.name, length) == window
    assert window.name < window_at(window.end, length).name


def test_a_day_begins_at_midnight_utc_wherever_the_clock_stands() -> None:
    east = datetime(2026, 11, 22, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert window_at(east, timedelta(days=1)).name == "20261121T000000Z"
    assert window_at(east, timedelta(hours=1)).name == "20261121T230000Z"


def test_what_is_no_duration_is_refused(subtests: pytest.Subtests) -> None:
    for text in ["", "0h", "1", "h", "1.5h", "-1h", "1w", " 1h", "1h ", "01h", "1d1h"]:
        with (
            subtests.test(text=text),
            pytest.raises(ValueError, match="s, m, h or d"),
        ):
            duration(text)


def test_durations_are_what_they_say() -> None:
    assert duration("90s") == timedelta(seconds=90)
    assert duration("15m") == timedelta(minutes=15)
    assert duration("1h") == timedelta(hours=1)
    assert duration("7d") == timedelta(days=7)


def test_a_name_of_no_window_is_refused(subtests: pytest.Subtests) -> None:
    for name in ["20261121", "20261121T000001Z", "20261121T003000Z", "2026-11-21", "20261121T000000"]:
        with subtests.test(name=name), pytest.raises(ValueError, match="window is"):
            named_window(name, timedelta(hours=1))


def test_moments_without_a_zone_and_lengths_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        window_at(datetime(2026, 1, 1), timedelta(hours=1))
    for length in (timedelta(0), timedelta(seconds=1.5), timedelta(days=367), timedelta(days=-1)):
        with pytest.raises(ValueError, match="length is"):
            window_at(datetime(2026, 1, 1, tzinfo=timezone.utc), length)


def test_who_chooses_a_length_is_told_when_its_windows_begin_unless_they_begin_with_days() -> None:
    def told(text: str) -> str:
        tiling = Tiling(duration(text))
        return tiling.words(tiling.window_at(datetime(2026, 11, 24, 12, tzinfo=timezone.utc)))

    for text in ("1d", "12h", "15m", "7s", "1s"):
        assert (told(text) == "") == (text != "7s")
    for text, start, end in (
        ("7d", "Thu 2026-11-19 00:00", "Thu 2026-11-26 00:00"),
        ("14d", "Thu 2026-11-19 00:00", "Thu 2026-12-03 00:00"),
        ("5h", "Tue 2026-11-24 11:00", "Tue 2026-11-24 16:00"),
        ("2d", "Mon 2026-11-23 00:00", "Wed 2026-11-25 00:00"),
    ):
        assert f"{start}:00 UTC" in told(text)
        assert f"{end}:00 UTC" in told(text)
        assert ("each begins on a Thursday" in told(text)) == (text in ("7d", "14d"))


def test_windows_have_names_for_people_that_no_two_share() -> None:
    days = [f"202611{day:02d}T000000Z" for day in range(1, 8)]
    assert window_names(days)[days[0]] == window_text(days[0]) == "2026-11-01"
    hours = [f"20261122T{hour:02d}{minute:02d}00Z" for hour in range(24) for minute in (0, 15)]
    named = window_names(hours)
    assert (named[hours[0]], named["20261122T131500Z"]) == ("2026-11-22T00:00Z", "2026-11-22T13:15Z")
    assert len({*named.values()}) == len(hours)
    assert [
        window_at(datetime(2026, 11, 22, tzinfo=timezone.utc), timedelta(hours=hours)).text for hours in (1, 24)
    ] == ["2026-11-22T00:00Z", "2026-11-22"]
    assert window_text("20261122T131501Z") == "2026-11-22T13:15:01Z"
