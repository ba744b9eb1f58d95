"""The input of every part of a campaign's page: its results, and short names of windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hushcount.privacy.guarantees import Statement
from hushcount.privacy.statement import statement
from pipelines.monitoring.known import Known
from pipelines.questions.sources import Source
from pipelines.windows.calendar import Calendar


@dataclass(frozen=True, eq=False)
class Shown:
    """A campaign with results, on a page.

    Attributes:
        source: the campaign's results.
        key: an id that distinguishes the campaign on the page.
        calendar: the campaign's windows.
        known: numbers that were computed before.
    """

    source: Source
    key: str
    calendar: Calendar
    known: Known = field(default_factory=Known)

    @property
    def name(self) -> str:
        """The campaign's id."""
        return self.source.name

    @cached_property
    def windows(self) -> Mapping[str, str]:
        """A short name of each window."""
        return self.source.names(self.source.windows)

    @cached_property
    def times(self) -> Mapping[str, tuple[int, int]]:
        """Begin and end of each window, in seconds since 1970-01-01T00:00:00Z."""
        return {name: seconds_of(self.calendar, name) for name in self.source.windows}

    @cached_property
    def newest(self) -> Source:
        """The results of the newest window: one, or two if the window's reports are from two epochs."""
        return self.source.of(self.source.windows[-1:])

    @property
    def is_mean(self) -> bool:
        """Whether clients report numbers for a mean, so that there is no item but the upper end of the range."""
        number = self.source.counted[-1].campaign.number
        return number is not None and number.mean

    @cached_property
    def stated(self) -> Statement:
        """The privacy statement of the newest result."""
        newest = self.source.counted[-1]
        return statement(newest.campaign, newest.reports, newest.tally.senders)


def seconds_of(calendar: Calendar, window: str) -> tuple[int, int]:
    """Return begin and end of a window, in seconds since 1970-01-01T00:00:00Z."""
    found = calendar.named(window)
    return int(found.start.timestamp()), int(found.end.timestamp())
