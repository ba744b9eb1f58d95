"""Tilings: how time is cut into windows, by a length or by a calendar (docs/adr/0056)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import Any, Literal, cast, get_args

from hushcount.collection.windows import ORIGIN, Window, day_begins, duration, duration_text, next_month, window_at
from hushcount.window_starts import SPANS, UNITS, USUAL, Unit

Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Tiling:
    """Windows of one length, counted from 1970-01-01T00:00:00Z, or the days, weeks or months of a time zone.

    Attributes:
        length: whole seconds from 1 s to 366 d, or the unit of a calendar.
        zone, starts: of a calendar: the name of its time zone, and the first day of its weeks.

    Raises:
        ValueError: the length is not in its range, or no time zone has this name.
    """

    length: timedelta | Unit
    zone: str = "UTC"
    starts: Weekday = "monday"

    def __post_init__(self) -> None:
        if isinstance(self.length, timedelta):
            window_at(ORIGIN, self.length)
        else:
            zone_of(self.zone)

    @classmethod
    def read(cls, text: str) -> Tiling:
        """Return the tiling that `str` wrote, such as 1h, day Europe/Berlin or week Europe/Berlin monday."""
        unit, *rest = text.split(" ")
        if unit not in UNITS:
            return cls(duration(text))
        if len(rest) != (2 if unit == "week" else 1) or not {*rest[1:]} <= {*WEEKDAYS}:
            raise ValueError(f"tiling is {text!r}, must be as 'day Europe/Berlin' or 'week Europe/Berlin monday'")
        return cls(unit, *cast(list[Any], rest))

    def __str__(self) -> str:
        if isinstance(self.length, timedelta):
            return duration_text(self.length)
        return " ".join((self.length, self.zone, *((self.starts,) if self.length == "week" else ())))

    @property
    def said(self) -> str:
        """How long windows are, as in: the weeks of Europe/Berlin from Monday on; or 12h long."""
        if isinstance(self.length, timedelta):
            return f"{duration_text(self.length)} long"
        first = f" from {self.starts.capitalize()} on" if self.length == "week" else ""
        return f"the {self.length}s of {self.zone}{first}"

    @property
    def clock(self) -> tzinfo:
        """The zone in which its days begin."""
        return timezone.utc if isinstance(self.length, timedelta) else zone_of(self.zone)

    @property
    def longest(self) -> timedelta:
        """A bound on the length of its windows."""
        return self.length if isinstance(self.length, timedelta) else SPANS[self.length][1]

    @property
    def usual(self) -> timedelta:
        """The length of most of its windows; of months, the shortest."""
        return self.length if isinstance(self.length, timedelta) else USUAL[self.length]

    def window_at(self, moment: datetime) -> Window:
        """Return the window that contains a moment with a time zone."""
        if isinstance(self.length, timedelta):
            return window_at(moment, self.length)
        if moment.tzinfo is None:
            raise ValueError(f"moment is {moment.isoformat()}, must name a time zone")
        first = self._first(moment.astimezone(self.clock).date())
        # A clock that is set back at midnight shows the end of a day again after the next day has begun.
        while day_begins(following := self._next(first), self.clock) <= moment:
            first = following
        return Window(day_begins(first, self.clock), day_begins(following, self.clock))

    def after(self, over: datetime | None, moment: datetime) -> Window:
        """Return the window that contains the later of `moment` and `over`; it begins no earlier than `over`.

        Args:
            over: the end of the last window, which may have had another tiling; None: there was no window before.
        """
        if over is None:
            return self.window_at(moment)
        window = self.window_at(max(moment, over))
        return Window(max(window.start, over), window.end)

    def begins(self, since: datetime, until: datetime) -> Iterator[datetime]:
        """Yield when its windows begin, from the window of `since` on, before `until`."""
        window = self.window_at(since)
        while window.start < until:
            yield window.start
            window = self.window_at(window.end)

    def number(self, since: datetime, until: datetime) -> int:
        """Return how many of its windows begin after `since` and before `until`; of one length it may be one more."""
        if isinstance(self.length, timedelta):
            return -(-(until - since) // self.length)
        return sum(start > since for start in self.begins(since, until))

    def words(self, window: Window) -> str:
        """Return a sentence on when windows begin; empty if one begins at every midnight in UTC, as people expect.

        Args:
            window: the present window, as an example.
        """
        began, ends = (
            f"{moment.astimezone(self.clock):%a %Y-%m-%d %H:%M:%S} {self.clock}"
            for moment in (window.start, window.end)
        )
        example = f"the present one began {began}, the next begins {ends}"
        if not isinstance(self.length, timedelta):
            return f"windows are {self.said}, and a client's token lives as long as one: {example}"
        if not _DAY % self.length:
            return ""
        day = "each begins on a Thursday; " if not self.length % timedelta(weeks=1) else ""
        return (
            f"windows are counted from Thursday, 1970-01-01, 00:00 UTC, not from midnight, Monday or the first of a "
            f"month: {day}{example}"
        )

    def _first(self, day: date) -> date:
        """Return the first day of the window of a day."""
        if self.length == "month":
            return day.replace(day=1)
        return day - timedelta(days=(day.weekday() - WEEKDAYS.index(self.starts)) % 7 if self.length == "week" else 0)

    def _next(self, first: date) -> date:
        """Return the first day of the window after the one that begins on a day."""
        if self.length == "month":
            return next_month(first)
        return first + (_DAY if self.length == "day" else 7 * _DAY)


@cache
def zone_of(name: str) -> tzinfo:
    """Return a time zone by its rules in the package tzdata, which a release pins: a system may have older rules.

    Raises:
        ValueError: tzdata lacks a zone of this name.
    """
    from difflib import get_close_matches
    from importlib.resources import files
    from zoneinfo import ZoneInfo

    names = files("tzdata").joinpath("zones").read_text(encoding="ascii").split()
    if name not in names:
        near = get_close_matches(name[:60], names, 1) or ["Europe/Berlin or UTC"]
        raise ValueError(f"zone is {name[:60]!r}, must be a time zone's name, as {near[0]}")
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as rules:
        return ZoneInfo.from_file(rules, key=name)
