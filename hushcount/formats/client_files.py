"""Small files of one client: readable by its user alone, replaced whole, changed by one process at a time."""

from __future__ import annotations

import os
import stat
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hushcount.errors import HushcountError, UsageError
from hushcount.formats.reading import open_regular, take
from hushcount.formats.whole_files import sync, write_over


class ThreadLock:
    """A lock among the threads of a process; it is free in a process that is forked while a thread holds it."""

    def __init__(self) -> None:
        self.renew()
        _LOCKS.add(self)

    def renew(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()


_LOCKS: weakref.WeakSet[ThreadLock] = weakref.WeakSet()


def _renew_locks() -> None:
    for lock in _LOCKS:
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def read_private(path: Path, what: str, most: int) -> bytes | None:
    """Return the bytes of a file, None if there is none; `what` it is, for the errors.

    Raises:
        UsageError: it cannot be read, or others than its user can read it.
        FormatError: it has more than `most` bytes.
    """
    try:
        with open_regular(path) as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            if os.name == "posix" and mode & 0o077:
                raise UsageError(f"{what} file {path} has mode {mode:04o}, must be 0600: chmod 600 {path}")
            return take(stream, most, f"{what} file {path}")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {what} file {path}: {error.strerror}") from None


def write_private(path: Path, what: str, text: str) -> None:
    """Replace a file, mode 0600; HushcountError if that fails: what it would have kept may not be sent."""
    try:
        write_over(path, text, 0o600)
        # Also the new file's name: after a power cut the old file would permit anew what was sent.
        if os.name == "posix":
            sync(path.parent)
    except OSError as error:
        raise _cannot_write(path, what, error) from None


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Keep other processes out while a file is read and replaced, on systems that can lock files."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _cannot_write(path, what, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        # A process that was forked meanwhile has the file open too: closing it here would not release the lock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _cannot_write(path: Path, what: str, error: OSError) -> HushcountError:
    return HushcountError(f"cannot write {what} file {path}: {error.strerror}, nothing may be sent")
