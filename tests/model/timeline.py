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
class Followed:
    """What runs took up of the deployment file, and when.

    Attributes:
        graces: moment and grace.
        unseen: until when a run must take up a changed length for the log to have the windows of the collectors.
        in_step: whether it has had them until now.
    """

    graces: list[tuple[datetime, timedelta]] = field(default_factory=list)
    unseen: datetime | None = None
    in_step: bool = True

    def change(self, until: datetime) -> None:
        """Note a changed length; it is not known what holds until then if no run has come to its end yet."""
        self.in_step = self.in_step and bool(self.graces)
        self.unseen = self.unseen or until

    def begin(self, moment: datetime, grace: timedelta) -> None:
        """Note that a run begins, which perhaps never takes up a longer grace."""
        if self.graces:
            self.graces.append((moment, min(grace, self.graces[-1][1])))

    def end(self, moment: datetime, grace: timedelta) -> None:
        """Note that a run which began at a moment has taken all up."""
        self.graces.append((moment, grace))
        self.in_step = self.is_in_step(moment)
        self.unseen = None

    def is_in_step(self, moment: datetime) -> bool:
        """Return whether the log has the windows of the collectors."""
        return self.in_step and (self.unseen is None or moment < self.unseen)

    def promised(self, window: Window) -> timedelta:
        """Return the grace of a window: that of the last run before it began, or of the first."""
        before = [grace for at, grace in self.graces if at <= window.start] or [grace for _, grace in self.graces[:1]]
        return before[-1] if before else timedelta()
