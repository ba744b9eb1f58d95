"""Small files of one client: readable only by its user, replaced as a whole, changed by one process after another."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Generic, TypeVar

from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.formats.models import Part
from hushcount.formats.reading import open_regular, parse_model, take
from hushcount.formats.whole_files import sync, write_over

Value = TypeVar("Value", bound=Part)
Result = TypeVar("Result")


class ThreadLock:
    """A lock among the threads of a process; in a forked process the lock is free, even if a thread held it."""

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


def one_name(path: Path | str) -> Path:
    """Return a file's path without symbolic links, because a new file at a link's path would replace only the link."""
    return Path(os.path.realpath(path))


def read_private(path: Path, what: str, most: int) -> bytes | None:
    """Return the bytes of a file, or None if the file does not exist; error messages call the file `what`.

    Raises:
        UsageError: the file cannot be read, or other users have access to it.
        FormatError: the file has more than `most` bytes.
    """
    return read_private_by(path, what, lambda stream: take(stream, most, f"{what} file {path}"))


def read_private_by(path: Path, what: str, read: Callable[[IO[bytes]], Result]) -> Result | None:
    """Return the result of `read` for a file, or None if the file does not exist; UsageError as in `read_private`."""
    try:
        with open_regular(path) as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            if os.name == "posix" and mode & 0o077:
                raise UsageError(f"{what} file {path} has mode {mode:04o}, must be 0600: chmod 600 {path}")
            return read(stream)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {what} file {path}: {error.strerror}") from None


def write_private(path: Path, what: str, text: str) -> None:
    """Replace a file, mode 0600; after a HushcountError nothing may be sent that the file should record."""
    try:
        write_over(path, text, 0o600)
        # The directory is synced too: if a power cut restored the old file, the client could repeat what it already
        # sent.
        if os.name == "posix":
            sync(path.parent)
    except OSError as error:
        raise _cannot_write(path, what, error) from None


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Lock out other processes while a file is read and replaced, on systems that can lock files."""
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
        # A process that was forked meanwhile also has the lock file open, so closing the file would not release the
        # lock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _cannot_write(path: Path, what: str, error: OSError) -> HushcountError:
    return HushcountError(f"cannot write {what} file {path}: {error.strerror}, nothing may be sent")


@dataclass(frozen=True, eq=False)
class KeptValue(Generic[Value]):
    """A value that threads change one after another; with a file, all processes that name the file share the value.

    A forked process continues with the same file or, without a file, with a copy of the value.

    Attributes:
        empty: the value before the first change.
        path: a file of mode 0600, made at the first change; a lock file `.lock` is beside it if the system can lock
            files. If somebody removes the file, the value becomes `empty` without an error. None: the value is lost
            when the process ends.
        what: the value's name, for errors.
        cure: how to repair a damaged file, for errors.
        most: longest file, bytes.
    """

    empty: Value
    path: Path | None
    what: str
    cure: str
    most: int = 1 << 20
    _last: list[Value] = field(default_factory=list, repr=False)
    _lock: ThreadLock = field(default_factory=ThreadLock, repr=False)

    def __post_init__(self) -> None:
        if self.path is not None and (not isinstance(self.path, str | os.PathLike) or not os.fspath(self.path)):
            raise UsageError(f"path is {self.path!r}, must name the file of the {self.what}, as in '{self.what}.json'")
        if self.path is not None:
            object.__setattr__(self, "path", one_name(self.path))

    def read(self) -> Value:
        """Return the value; FormatError if the file is damaged, UsageError if the file cannot be read."""
        if self.path is None:
            return self._last[0] if self._last else self.empty
        path = Path(self.path)
        try:
            raw = read_private(path, self.what, self.most)
            if raw is None:
                return self.empty
            line, _, _ = raw.partition(b"\n")
            if raw != _with_digest(line):
                raise FormatError("its digest does not match")
            return parse_model(type(self.empty), line, "the file")
        except FormatError:
            raise FormatError(f"{self.what} file {path} is damaged or of another version: {self.cure}") from None

    def change(self, step: Callable[[Value], tuple[Value, Result]]) -> Result:
        """Replace the value by the one that `step` returns, and return the result of `step` after the value is stored.

        Nothing is written if `step` returns the same value object.

        Raises:
            HushcountError: the file cannot be read or written. Errors of `step` pass through. After any error the value
                is unchanged.
        """
        with self._lock:
            if self.path is None:
                value, result = step(self.read())
                self._last[:] = [value]
                return result
            path = Path(self.path)
            with locked(path, self.what):
                before = self.read()
                value, result = step(before)
                if value is before:
                    return result
                kept = _with_digest(value.model_dump_json().encode())
                if len(kept) > self.most:
                    raise HushcountError(
                        f"{self.what} file {path} would have {len(kept):,} bytes, must have at most {self.most:,}: "
                        "use a file for fewer campaigns"
                    )
                write_private(path, self.what, kept.decode())
                return result

    def remove(self) -> None:
        """Reset the value to `empty`, and remove the file if it exists; HushcountError if it cannot be removed."""
        with self._lock:
            self._last.clear()
            if self.path is not None:
                path = Path(self.path)
                with locked(path, self.what):
                    try:
                        path.unlink(missing_ok=True)
                        if os.name == "posix":
                            sync(path.parent)
                    except OSError as error:
                        raise HushcountError(
                            f"cannot remove {self.what} file {path}: {error.strerror}, remove it by hand"
                        ) from None


def _with_digest(line: bytes) -> bytes:
    """Return the content of a file: a line and, in a second line, its digest, so that damage is detected."""
    return b"%s\n%s\n" % (line, hashlib.blake2b(line, digest_size=16).hexdigest().encode())
