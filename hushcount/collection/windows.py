"""Windows: spans of the collector's clock. Reports of a window are counted together (docs/adr/0014)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import TypeVar

from hushcount.window_starts import YEARS

_NAME = "%Y%m%dT%H%M%SZ"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"([1-9][0-9]{0,8})([smhd])")
LONGEST = timedelta(days=366)
_MOST = timedelta(days=36_600)
MOST_KEPT = 16
Key = TypeVar("Key")
Count = TypeVar("Count")


@dataclass(frozen=True, order=True)
class Window:
    """A window: the time from `start`, inclusive, to `end`, exclusive; both are in UTC and whole seconds."""

    start: datetime
    end: datetime

    @property
    def name(self) -> str:
        """The window's start, as in names of files and columns: 20261121T000000Z."""
        return self.start.strftime(_NAME)

    @property
    def text(self) -> str:
        """The window's start as people write it: 2026-11-21, or 2026-11-21T00:00Z if windows are not whole days."""
        days = not (self.length % timedelta(days=1) or (self.start - ORIGIN) % timedelta(days=1))
        return f"{self.start:%Y-%m-%d}" if days else _text(self.start)

    @property
    def length(self) -> timedelta:
        return self.end - self.start


def window_at(moment: datetime, length: timedelta) -> Window:
    """Return the window that contains a moment with a time zone; windows are counted from 1970-01-01T00:00:00Z."""
    if moment.tzinfo is None:
        raise ValueError(f"moment is {moment.isoformat()}, must name a time zone")
    if length % timedelta(seconds=1) or not timedelta(seconds=1) <= length <= LONGEST:
        raise ValueError(f"length is {length}, must be whole seconds from 1 s to {LONGEST.days} d")
    seconds = int(length.total_seconds())
    since = (moment - ORIGIN) // timedelta(seconds=1)
    start = ORIGIN + timedelta(seconds=since - since % seconds)
    return Window(start, start + length)


def named_window(name: str, length: timedelta) -> Window:
    """Return the window with the name `name`; ValueError if no window of this length has this name."""
    start = window_start(name)
    window = window_at(start, length)
    if window.start != start or window.name != name:
        raise ValueError(f"window is {name!r}, must start at a multiple of {length} from 1970-01-01T00:00:00Z")
    return window


def is_window(name: str) -> bool:
    """Return whether there is a window, of any length, with the name `name`."""
    try:
        return named_window(name, timedelta(seconds=1)).name == name
    except ValueError:
        return False


def window_name(start: float) -> str:
    """Return the name of the window that begins at `start`, in seconds since 1970."""
    return datetime.fromtimestamp(start, timezone.utc).strftime(_NAME)


def window_start(name: str) -> datetime:
    """Return when the window with this name begins; ValueError: `name` is no time, or its year is not in 1970..8999."""
    try:
        start = datetime.strptime(name, _NAME).replace(tzinfo=timezone.utc)
    except ValueError:
        raise ValueError(f"window is {name!r}, must be its start, as in 20261121T000000Z") from None
    if start.year not in YEARS:
        raise ValueError(f"window is {name!r}, must start in a year from {YEARS[0]} to {YEARS[-1]}")
    return start


def window_names(windows: Iterable[str], zone: tzinfo = timezone.utc) -> dict[str, str]:
    """Return each window's name as people read and type it: the window's first day in a zone, or its minute in UTC.

    A day is written 2026-11-21, a minute 2026-11-21T13:00Z. If one window does not begin with a day, all names have
    minutes.
    """
    starts = {name: window_start(name) for name in windows}
    if all(day_begins(start.astimezone(zone).date(), zone) == start for start in starts.values()):
        return {name: f"{start.astimezone(zone):%Y-%m-%d}" for name, start in starts.items()}
    return {name: _text(start) for name, start in starts.items()}


def day_begins(day: date, zone: tzinfo) -> datetime:
    """Return the first moment of a day; of a midnight or a day that a clock skips, the moment when the clock is set."""
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(timezone.utc)


def next_month(first: date) -> date:
    """Return the first day of the month after the one that begins on a day."""
    return (first + timedelta(days=31)).replace(day=1)


def window_text(window: str) -> str:
    """Return the name of one window as people read and type it."""
    return window_names([window])[window]


def _text(start: datetime) -> str:
    return start.strftime("%Y-%m-%dT%H:%M:%SZ" if start.second else "%Y-%m-%dT%H:%MZ")


def last_changed(counts: Mapping[Key, Count], key: Key, count: Count) -> dict[Key, Count]:
    """Set the count of one window or day, and return the 16 counts that were changed most recently.

    The clock may be wrong, so the counts of the last windows that the clock showed are kept, not only the newest count.
    Because old counts are kept, a client whose clock was ahead can still report, and a clock that jumps between windows
    starts no new count.
    """
    changed = {**{other: kept for other, kept in counts.items() if other != key}, key: count}
    return dict(list(changed.items())[-MOST_KEPT:])


def duration(text: str) -> timedelta:
    """Return the duration that a text like 90s, 15m, 1h or 1d names, or raise ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"duration is {text!r}, must be a whole number and s, m, h or d, as in 15m or 1d")
    span = timedelta(seconds=int(match[1]) * _UNITS[match[2]])
    if span > _MOST:
        raise ValueError(f"duration is {text!r}, must be at most {_MOST.days}d")
    return span


def duration_text(span: timedelta) -> str:
    """Return a span of whole seconds as a text that `duration` reads, in the largest unit that divides it: 1d, 90m."""
    seconds = int(span.total_seconds())
    return next(f"{seconds // unit}{letter}" for letter, unit in reversed(_UNITS.items()) if not seconds % unit)


ORIGIN = datetime(1970, 1, 1, tzinfo=timezone.utc)
