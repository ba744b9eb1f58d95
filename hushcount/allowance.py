"""How many reports a client may still make: at most the campaign's cap of each stream in each window.

The shuffler enforces the cap on whoever shows a client token. The allowance keeps an honest client from sending what
the shuffler would drop, and from spending its budget more often than the statement assumes, whoever collects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, PositiveInt

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.collection.windows import is_window, window_at
from hushcount.errors import FormatError, HushcountError
from hushcount.formats.client_files import ThreadLock, locked, read_private, write_private
from hushcount.formats.models import Part
from hushcount.formats.reading import parse_model

_MOST_BYTES = 1 << 20


def _window_name(name: str) -> str:
    if not is_window(name):
        raise ValueError("must be the name of a window")
    return name


class OverCap(HushcountError):
    """The client has made as many reports of a stream in this window as the campaign's cap lets it."""


class _Made(Part):
    """How many reports were made in a window, by campaign file and stream."""

    window: Annotated[str, AfterValidator(_window_name)] = ""
    reports: dict[str, PositiveInt] = Field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Allowance:
    """Counts the reports of one client, window by window, by this machine's clock; many threads may use it.

    A clock that is set back opens no window again.

    Args:
        window: length of the deployment's windows, which tile time from 1970 on. With a shorter one, the client makes
            more reports, and the shuffler forwards the cap.
        path: file of mode 0600 in which the numbers outlive the process, made with the first report; beside it a file
            `.lock`, if the system can lock files. It names no value. None: the count ends with the process.
    """

    window: timedelta = timedelta(days=1)
    path: Path | None = None
    _last: list[_Made] = field(default_factory=lambda: [_Made()], repr=False)
    _lock: ThreadLock = field(default_factory=ThreadLock, repr=False)

    def __post_init__(self) -> None:
        if self.window < timedelta(seconds=1):
            raise ValueError(f"window is {self.window}, must be at least 1 second")

    def take(self, campaign: Campaign, stream: Stream, number: int, now: datetime | None = None) -> None:
        """Count `number` reports that are about to be made, or none if they exceed the cap.

        Raises:
            OverCap: they exceed the cap; nothing may be made.
            FormatError, UsageError, HushcountError: the file is damaged, or cannot be read or written; nor then.
        """
        name = f"{campaign.fingerprint.hex()}/{stream}"
        with self._lock:
            if self.path is None:
                self._last[0] = self._counted(self._last[0], campaign, name, number, now)
                return
            path = Path(self.path)
            with locked(path, "allowance"):
                made = self._counted(_read(path), campaign, name, number, now)
                write_private(path, "allowance", made.model_dump_json() + "\n")

    def _counted(self, made: _Made, campaign: Campaign, name: str, number: int, now: datetime | None) -> _Made:
        present = window_at(now or datetime.now(timezone.utc), self.window).name
        if present > made.window:
            made = _Made(window=present)
        before, cap = made.reports.get(name, 0), campaign.shuffle.cap
        if before + number > cap:
            raise OverCap(
                f"{number} more {name.rpartition('/')[2]} of campaign {campaign.id} in the window that began at "
                f"{made.window}, where {before} were made: must be at most {cap} together; send the same bytes again "
                "for a retry, wait for the next window, or give uncapped=True where many clients' are made here"
            )
        return _Made(window=made.window, reports={**made.reports, name: before + number})


def _read(path: Path) -> _Made:
    try:
        raw = read_private(path, "allowance", _MOST_BYTES)
        return _Made() if raw is None else parse_model(_Made, raw, "the file")
    except FormatError:
        raise FormatError(
            f"allowance file {path} is damaged: restore it, or remove it, and this client may make its cap anew"
        ) from None
