"""A draw: what a party draws by a key of its own, so that each repetition for the same input draws the same."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from nacl.bindings import randombytes_buf_deterministic

from hushcount.arrays import UInt64Array


class Derives(Protocol):
    """A private key, from which other keys are derived."""

    def derived(self, context: bytes) -> bytes:
        """Return 32 bytes that look random to everyone without the key."""
        ...


class Reference(Protocol):
    """The place of a private key, such as `keys.directories.KeyReference`."""

    def read_any(self) -> Derives:
        """Open the key, of whatever role."""
        ...


@dataclass(frozen=True)
class Draw:
    """The inputs that determine a draw. A job graph may contain these inputs, because they hold no secret.

    Attributes:
        key: reference to the party's key.
        context: digest of all other inputs of the draw.
    """

    key: Reference
    context: bytes

    def opened(self) -> bytes:
        """Open the key, and return the 32 secret bytes of this draw."""
        return self.key.read_any().derived(self.context)


@dataclass
class DerivedWords:
    """Words that a draw's secret and a purpose determine; to everyone without the secret they look random.

    Args:
        secret: 32 bytes, of one draw.
        purpose: another purpose gives other words.
    """

    secret: bytes = field(repr=False)
    purpose: bytes
    _taken: int = field(default=0, init=False)

    def words(self, count: int) -> UInt64Array:
        """Return uint64[count], the next words."""
        self._taken += 1
        block = self._taken.to_bytes(8, "little") + self.purpose
        seed = hashlib.blake2b(block, key=self.secret, digest_size=32, person=b"drawn words").digest()
        return np.frombuffer(bytearray(randombytes_buf_deterministic(8 * count, seed)), dtype="<u8").astype(
            np.uint64, copy=False
        )
