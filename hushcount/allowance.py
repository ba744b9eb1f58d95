"""How many reports a client may still make: in each window, at most the campaign's cap of each stream.

The shuffler enforces the cap for each client token. The allowance keeps an honest client from sending reports that the
shuffler would drop. The allowance also keeps the client from spending its budget more often than the privacy statement
assumes, whichever collector the client reports to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, NonNegativeInt

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.clock import MACHINE
from hushcount.collection.windows import MOST_KEPT, is_window, last_changed, window_name, window_start
from hushcount.errors import HushcountError
from hushcount.formats.client_files import KeptValue
from hushcount.formats.models import Part


def _window_name(name: str) -> str:
    if not is_window(name):
        raise ValueError("must be the name of a window")
    return name


_Window = Annotated[str, AfterValidator(_window_name)]
_Counts = Annotated[dict[_Window, NonNegativeInt], Field(max_length=MOST_KEPT)]


class OverCap(HushcountError):
    """The campaign's cap of a stream is reached in this window, so the shuffler would not count one more report."""


class _Made(Part):
    """How many reports of each campaign and stream were made in the last windows that the clock showed."""

    reports: dict[str, _Counts] = Field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Allowance:
    """Counts the reports of one client in each window of this machine's clock; threads may share this object.

    The allowance counts each window separately, in whatever order the clock shows the windows. So a client whose clock
    was ahead can report again once the clock is set right, and a clock that jumps between two windows permits no extra
    reports. Only the counts of the last 16 windows are kept: any other window that the clock shows starts a new count,
    whether the clock advanced or somebody set the clock. The client's budget bounds what reports under such new counts
    cost. The shuffler bounds how many reports count, because the shuffler uses the collector's clock.

    Args:
        window: length of the deployment's windows, which are counted from 1970, or of the shortest that campaigns may
            list. With a shorter length the client makes more reports, but the shuffler still forwards no more reports
            than the cap.
        path: file of mode 0600 that keeps the counts when the process ends. The first report makes this file, and
            beside it a file `.lock`, if the system can lock files. The file contains no value that was reported. None:
            the counts are lost when the process ends.
    """

    window: timedelta = timedelta(days=1)
    path: Path | None = None
    _made: KeptValue[_Made] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.window < timedelta(seconds=1):
            raise ValueError(f"window is {self.window}, must be at least 1 second")
        cure = "restore it; if you remove it, this client counts its reports from 0 again"
        object.__setattr__(self, "_made", KeptValue(_Made(), self.path, "allowance", cure))

    def take(self, campaign: Campaign, stream: Stream, number: int, now: datetime | None = None) -> None:
        """Count `number` reports before they are made; if they would exceed the cap, raise OverCap and count none.

        Raises:
            OverCap: the reports would exceed the cap; the caller must make none of these reports.
            FormatError, UsageError, HushcountError: the file is damaged, or cannot be read or written; the caller must
                make no report.
        """
        self._made.change(lambda made: (self._counted(made, campaign, stream, number, now), None))

    def _counted(self, made: _Made, campaign: Campaign, stream: Stream, number: int, now: datetime | None) -> _Made:
        # Reports are counted by campaign, not by campaign file, because an operator may publish many epochs in one
        # window.
        name = f"{campaign.id}/{stream}"
        starts, counts = campaign.starts(self.window), made.reports.get(name, {})
        begins, cap = starts.at((now or MACHINE.now()).timestamp()), campaign.shuffle.cap
        present = window_name(begins)
        # Another epoch may list windows that begin a little earlier or later. They are no new windows.
        before = sum(n for window, n in counts.items() if abs(window_start(window).timestamp() - begins) < starts.least)
        if before + number > cap:
            raise OverCap(
                f"{number} more {stream} of campaign {campaign.id} cannot be made: {before} were made in the window "
                f"that began at {present}, and the cap is {cap}; wait for the next window; to retry, send the same "
                "bytes again"
            )
        # model_copy is used because it does not validate: validating the window's name would take as long as all other
        # steps of making a report.
        reports = {**made.reports, name: last_changed(counts, present, counts.get(present, 0) + number)}
        return made.model_copy(update={"reports": reports})
