"""The client's memory: it answers the same value alike within a campaign, so that repetition tells nothing more.

Without it, a client that reports a value again and again averages its own noise away (docs/adr/0010). With it, the
client draws the plain answer to a value once for each campaign and epoch, and seals it afresh each time it sends it.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Protocol

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.formats.client_files import ThreadLock, locked, one_name, read_private, remove_private, write_private
from hushcount.formats.models import Hex32, Part, text_of
from hushcount.formats.reading import TABLE_BYTES, parse_model
from hushcount.randomness import SystemWords, hex_seed

KEY_BYTES = 32
SALT_BYTES, NAME_END = 16, 32
"""An answer that a client keeps begins with a salt and the salted name of its item."""


def place_key(campaign: Campaign, place: int) -> bytes:
    """Return the key of a place for an answer, of one campaign and epoch; the first takes place 0."""
    named = campaign.fingerprint + place.to_bytes(8, "little")
    return hashlib.blake2b(named, digest_size=KEY_BYTES, person=b"reports").digest()


def item_name(item: int, salt: bytes) -> bytes:
    """Return the salted name of the item of an answer: no two memories name an item alike."""
    return hashlib.blake2b(item.to_bytes(8, "little"), digest_size=NAME_END - SALT_BYTES, salt=salt).digest()


class Memory(Protocol):
    """Answers by a key of 32 bytes; many threads may call both methods."""

    def get(self, key: bytes) -> bytes | None:
        """Return the answer under a key, or None."""
        ...

    def keep(self, key: bytes, answer: bytes) -> bytes:
        """Store an answer unless the key has one, and return the key's answer once that is stored for good.

        Raises:
            HushcountError: it cannot be stored. The caller must then not send it: a client that forgets an answer
                that it sent draws another one the next time.
        """
        ...

    def forget(self) -> None:
        """Delete all answers, for good; HushcountError if that fails. The next ones are charged to the budget anew."""
        ...


@dataclass(frozen=True, eq=False)
class ProcessMemory:
    """Answers in this process's memory, for tests and a process that lives as long as its campaign; see FileMemory."""

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

    def forget(self) -> None:
        with self._lock:
            self._answers.clear()


@dataclass(frozen=True, eq=False)
class FileMemory:
    """Answers in one file of the device, mode 0600; every new answer replaces the whole file.

    The file hashes keys once more, under a random key of its own that is in it. So it names no value, but whoever reads
    it can test a guessed value, and sees answers that were or will be sent: it is as private as the rest of what the
    app keeps of its user.

    A damaged file is refused, never begun anew: new answers to old values are what it prevents. A deleted file is not
    noticed, but a budget charges the epoch's answers anew. It may be deleted when the campaign's epoch is over.

    Args:
        path: of the file, made with the first answer; beside it a file `.lock`, if the system can lock files. On other
            systems one process at a time may use it.
        limit: most answers, of all campaigns and epochs together. An epoch with an answer then answers a further value
            as the last of them; an epoch without any cannot begin, and every value of it is refused.
    """

    path: Path
    limit: int = 1000
    _lock: ThreadLock = field(default_factory=ThreadLock, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, os.PathLike)) or not os.fspath(self.path):
            raise UsageError(f"path is {self.path!r}, must name the file of the memory, as in FileMemory('memory.bin')")
        object.__setattr__(self, "path", one_name(self.path))
        _require_limit(self.limit)

    def get(self, key: bytes) -> bytes | None:
        kept = _read(self.path)
        answer = None if kept is None else kept.answers.get(kept.name(key))
        return None if answer is None else bytes.fromhex(answer)

    def keep(self, key: bytes, answer: bytes) -> bytes:
        with self._lock, locked(self.path, "memory"):
            kept = _read(self.path) or _Kept(format=1, key=hex_seed(SystemWords()), answers={}, digest="")
            name = kept.name(key)
            if name not in kept.answers:
                _require_room(len(kept.answers), self.limit)
                kept = kept.model_copy(update={"answers": {**kept.answers, name: answer.hex()}})
                kept = kept.model_copy(update={"digest": kept.computed_digest()})
                write_private(self.path, "memory", kept.model_dump_json() + "\n")
            return bytes.fromhex(kept.answers[name])

    def forget(self) -> None:
        with self._lock, locked(self.path, "memory"):
            remove_private(self.path, "memory")


class _Kept(Part):
    """The content of a file: its own key, and answers by hashed key."""

    format: Literal[1]
    key: Hex32
    answers: dict[str, Annotated[str, text_of(r"^([0-9a-f]{2})*$", "must be hexadecimal digits")]]
    digest: str

    def name(self, key: bytes) -> str:
        own = bytes.fromhex(self.key)
        return hashlib.blake2b(key, key=own, digest_size=KEY_BYTES, person=b"client memory").hexdigest()

    def computed_digest(self) -> str:
        listed = "".join(f"{name}={answer};" for name, answer in sorted(self.answers.items()))
        return hashlib.blake2b(listed.encode(), key=bytes.fromhex(self.key), digest_size=16).hexdigest()


def _read(path: Path) -> _Kept | None:
    raw = read_private(path, "memory", TABLE_BYTES)
    if raw is None:
        return None
    try:
        kept = parse_model(_Kept, raw, "the file")
    except FormatError:
        kept = None
    if kept is None or kept.digest != kept.computed_digest():
        raise FormatError(
            f"memory file {path} is damaged or of another version: restore it, because new answers to values that were "
            "answered before would spend their budget again"
        )
    return kept


def _require_limit(limit: int) -> None:
    if not isinstance(limit, int) or limit < 1:
        raise UsageError(f"limit is {limit!r}, must be a whole number of answers, at least 1")


def _require_room(answers: int, limit: int) -> None:
    if answers >= limit:
        raise HushcountError(
            f"the memory holds {answers} answers, its limit: delete it when its epochs are over, or give a larger limit"
        )
