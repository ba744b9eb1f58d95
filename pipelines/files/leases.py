"""A lease tells other processes that its holder does some work, so that they do not do the same work.

No result depends on a lease. A lease is a file with a counter, which its holder raises every 20 seconds. Another
process takes the lease over if, by its own timer, the counter has not moved for three minutes. A process on the
holder's machine takes the lease over at once if the holder's process has ended. It is always safe to delete a lease.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from hushcount.clock import MACHINE
from hushcount.errors import FormatError, HushcountError
from hushcount.formats.models import Hex8, Hex32, Part
from hushcount.formats.reading import SETTINGS_BYTES, parse_model
from pipelines.files import storage

MOST_KINDS = 2048
_RAISED_SECONDS = 20.0
_STILL_SECONDS = 180.0
_LOOK_SECONDS = 1.0
_ASKED_SECONDS = 3600.0
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_held: set[str] = set()
"""Owners of the leases that this process holds."""


class Lease(Part):
    """The content of a lease file.

    Attributes:
        carries: digests of the kinds of jobs that the holder carries out for others.
        boot: ids of the machine's boot and of the holder's process namespace; empty: unknown.
        process: number and start time of the holder's process; empty: unknown.
    """

    owner: Hex8
    counter: int = Field(ge=0)
    carries: tuple[Hex32, ...] = Field(default=(), max_length=MOST_KINDS)
    boot: str = Field(default="", max_length=64)
    process: str = Field(default="", max_length=64)


@dataclass(frozen=True)
class Patience:
    """The times of leases, in seconds.

    `raised`: from one raise of a counter to the next; `still`: until a lease whose counter did not change is free;
    `look`: from one read of a lease to the next; `asked`: for a holder to do what it was asked.
    """

    raised: float = _RAISED_SECONDS
    still: float = _STILL_SECONDS
    look: float = _LOOK_SECONDS
    asked: float = _ASKED_SECONDS


class Seen:
    """A lease that another process may hold; `look` reads its file again.

    Attributes:
        lease: the lease as it was last read; None: nobody held the lease.
    """

    def __init__(self, path: str, times: Patience) -> None:
        self._path, self._times = path, times
        self.lease, self._since = _read(path), MACHINE.steady()

    @property
    def is_held(self) -> bool:
        """Whether the holder may be at work: the counter moved within `still` seconds, and its process did not end."""
        still = MACHINE.steady() - self._since >= self._times.still
        return self.lease is not None and not still and not _is_gone(self.lease)

    def look(self) -> bool:
        """Wait and read the lease again; return whether its counter or its holder changed."""
        time.sleep(self._times.look)
        before, self.lease = self.lease, _read(self._path)
        if self.lease == before:
            return False
        self._since = MACHINE.steady()
        return self.lease is not None


@contextmanager
def held(
    path: str,
    busy: Callable[[str], HushcountError],
    *,
    owner: str | None = None,
    wait: bool = False,
    carries: Collection[str] = (),
    patience: Patience | None = None,
) -> Iterator[None]:
    """Hold a lease while a block runs.

    Args:
        busy: makes the error that is raised if another process holds the lease and `wait` is false.
        owner: id of the holder; None: a new random id.
        wait: whether to wait until nobody holds the lease.

    Raises:
        HushcountError: another process holds the lease and `wait` is false; `busy` makes this error.
        StorageError, OSError: the store cannot be used.
    """
    times = patience or Patience()
    _await(path, busy, wait, times)
    mine = Lease(
        owner=owner or secrets.token_hex(8),
        counter=0,
        carries=tuple(carries),
        boot=_boot(),
        process=_process(os.getpid()),
    )
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
            remove(path, mine.owner)


def owner_of(path: str) -> str | None:
    """Return the id of a lease's holder; None: there is no lease."""
    return None if (left := _read(path)) is None else left.owner


def remove(path: str, owner: str) -> None:
    """Remove the lease that `owner` held, unless another holder took the lease over."""
    if owner_of(path) == owner:
        storage.remove(path)


def _await(path: str, busy: Callable[[str], HushcountError], wait: bool, times: Patience) -> None:
    """Wait until nobody holds the lease; without `wait`, raise the error of `busy` once a holder is seen at work."""
    seen = Seen(path, times)
    while seen.is_held:
        if not wait and seen.lease is not None and _is_alive(seen.lease):
            raise busy(path)
        if seen.look() and not wait:
            raise busy(path)


def _raise(path: str, lease: Lease, over: threading.Event, seconds: float) -> None:
    """Raise the counter until `over` is set or another run took the lease over; after a failed write, try again."""
    counter = lease.counter
    while not over.wait(seconds):
        with suppress(HushcountError, OSError):
            left = _read(path)
            if left is not None and left.owner != lease.owner:
                return
            counter += 1
            _write(path, lease.model_copy(update={"counter": counter}))


def _is_gone(lease: Lease) -> bool:
    """Return whether the lease's holder was a process of this machine that has ended."""
    return _is_here(lease) and not _is_alive(lease)


def _is_alive(lease: Lease) -> bool:
    """Return whether the lease's holder is a process that is at work on this machine.

    The result is false if this process held the lease and has finished its block, but could not remove the lease
    because the store was out of reach.
    """
    number = lease.process.partition("-")[0]
    if not _is_here(lease) or not number.isdecimal() or _process(int(number)) != lease.process:
        return False
    return int(number) != os.getpid() or lease.owner in _held


def _is_here(lease: Lease) -> bool:
    return bool(lease.boot) and lease.boot == _boot()


def _boot() -> str:
    """Return the ids of this boot of the machine and of this process namespace; empty: the system states no ids."""
    try:
        return f"{_BOOT.read_text().strip()}-{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _process(number: int) -> str:
    """Return number and start time of a process; empty: there is no such process, or the system does not state them."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return f"{number}-{fields[19]}"


def _read(path: str) -> Lease | None:
    """Return the lease in a file; None: the file does not exist or is not a lease."""
    try:
        data = storage.read_if_there(path, SETTINGS_BYTES)
        return None if data is None else parse_model(Lease, data, path)
    except FormatError:
        return None


def _write(path: str, lease: Lease) -> None:
    storage.write_whole(path, [lease.model_dump_json().encode()])
