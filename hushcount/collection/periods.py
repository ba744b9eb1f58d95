"""Periods: a month, a day, or a part of a day, as people type it to choose windows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo

from hushcount.collection.windows import day_begins, next_month, window_start
from hushcount.window_starts import YEARS

_MARKS = str.maketrans("", "", "-:")
_TIME = re.compile(r"[0-9]{6}(?:[0-9]{2}(?:T[0-9]{2}(?:[0-9]{2}(?:[0-9]{2})?)?)?)?")
_FORMS = {6: "%Y%m", 8: "%Y%m%d", 11: "%Y%m%dT%H", 13: "%Y%m%dT%H%M", 15: "%Y%m%dT%H%M%S"}
_LENGTHS = {11: timedelta(hours=1), 13: timedelta(minutes=1), 15: timedelta(seconds=1)}


@dataclass(frozen=True)
class Period:
    """The time from `start`, inclusive, to `end`, exclusive."""

    start: datetime
    end: datetime

    def begins(self, window: str) -> bool:
        """Return whether the window with this name begins in the period."""
        return self.start <= window_start(window) < self.end


ALWAYS = Period(
    datetime(YEARS[0], 1, 1, tzinfo=timezone.utc),
    datetime(YEARS[-1] + 1, 1, 1, tzinfo=timezone.utc),
)
"""The time in which windows can begin."""


def period_of(text: str, zone: tzinfo = timezone.utc) -> Period | None:
    """Return the month, day, hour, minute or second that a text names; None: it names none.

    Args:
        text: as 2026-12, 2026-12-24, 2026-12-24T13, 2026-12-24T13:00Z, or the name of a window.
        zone: the time zone of the text, unless the text ends with Z, for UTC.
    """
    zone = timezone.utc if text.endswith("Z") else zone
    plain = text.translate(_MARKS).removesuffix("Z")
    if not _TIME.fullmatch(plain):
        return None
    try:
        start = datetime.strptime(plain, _FORMS[len(plain)])
    except ValueError:
        return None
    if start.year not in YEARS:
        return None
    if length := _LENGTHS.get(len(plain)):
        first = start.replace(tzinfo=zone).astimezone(timezone.utc)
        return Period(first, first + length)
    day = start.date()
    end = day + timedelta(days=1) if len(plain) == len("20261224") else next_month(day)
    return Period(day_begins(day, zone), day_begins(end, zone))
