"""The calendar of a log: the windows of a campaign, and the grace of each window (docs/adr/0045).

The tiling in force at a moment decides where the moment's window ends. After a change of the tiling, the first new
window begins where the last old window ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hushcount.collection.windows import Window, window_start
from pipelines.log.facts import Times

_SECOND = timedelta(seconds=1)
MOST_ENDED = 1000
"""The most windows that `ended` counts."""


@dataclass(frozen=True)
class Calendar:
    """All settings of tiling and grace that were or will be in force, at least one, ordered by when they begin."""

    times: Sequence[Times]

    def at(self, moment: datetime) -> Times:
        """Return the tiling and grace in force at a moment."""
        return [self.times[0], *(one for one in self.times[1:] if one.begins is not None and one.begins <= moment)][-1]

    def window_at(self, moment: datetime) -> Window:
        """Return the window that contains a moment."""
        times = self.at(moment)
        return times.tiling.after(times.begins, moment)

    def ended(self, since: datetime, until: datetime) -> int:
        """Return how many windows ended after `since` and by `until`, at most MOST_ENDED."""
        number, end = 0, self.window_at(since).end
        while end <= until and number < MOST_ENDED:
            number, end = number + 1, self.window_at(end).end
        return number

    def named(self, name: str) -> Window:
        """Return the window with a name, which states when it begins; raises ValueError if it is no window's name."""
        start = window_start(name)
        return Window(start, self.window_at(start).end)

    def of(self, window: Window) -> Times:
        """Return the tiling and grace in force at a window's last second, whichever collector ended the window."""
        return self.at(window.end - _SECOND)

    def grace_ends(self, window: Window) -> datetime:
        """Return the time when a window's grace ends."""
        return window.end + self.of(window).grace

    def has(self, window: Window) -> bool:
        """Return whether a collector that applies new settings in time can have ended this window.

        A collector may read new settings one window before the log states them. The window in which a collector reads
        new settings keeps its end.
        """
        last = window.end - _SECOND
        tilings = {one.tiling for one in (self.at(window.start - _SECOND), self.at(last), self.times[-1])}
        grids = [tiling.window_at(last) for tiling in tilings]
        return any(one.end == window.end and one.start <= window.start for one in grids)

    def compared_until(self, end: datetime) -> datetime:
        """Return until when late reports may be compared with the reports of a window that ended at `end`.

        A report may come late by as much as the grace, and its copy may be in a window that ended as much as the grace
        earlier. The report may also belong to the last window before a change, which had an earlier, longer grace.
        """
        last = [min(end, one.begins or end) for one in self.times[1:]]
        return max(
            ends + 2 * one.grace + one.tiling.longest for one, ends in zip(self.times, [*last, end], strict=True)
        )
