"""The client's memory: a value has the same answer throughout an epoch, so that repeated reports reveal nothing more.

Without a memory, the noise in the reports of a client that reports a value repeatedly averages out (docs/adr/0010).
With a memory, the client draws the plain answer to a value once for each campaign and epoch, and seals this answer anew
for each report.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import Field

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import HushcountError, UsageError
from hushcount.formats.client_files import KeptValue
from hushcount.formats.models import Part, text_of
from hushcount.formats.reading import TABLE_BYTES
from hushcount.randomness import SystemWords, hex_seed

KEY_BYTES = 32
SALT_BYTES, NAME_END = 16, 32
"""A kept answer begins with a salt of SALT_BYTES; the salted name of its item follows, up to byte NAME_END."""


def place_key(campaign: Campaign, place: int) -> bytes:
    """Return the key under which the answer number `place` is stored in one campaign and epoch; numbers begin at 0."""
    named = campaign.fingerprint + place.to_bytes(8, "little")
    return hashlib.blake2b(named, digest_size=KEY_BYTES, person=b"reports").digest()


def item_name(item: int, salt: bytes) -> bytes:
    """Return the salted name of an answer's item; the same item has different names in different memories."""
    return hashlib.blake2b(item.to_bytes(8, "little"), digest_size=NAME_END - SALT_BYTES, salt=salt).digest()


class Memory(Protocol):
    """A store of answers, each under a key of 32 bytes; threads may share it."""

    def get(self, key: bytes) -> bytes | None:
        """Return the answer that is stored under a key, or None."""
        ...

    def keep(self, key: bytes, answer: bytes) -> bytes:
        """Store an answer unless the key already has an answer; return the key's answer once it is stored durably.

        Raises:
            HushcountError: the answer cannot be stored. The caller must then not send the answer, because a client that
                forgot an answer that it sent would draw another answer the next time.
        """
        ...

    def forget(self) -> None:
        """Delete all answers permanently; HushcountError if this fails. New answers are charged to the budget."""
        ...


@dataclass(frozen=True, eq=False)
class ClientMemory:
    """Answers of one client, in one file of mode 0600 on the device; each new answer rewrites the file.

    The file has a random key, under which the keys of answers are hashed once more. So the file names no value, but
    anyone who reads the file can test a guessed value, and sees answers that were or will be sent. An app must protect
    the file like other private data that it keeps of its user.

    A damaged file is refused and never replaced by an empty file, because with an empty file the client would draw new
    answers to old values. The client does not notice that the file was deleted, but the budget charges the epoch's
    answers again. The file may be deleted when the epochs of its answers are over.

    Args:
        path: path of the file. The first answer makes the file, and beside it a file `.lock`, if the system can lock
            files. On systems that cannot lock files, only one process at a time may use the file. None: the answers are
            lost when the process ends, which is only for tests, and for a process that lives as long as its campaign.
        limit: most answers, of all campaigns and epochs together. When the limit is reached, a new value in an epoch
            that has answers gets the last answer of the epoch. An epoch without answers gets no first answer once the
            limit is reached, so all values of this epoch are refused.
    """

    path: Path | None = None
    limit: int = 1000
    _kept: KeptValue[_Kept] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.limit, int) or self.limit < 1:
            raise UsageError(f"limit is {self.limit!r}, must be a whole number of answers, at least 1")
        cure = "restore it; without it, values get new answers, which spend their budget again"
        object.__setattr__(self, "_kept", KeptValue(_Kept(), self.path, "memory", cure, TABLE_BYTES))

    def get(self, key: bytes) -> bytes | None:
        kept = self._kept.read()
        answer = kept.answers.get(kept.name(key))
        return None if answer is None else bytes.fromhex(answer)

    def keep(self, key: bytes, answer: bytes) -> bytes:
        def step(before: _Kept) -> tuple[_Kept, bytes]:
            kept = before if before.key else before.model_copy(update={"key": hex_seed(SystemWords())})
            name, number = kept.name(key), len(kept.answers)
            if name in kept.answers:
                return before, bytes.fromhex(kept.answers[name])
            if number >= self.limit:
                raise HushcountError(
                    f"the memory holds {number} answers, its limit: delete it when its epochs are over, or give a "
                    "larger limit"
                )
            return kept.model_copy(update={"answers": {**kept.answers, name: answer.hex()}}), answer

        return self._kept.change(step)

    def forget(self) -> None:
        self._kept.remove()


class _Kept(Part):
    """The content of a memory's file: its own key (empty before the first answer), and answers by hashed key."""

    format: Literal[1] = 1
    key: Annotated[str, text_of(r"^([0-9a-f]{64})?$", "must be 64 hexadecimal digits, in lower case")] = ""
    answers: dict[str, Annotated[str, text_of(r"^([0-9a-f]{2})*$", "must be hexadecimal digits")]] = Field(
        default_factory=dict
    )

    def name(self, key: bytes) -> str:
        own = bytes.fromhex(self.key)
        return hashlib.blake2b(key, key=own, digest_size=KEY_BYTES, person=b"client memory").hexdigest()
