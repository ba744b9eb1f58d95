"""When windows begin, as a client knows it: by the list of its campaign file, or by a length (docs/adr/0056)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Literal, get_args

# The first and last year are far from the limits of datetime, because lengths and grace periods are added to times.
YEARS = range(1970, 9000)
"""The years of windows."""
Unit = Literal["day", "week", "month"]
UNITS: tuple[Unit, ...] = get_args(Unit)
_DAY = timedelta(days=1)
USUAL = {"day": _DAY, "week": 7 * _DAY, "month": 28 * _DAY}
"""The length of most windows of each unit of a calendar; of months, the shortest."""
SPANS = {
    unit: (USUAL[unit] - timedelta(hours=7), longest)
    for unit, longest in zip(UNITS, (2 * _DAY, 8 * _DAY, 32 * _DAY), strict=True)
}
"""The least and the greatest length of a window of each unit: since 1970 zones have set their clocks by up to 7 hours
(Antarctica/Vostok, 1994), or by a day."""
WINDOW_BYTES = 8
"""With noise a report names its window by so many bytes, openly and in its layer."""
LAST = int(datetime(YEARS[-1], 12, 31, tzinfo=timezone.utc).timestamp())
"""No window of a client begins later, in seconds since 1970."""


def window_octets(begins: int) -> bytes:
    """Return how a report names its window: when this begins, in seconds since 1970, little-endian."""
    return begins.to_bytes(WINDOW_BYTES, "little")


def window_of(report: bytes) -> int:
    """Return when the window begins that a report with noise of the mixes names."""
    return int.from_bytes(report[:WINDOW_BYTES], "little")


@dataclass(frozen=True)
class Starts:
    """When windows begin.

    Attributes:
        seconds: the length of windows that are counted from 1970.
        listed: when windows begin, in seconds since 1970, rising; empty: windows are counted from 1970. Before the
            second of them is the first window, from the last one on is the last window.
    """

    seconds: int
    listed: tuple[int, ...] = ()

    @property
    def least(self) -> int:
        """The least length of a window in seconds: no two windows begin closer together."""
        if not self.listed:
            return self.seconds
        return min(later - earlier for earlier, later in pairwise(self.listed))

    def at(self, moment: float) -> int:
        """Return when the window of a moment begins; the moment may be of any wrong clock. All are in s since 1970."""
        within = int(min(max(moment, 0.0), LAST))
        if not self.listed:
            return within - within % self.seconds
        return self.listed[max(0, bisect_right(self.listed, within) - 1)]

    def after(self, moment: float) -> int:
        """Return when the window after that of a moment begins; LAST after the last that is listed."""
        if not self.listed:
            return self.at(moment) + self.seconds
        following = bisect_right(self.listed, self.at(moment))
        return self.listed[following] if following < len(self.listed) else LAST
