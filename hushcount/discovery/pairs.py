"""Discovery reports: a sealed pair of a value's hash and the separately sealed value (docs/mathematics.md 6).

    report = sealed to aux_server( binding | hash of the value | sealed to analyzer( binding | pad(value) ) )

The auxiliary server counts equal pairs and cannot open the value. The analyzer sees a value only after its bin is kept.
The inner box depends on the value alone, so all clients with one value send the same bytes. Therefore the release does
not tell who sent the value, or how many clients sent the value (docs/adr/0005).

The name of a value is its hash and the key of its inner box, so equal values have equal names. For a kept bin the
auxiliary server releases the pair and, in a campaign with counts, the noisy count.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Octets
from hushcount.errors import UsageError
from hushcount.items import MOST_ITEM_BYTES
from hushcount.randomness import SystemWords
from hushcount.wire.sealing import SEAL_BYTES

HASH_BYTES = 32
_LENGTH = struct.Struct("<H")
_NOTHING = 0xFFFF
MAX_VALUE_BYTES = MOST_ITEM_BYTES


@dataclass(frozen=True)
class DiscoveryFormat:
    """The layout of a campaign's discovery reports; the length of a report does not depend on its value.

    Args:
        binding: 16 bytes that bind a report to its campaign.
        hash_key: 32 bytes, random for each campaign; empty if names come from an evaluator, or if the key was redacted.
        max_value_bytes: the longest value, in UTF-8 bytes, 1..4096.
    """

    binding: bytes
    hash_key: bytes
    max_value_bytes: int

    def hash(self, value: str) -> bytes:
        """Return the keyed hash of a value: BLAKE2b, 256 bits, of binding and value, under the campaign's hash key.

        The hash is cryptographic, because a client that finds two strings with the same hash could merge the bins of
        these strings.
        """
        return hashlib.blake2b(self.input(value), digest_size=HASH_BYTES, key=self.hash_key).digest()

    def input(self, value: str) -> bytes:
        """Return the input of the evaluator's pseudorandom function: the binding and the value."""
        return self.binding + value.encode()

    def require_length(self, value: str | None) -> None:
        """Raise UsageError if the value is too long; the message has the length, not the value."""
        length = 0 if value is None else len(value.encode())
        if length > self.max_value_bytes:
            raise UsageError(f"the value has {length} UTF-8 bytes, must have at most {self.max_value_bytes}")

    def pad(self, value: str | None) -> bytes:
        """Return the value padded to one length: its length, its bytes, zeros; None means "nothing to discover"."""
        self.require_length(value)
        raw = b"" if value is None else value.encode()
        return _LENGTH.pack(_NOTHING if value is None else len(raw)) + raw.ljust(self.max_value_bytes, b"\0")

    def unpad(self, padded: bytes) -> str | None:
        """Return the value, or None for "nothing to discover"; ValueError if `padded` is not a padded value."""
        if len(padded) != _LENGTH.size + self.max_value_bytes:
            raise ValueError("not a padded value of this campaign")
        (length,), body = _LENGTH.unpack(padded[: _LENGTH.size]), padded[_LENGTH.size :]
        used = 0 if length == _NOTHING else length
        if used > self.max_value_bytes or any(body[used:]):
            raise ValueError("not a padded value of this campaign")
        return None if length == _NOTHING else body[:used].decode()

    @property
    def sealed_value_bytes(self) -> int:
        """Bytes of the inner layer: binding and padded value, sealed to the analyzer."""
        return len(self.binding) + _LENGTH.size + self.max_value_bytes + SEAL_BYTES

    @property
    def pair_bytes(self) -> int:
        """Bytes of a pair: hash and sealed value."""
        return HASH_BYTES + self.sealed_value_bytes

    @property
    def plain_bytes(self) -> int:
        """Plain bytes of the outer layer: binding and pair."""
        return len(self.binding) + self.pair_bytes

    @property
    def sealed_bytes(self) -> int:
        """Bytes of a whole discovery report."""
        return self.plain_bytes + SEAL_BYTES


COUNT_BYTES = 8


def released_bytes(form: DiscoveryFormat, counts: bool) -> int:
    """Return the length of a released record."""
    return form.pair_bytes + (COUNT_BYTES if counts else 0)


def join_released(pairs: Octets, shown: npt.NDArray[np.int64] | None) -> Octets:
    """Return uint8[n, L], the released records: uint8[n, P] pairs and, in a campaign with counts, int64[n] counts."""
    if shown is None:
        return pairs
    counts = np.ascontiguousarray(shown, dtype="<i8").view(np.uint8).reshape(len(shown), COUNT_BYTES)
    return np.concatenate([pairs, counts], axis=1)


def split_released(record: bytes, form: DiscoveryFormat, counts: bool) -> tuple[bytes, int | None]:
    """Return a record's pair and the shown count of the bin, which is None in a campaign without counts.

    Raises:
        ValueError: the record does not have the length of this campaign's records.
    """
    if len(record) != released_bytes(form, counts):
        raise ValueError(f"the record has {len(record)} bytes, must have {released_bytes(form, counts)}")
    pair, shown = record[: form.pair_bytes], record[form.pair_bytes :]
    return pair, int.from_bytes(shown, "little", signed=True) if counts else None


_KEY_BYTES = 32


@dataclass(frozen=True)
class Name:
    """The hash and the key of a value, which are the same for all clients with this value.

    Attributes:
        hash: 32 bytes, by which the auxiliary server counts the value.
        box_key: 32 bytes, the key of the inner box (`Sealer.seal_alike`).
    """

    hash: bytes
    box_key: bytes


def keyed_name(form: DiscoveryFormat, value: str) -> Name:
    """Return the name of a value under the campaign's hash key; whoever has a client's campaign file can compute it."""
    return Name(form.hash(value), form.hash_key)


def name_of(output: bytes) -> Name:
    """Return the name from this output of the evaluator's function; nobody can compute it without an evaluation.

    Hash and box key both come from the output. If the box key were public, anyone could check a guessed value against
    the inner box.
    """
    return Name(*(_derived(output, part) for part in (b"bin hash", b"box key")))


def blank_name() -> Name:
    """Return a random name for "nothing to discover"; no other report has the same name."""
    fresh = SystemWords().words((HASH_BYTES + _KEY_BYTES) // 8).tobytes()
    return Name(fresh[:HASH_BYTES], fresh[HASH_BYTES:])


def _derived(output: bytes, part: bytes) -> bytes:
    return hashlib.blake2b(b"", digest_size=32, key=output, person=part).digest()
