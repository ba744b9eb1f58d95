"""The client's memory: the same value is answered alike within a campaign, so that repetition tells nothing more.

Without it, a client that reports a value again and again averages its own noise away (docs/adr/0010). With it, the
plain answer to a value is drawn once for each campaign and epoch, kept, and sealed afresh each time that it is sent.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import stat
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.formats.reading import TABLE_BYTES, open_regular, parse_object, take
from hushcount.formats.whole_files import sync, write_over
from hushcount.randomness import SystemWords

KEY_BYTES = 32
_FORMAT = 1


class Memory(Protocol):
    """Answers by a key of 32 bytes; both methods may be called by many threads."""

    def get(self, key: bytes) -> bytes | None:
        """Return the answer under a key, or None."""
        ...

    def keep(self, key: bytes, answer: bytes) -> bytes:
        """Store an answer unless the key holds one, and return what it holds now, when that is stored for good.

        Raises:
            HushcountError: it cannot be stored. The caller must then not send it: an answer that is sent and
                forgotten is drawn anew the next time.
        """
        ...


class ThreadLock:
    """A lock among the threads of a process; in one that is forked while a thread holds it, it is free."""

    def __init__(self) -> None:
        self.renew()
        _LOCKS.add(self)

    def renew(self) -> None:
        """Let go of what a thread holds that is not in this process."""
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


@dataclass(frozen=True, eq=False)
class ProcessMemory:
    """Answers in this process's memory: for tests, and for a process that lives as long as its campaign.

    Args:
        limit: most answers, of all campaigns and epochs together, see FileMemory.
    """

    limit: int = 1000
    _answers: dict[bytes, bytes] = field(default_factory=dict, repr=False)
    _lock: ThreadLock = field(default_factory=ThreadLock, repr=False)

    def __post_init__(self) -> None:
        _require_limit(self.limit)

    def get(self, key: bytes) -> bytes | None:
        return self._answers.get(key)

    def keep(self, key: bytes, answer: bytes) -> bytes:
        with self._lock:
            if key not in self._answers:
                _require_room(len(self._answers), self.limit)
                self._answers[key] = answer
            return self._answers[key]


@dataclass(frozen=True, eq=False)
class FileMemory:
    """Answers in one file of the device, mode 0600, replaced whole with every new answer.

    Keys are hashed once more under a random key that is drawn with the file and lies in it. So the file names no value,
    but whoever reads it can test a value that it guesses, and sees answers that were, or will be, sent: it is as
    private as the rest of what the app keeps of its user.

    A file that is damaged is refused, never begun anew: new answers to old values are what this is there to prevent.
    A file that was deleted is not noticed. It may be deleted when the campaign's epoch is over.

    Args:
        path: of the file, made with the first answer; beside it a file `.lock`, where the system can lock files.
            Elsewhere one process at a time may use it.
        limit: most answers, of all campaigns and epochs together. In an epoch that has one, a further value is then
            answered as the last of them; an epoch that has none cannot begin, and every value of it is refused.
    """

    path: Path
    limit: int = 1000
    _lock: ThreadLock = field(default_factory=ThreadLock, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, os.PathLike)) or not os.fspath(self.path):
            raise UsageError(f"path is {self.path!r}, must name the file of the memory, as in FileMemory('memory.bin')")
        object.__setattr__(self, "path", Path(self.path))
        _require_limit(self.limit)

    def get(self, key: bytes) -> bytes | None:
        held = _read(self.path)
        return None if held is None else held.answers.get(held.name(key))

    def keep(self, key: bytes, answer: bytes) -> bytes:
        with self._lock, locked(self.path, "memory"):
            held = _read(self.path) or _Held(SystemWords().words(4).tobytes(), {})
            name = held.name(key)
            if name not in held.answers:
                _require_room(len(held.answers), self.limit)
                held.answers[name] = answer
                _write(self.path, held)
            return held.answers[name]


def long_run_epsilon(epsilon: float, values: int) -> float:
    """Return the local epsilon of all that a client with a memory ever sends in a campaign's epoch: `k epsilon`.

    Two histories of a client are told apart by its answers alone, however often it sends each: one independent answer
    for each of at most k distinct values. The analyzer may see besides which of its reports are alike.

    Args:
        epsilon: of one report, in nats.
        values: k, distinct values over the epoch, at least 0; a client that never changes has 1.
    """
    if not (epsilon >= 0.0 and math.isfinite(epsilon)):
        raise ValueError(f"epsilon is {epsilon}, must be finite and at least 0")
    if values < 0:
        raise ValueError(f"values is {values}, must be at least 0")
    return epsilon * values


@dataclass(frozen=True)
class _Held:
    """What a file holds: its own key, and answers by hashed key."""

    secret: bytes
    answers: dict[str, bytes]

    def name(self, key: bytes) -> str:
        return hashlib.blake2b(key, key=self.secret, digest_size=KEY_BYTES, person=b"client memory").hexdigest()

    def digest(self) -> str:
        listed = "".join(f"{name}={answer.hex()};" for name, answer in sorted(self.answers.items()))
        return hashlib.blake2b(listed.encode(), key=self.secret, digest_size=16).hexdigest()


def _read(path: Path) -> _Held | None:
    """Return what the file holds, or None where there is no file."""
    try:
        with open_regular(path) as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            raw = take(stream, TABLE_BYTES, f"memory file {path}")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read memory file {path}: {error.strerror}") from None
    if os.name == "posix" and mode & 0o077:
        raise UsageError(f"memory file {path} has mode {mode:04o}, must be 0600: chmod 600 {path}")
    try:
        data = parse_object(raw, f"memory file {path}")
        answers = {str(name): bytes.fromhex(answer) for name, answer in data["answers"].items()}
        held = _Held(bytes.fromhex(data["key"]), answers)
        whole = data["format"] == _FORMAT and len(held.secret) == KEY_BYTES and data["digest"] == held.digest()
    except (ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise FormatError(
            f"memory file {path} is damaged or of another version: restore it, because answers drawn anew to values "
            "that were answered before would spend their budget again"
        )
    return held


def _write(path: Path, held: _Held) -> None:
    answers = {name: answer.hex() for name, answer in held.answers.items()}
    data = {"format": _FORMAT, "key": held.secret.hex(), "answers": answers, "digest": held.digest()}
    try:
        write_over(path, json.dumps(data) + "\n", 0o600)
        # The new file's name too: after a power cut the old one would answer anew what was sent.
        if os.name == "posix":
            sync(path.parent)
    except OSError as error:
        raise HushcountError(f"cannot write memory file {path}: {error.strerror}, nothing may be sent") from None


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Keep other processes out while a file of a client is read and replaced; `what` names it in the error."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise HushcountError(f"cannot write {what} file {path}: {error.strerror}, nothing may be sent") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        # A process that was forked meanwhile has the file open too: closing it here alone would not let go.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _require_limit(limit: int) -> None:
    if not isinstance(limit, int) or limit < 1:
        raise UsageError(f"limit is {limit!r}, must be a whole number of answers, at least 1")


def _require_room(answers: int, limit: int) -> None:
    if answers >= limit:
        raise HushcountError(
            f"the memory holds {answers} answers, its limit: delete it when its epochs are over, or give a larger limit"
        )
