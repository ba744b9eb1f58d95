"""The client's memory: it answers the same value alike within a campaign, so that repetition tells nothing more.

Without it, a client that reports a value again and again averages its own noise away (docs/adr/0010). With it, the
client draws the plain answer to a value once for each campaign and epoch, and seals it afresh each time it sends it.
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
class ClientMemory:
    """Answers of one client, in one file of the device, mode 0600, which every new answer replaces.

    The file hashes keys once more, under a random key of its own that is in it. So it names no value, but whoever reads
    it can test a guessed value, and sees answers that were or will be sent: it is as private as the rest of what the
    app keeps of its user.

    A damaged file is refused, never begun anew: new answers to old values are what it prevents. A deleted file is not
    noticed, but a budget charges the epoch's answers anew. It may be deleted when the campaign's epoch is over.

    Args:
        path: of the file, made with the first answer; beside it a file `.lock`, if the system can lock files. On other
            systems one process at a time may use it. None: the answers end with the process, for tests and a process
            that lives as long as its campaign.
        limit: most answers, of all campaigns and epochs together. An epoch with an answer then answers a further value
            as the last of them; an epoch without any cannot begin, and every value of it is refused.
    """

    path: Path | None = None
    limit: int = 1000
    _kept: KeptValue[_Kept] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.limit, int) or self.limit < 1:
            raise UsageError(f"limit is {self.limit!r}, must be a whole number of answers, at least 1")
        cure = "restore it, because new answers to values that were answered before would spend their budget again"
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
    """The content of a file: its own key, empty before the first answer, and answers by hashed key."""

    format: Literal[1] = 1
    key: Annotated[str, text_of(r"^([0-9a-f]{64})?$", "must be 64 hexadecimal digits, in lower case")] = ""
    answers: dict[str, Annotated[str, text_of(r"^([0-9a-f]{2})*$", "must be hexadecimal digits")]] = Field(
        default_factory=dict
    )

    def name(self, key: bytes) -> str:
        own = bytes.fromhex(self.key)
        return hashlib.blake2b(key, key=own, digest_size=KEY_BYTES, person=b"client memory").hexdigest()
