"""The calendar of a log: which windows there are, and how long each waits for what is late (docs/adr/0045).

A window ends where the length in force says; after a change of the length it begins where the last one ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hushcount.collection.windows import Window, window_at, window_from, window_start
from pipelines.log.facts import Times

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Calendar:
    """All times that were in force, or will be: one at least, in the order of their begin."""

    times: Sequence[Times]

    def at(self, moment: datetime) -> Times:
        """Return the times in force at a moment."""
        return [self.times[0], *(one for one in self.times[1:] if one.begins is not None and one.begins <= moment)][-1]

    def window_at(self, moment: datetime) -> Window:
        """Return the window of a moment."""
        times = self.at(moment)
        return window_from(times.begins, moment, times.length)

    def named(self, name: str) -> Window:
        """Return the window that begins as a name says; ValueError: it is not a window's name."""
        start = window_start(name)
        return Window(start, self.window_at(start).end)

    def of(self, window: Window) -> Times:
        """Return the times that a window has, whoever ended it: those in force at its last moment."""
        return self.at(window.end - _SECOND)

    def grace_ends(self, window: Window) -> datetime:
        """Return until when what is late for a window still counts."""
        return window.end + self.of(window).grace

    def has(self, window: Window) -> bool:
        """Return whether a collector can have ended a window that has the settings of now, or had them in time.

        It may learn of them a window before the log does, and it ends the window in which it learns of them as begun.
        """
        last = window.end - _SECOND
        lengths = {one.length for one in (self.at(window.start - _SECOND), self.at(last), self.times[-1])}
        grids = [window_at(last, length) for length in lengths]
        return any(one.end == window.end and one.start <= window.start for one in grids)

    def compared_until(self, end: datetime) -> datetime:
        """Return until when late reports may be compared with those of a window that ended then.

        A report may come a grace period late, and its copy may be in a window that ended as long before. It may be of
        the last window with an earlier grace, which was longer.
        """
        last = [min(end, one.begins or end) for one in self.times[1:]]
        return max(ends + 2 * one.grace + one.length for one, ends in zip(self.times, [*last, end], strict=True))
