"""Discovery reports: the sealed pair of a value's hash and the value sealed once more (docs/mathematics.md 6).

    report = sealed to aux_server( binding | hash of the value | sealed to analyzer( binding | pad(value) ) )

The auxiliary server counts equal pairs and cannot open the value; the analyzer sees a value only after it was kept.
The inner box is a function of the value alone: all clients' copies are the same bytes, so that the release does not
tell who sent the value, or how many did (docs/adr/0005).
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from hushcount.errors import UsageError
from hushcount.items import MOST_ITEM_BYTES
from hushcount.wire.sealing import SEAL_BYTES

HASH_BYTES = 32
_LENGTH = struct.Struct("<H")
_NOTHING = 0xFFFF
MAX_VALUE_BYTES = MOST_ITEM_BYTES


@dataclass(frozen=True)
class DiscoveryFormat:
    """The layout of a campaign's discovery reports; every one has the same length, whatever the value.

    Args:
        binding: 16 bytes that bind a report to its campaign.
        hash_key: 32 bytes, random for each campaign; empty where names are asked for, or withheld.
        max_value_bytes: the longest value, in UTF-8 bytes, 1..4096.
    """

    binding: bytes
    hash_key: bytes
    max_value_bytes: int

    def hash(self, value: str) -> bytes:
        """Return the keyed hash of a value: BLAKE2b, 256 bits, of binding and value, keyed by the campaign.

        Cryptographic, because a client that could make two strings collide would merge their bins.
        """
        return hashlib.blake2b(self.input(value), digest_size=HASH_BYTES, key=self.hash_key).digest()

    def input(self, value: str) -> bytes:
        """Return what the evaluator's pseudorandom function is applied to: the binding and the value."""
        return self.binding + value.encode()

    def require_length(self, value: str | None) -> None:
        """Raise UsageError if the value is too long; it names the length, not the value."""
        length = 0 if value is None else len(value.encode())
        if length > self.max_value_bytes:
            raise UsageError(f"the value has {length} UTF-8 bytes, must have at most {self.max_value_bytes}")

    def pad(self, value: str | None) -> bytes:
        """Return the value in one fixed length: length, bytes, zeros; None stands for "nothing to discover"."""
        self.require_length(value)
        raw = b"" if value is None else value.encode()
        return _LENGTH.pack(_NOTHING if value is None else len(raw)) + raw.ljust(self.max_value_bytes, b"\0")

    def unpad(self, padded: bytes) -> str | None:
        """Return the value, or None for "nothing to discover"; ValueError if this is not a padded value."""
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
