"""The windows of a collector, or of the schedule: each ends as it was begun, also if the length changes meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hushcount.collection.windows import Window, window_at
from tests.model.made import BEGIN


@dataclass
class Timeline:
    """One window after the other.

    Attributes:
        length: of those that begin from now on.
        begun: all until now; none of them changes.
    """

    length: timedelta
    begun: list[Window] = field(default_factory=list)

    def at(self, moment: datetime) -> Window:
        """Return the window of a moment; the first one if that is earlier."""
        while not self.begun or self.begun[-1].end <= moment:
            # What begins off the grid ends on it.
            start = self.begun[-1].end if self.begun else BEGIN
            self.begun.append(Window(start, window_at(start, self.length).end))
        return next((one for one in reversed(self.begun) if one.start <= moment), self.begun[0])

    def ended(self, after: datetime, until: datetime) -> list[Window]:
        """Return the windows that ended after a moment, and until another."""
        self.at(until)
        return [one for one in self.begun if after < one.end <= until]

    def copy(self) -> Timeline:
        """Return one of its own that begins alike."""
        return Timeline(self.length, list(self.begun))

    def change(self, moment: datetime, length: timedelta) -> None:
        """Let the windows that begin after the running one have another length."""
        self.at(moment)
        self.length = length


@dataclass
class Graces:
    """The grace that runs found in the deployment file.

    Attributes:
        found: moment and grace.
    """

    found: list[tuple[datetime, timedelta]] = field(default_factory=list)

    def begin(self, moment: datetime, grace: timedelta) -> None:
        """Note that a run begins, which perhaps never takes up a longer grace."""
        if self.found:
            self.found.append((moment, min(grace, self.found[-1][1])))

    def end(self, moment: datetime, grace: timedelta) -> None:
        """Note that a run which began at a moment came to its end."""
        self.found.append((moment, grace))

    def promised(self, window: Window) -> timedelta:
        """Return the grace of a window: the least that a run found in it, or the last before it."""
        before = [grace for at, grace in self.found if at <= window.start][-1:]
        within = [grace for at, grace in self.found if window.start < at <= window.end]
        return min(before + within, default=self.found[0][1] if self.found else timedelta())
