"""How many reports a client may still make: at most the campaign's cap of each stream in each window.

The shuffler enforces the cap on whoever shows a client token. The allowance keeps an honest client from sending what
the shuffler would drop, and from spending its budget more often than the statement assumes, whoever collects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, NonNegativeInt

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.clock import MACHINE
from hushcount.collection.windows import MOST_KEPT, is_window, last_changed, window_at
from hushcount.errors import HushcountError
from hushcount.formats.client_files import KeptValue
from hushcount.formats.models import Part


def _window_name(name: str) -> str:
    if not is_window(name):
        raise ValueError("must be the name of a window")
    return name


_Reports = dict[str, NonNegativeInt]
_Window = Annotated[str, AfterValidator(_window_name)]


class OverCap(HushcountError):
    """One more report of a stream would not count: it is beyond the campaign's cap in this window."""


class _Made(Part):
    """How many reports were made in the windows that the clock has shown last, by campaign and stream."""

    windows: dict[_Window, _Reports] = Field(default_factory=dict, max_length=MOST_KEPT)


@dataclass(frozen=True, eq=False)
class Allowance:
    """Counts the reports of one client, window by window, by this machine's clock; many threads may use it.

    Each window has the cap, in whatever order the clock shows it: a clock that was ahead mutes nobody when it is set
    right, and one that flaps between two windows wins nothing. Whoever sets the clock opens a window with each one that
    is not among the last 16, as any clock that advances does. A person's budget bounds what that costs, and the
    shuffler, which counts by the collector's clock, what it changes.

    Args:
        window: length of the deployment's windows, which tile time from 1970 on. With a shorter one, the client makes
            more reports, and the shuffler forwards the cap.
        path: file of mode 0600 in which the numbers outlive the process, made with the first report; beside it a file
            `.lock`, if the system can lock files. It names no value. None: the count ends with the process.
    """

    window: timedelta = timedelta(days=1)
    path: Path | None = None
    _made: KeptValue[_Made] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.window < timedelta(seconds=1):
            raise ValueError(f"window is {self.window}, must be at least 1 second")
        cure = "restore it, or remove it, and this client may make its cap anew"
        object.__setattr__(self, "_made", KeptValue(_Made(), self.path, "allowance", cure))

    def take(self, campaign: Campaign, stream: Stream, number: int, now: datetime | None = None) -> None:
        """Count `number` reports that are about to be made, or none if they exceed the cap.

        Raises:
            OverCap: they exceed the cap; nothing may be made.
            FormatError, UsageError, HushcountError: the file is damaged, or cannot be read or written; nor then.
        """
        self._made.change(lambda made: (self._counted(made, campaign, stream, number, now), None))

    def _counted(self, made: _Made, campaign: Campaign, stream: Stream, number: int, now: datetime | None) -> _Made:
        # Not of each file: an operator may publish many epochs in one window.
        name = f"{campaign.id}/{stream}"
        present = window_at(now or MACHINE.now(), self.window).name
        reports = made.windows.get(present, {})
        before, cap = reports.get(name, 0), campaign.shuffle.cap
        if before + number > cap:
            raise OverCap(
                f"{number} more {stream} of campaign {campaign.id} in the window that began at "
                f"{present}, where {before} were made: must be at most {cap} together; wait for the next window, "
                "and for a retry send the same bytes again"
            )
        # A copy is not checked again: that the window is one takes as long as the rest of a report.
        windows = last_changed(made.windows, present, {**reports, name: before + number})
        return made.model_copy(update={"windows": windows})
