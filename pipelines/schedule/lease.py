"""A lease saves work: two runs at once are right, but would do everything twice. Nothing is decided by it.

It is a file with a counter, which its holder raises every 20 seconds. Another run takes it over once the counter has
stood still for three minutes by its own timer; or at once on the same machine, if the holder's process is gone. To
delete it is always allowed.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from hushcount.errors import FormatError, HushcountError
from hushcount.formats.models import Part
from hushcount.formats.reading import SETTINGS_BYTES, parse_model
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.log.entries import Id

RAISED_SECONDS = 20.0
STILL_SECONDS = 180.0
_LOOK_SECONDS = 1.0
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_held: set[str] = set()
"""Owners of the leases that this process holds."""


class AnotherRun(HushcountError):
    """Another run is at work: nothing was done."""


class _Lease(Part):
    """The file.

    Attributes:
        boot: of the machine since it started; empty: unknown.
        process: its number there, and when it began.
    """

    owner: Id
    counter: int = Field(ge=0)
    boot: str = Field(default="", max_length=64)
    process: str = Field(default="", max_length=64)


@dataclass(frozen=True)
class Patience:
    """How long a lease is looked at, in seconds; tests wait less."""

    raised: float = RAISED_SECONDS
    still: float = STILL_SECONDS
    look: float = _LOOK_SECONDS


@contextmanager
def leased(deployment: Deployment, wait: bool, patience: Patience | None = None) -> Iterator[None]:
    """Hold the lease of the parties here while a block runs.

    Raises:
        AnotherRun: another run holds it, and `wait` is false.
        StorageError, OSError: the store cannot be used.
    """
    times = patience or Patience()
    path = deployment.folder("log", f"{'+'.join(deployment.file.parties)}.lease.json")
    _await(path, wait, times)
    mine = _Lease(owner=secrets.token_hex(8), counter=0, boot=_boot(), process=_process(os.getpid()))
    _write(path, mine)
    _held.add(mine.owner)
    over = threading.Event()
    thread = threading.Thread(target=_raise, args=(path, mine, over, times.raised), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        _held.discard(mine.owner)
        with suppress(HushcountError, OSError):
            if (left := _read(path)) is not None and left.owner == mine.owner:
                storage.remove(path)


def _await(path: str, wait: bool, times: Patience) -> None:
    """Return when nobody holds the lease; AnotherRun: its counter moved, and nobody is to wait."""
    seen, since = _read(path), time.monotonic()
    while seen is not None and not _is_gone(seen):
        if _is_alive(seen) and not wait:
            raise _busy(path)
        time.sleep(times.look)
        now = _read(path)
        if now is None:
            return
        if now != seen:
            if not wait:
                raise _busy(path)
            seen, since = now, time.monotonic()
        elif time.monotonic() - since >= times.still:
            return


def _busy(path: str) -> AnotherRun:
    return AnotherRun(
        f"another run is at work, by its lease {path}: nothing was done; --wait waits for its end, and whoever knows "
        "that no run is at work may delete the file"
    )


def _raise(path: str, lease: _Lease, over: threading.Event, seconds: float) -> None:
    """Raise the counter until the block is over, or another run took over; a store that is away is tried again."""
    counter = lease.counter
    while not over.wait(seconds):
        with suppress(HushcountError, OSError):
            left = _read(path)
            if left is not None and left.owner != lease.owner:
                return
            counter += 1
            _write(path, lease.model_copy(update={"counter": counter}))


def _is_gone(lease: _Lease) -> bool:
    """Return whether a lease is of a process of this machine that has ended."""
    return _is_here(lease) and not _is_alive(lease)


def _is_alive(lease: _Lease) -> bool:
    """Return whether a lease is of a process that is at work on this machine.

    One that this process could not remove when its block was over, because the store was away, is not.
    """
    number = lease.process.partition("-")[0]
    if not _is_here(lease) or not number.isdecimal() or _process(int(number)) != lease.process:
        return False
    return int(number) != os.getpid() or lease.owner in _held


def _is_here(lease: _Lease) -> bool:
    return bool(lease.boot) and lease.boot == _boot()


def _boot() -> str:
    """Return what names this start of this machine, and the processes that this one sees; empty: nothing does."""
    try:
        return f"{_BOOT.read_text().strip()}-{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _process(number: int) -> str:
    """Return the number of a process and when it began; empty: there is no such process, or nobody can tell."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return f"{number}-{fields[19]}"


def _read(path: str) -> _Lease | None:
    """Return the lease that is held; None: there is none, or a file that is not one."""
    data = storage.read_if_there(path, SETTINGS_BYTES)
    if data is None:
        return None
    try:
        return parse_model(_Lease, data, path)
    except FormatError:
        return None


def _write(path: str, lease: _Lease) -> None:
    storage.write_whole(path, [lease.model_dump_json().encode()])
