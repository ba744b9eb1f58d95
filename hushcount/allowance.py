"""How many reports a client may still make: no more of a stream in a window than the campaign's cap.

The shuffler settles the cap for whoever shows a token of a client; this keeps an honest client from sending what would
be dropped, and from spending its budget more often than the statement of a result assumes, whoever collects.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, PositiveInt

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.collection.windows import is_window, window_at
from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.formats.models import Part
from hushcount.formats.reading import open_regular, parse_model, take
from hushcount.formats.whole_files import sync, write_over
from hushcount.memory import ThreadLock, locked

_MOST_BYTES = 1 << 20
_MODE = 0o600
_DAY = timedelta(days=1)


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
    """Counts what one client makes, window by window, by this machine's clock; may be used by many threads.

    A clock that is set back opens no window again.

    Args:
        window: length of the deployment's windows, which tile time from 1970 on. A client that is told a shorter one
            makes more, of which the shuffler forwards the cap.
        path: file of mode 0600 in which the numbers outlive the process, made with the first report; beside it a file
            `.lock`, where the system can lock files. It names no value. None: the count ends with the process.
    """

    window: timedelta = _DAY
    path: Path | None = None
    _held: list[_Made] = field(default_factory=lambda: [_Made()], repr=False)
    _lock: ThreadLock = field(default_factory=ThreadLock, repr=False)

    def __post_init__(self) -> None:
        if self.window < timedelta(seconds=1):
            raise ValueError(f"window is {self.window}, must be at least 1 second")

    def take(self, campaign: Campaign, stream: Stream, number: int, now: datetime | None = None) -> None:
        """Count so many reports that are about to be made; where they pass the cap, count none.

        Args:
            campaign: whose.
            stream: which.
            number: how many.
            now: the present; the clock's by default.

        Raises:
            OverCap: they pass the cap; nothing may be made.
            FormatError, UsageError, HushcountError: the file is damaged, or cannot be read or written; nor then.
        """
        name = f"{campaign.fingerprint.hex()}/{stream}"
        with self._lock:
            if self.path is None:
                self._held[0] = self._counted(self._held[0], campaign, name, number, now)
                return
            path = Path(self.path)
            with locked(path, "allowance"):
                _write(path, self._counted(_read(path), campaign, name, number, now))

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
        with open_regular(path) as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            if os.name == "posix" and mode & 0o077:
                raise UsageError(f"allowance file {path} has mode {mode:04o}, must be 0600: chmod 600 {path}")
            return parse_model(_Made, take(stream, _MOST_BYTES, "the file"), "the file")
    except FileNotFoundError:
        return _Made()
    except OSError as error:
        raise UsageError(f"cannot read allowance file {path}: {error.strerror}") from None
    except FormatError:
        raise FormatError(
            f"allowance file {path} is damaged: restore it, or remove it, and this client may make its cap anew"
        ) from None


def _write(path: Path, made: _Made) -> None:
    try:
        write_over(path, made.model_dump_json() + "\n", _MODE)
        sync(path.absolute().parent)
    except OSError as error:
        raise HushcountError(f"cannot write allowance file {path}: {error.strerror}, nothing may be sent") from None
