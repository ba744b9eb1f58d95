"""The name of a value in a bin: its hash, and the key of its inner box. Equal values have equal names."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from hushcount.discovery.pairs import HASH_BYTES, DiscoveryFormat
from hushcount.randomness import SystemWords

_KEY_BYTES = 32


@dataclass(frozen=True)
class Name:
    """What all clients with the same value derive alike.

    Attributes:
        hash: 32 bytes, by which the auxiliary server counts.
        box_key: 32 bytes, the key of the inner box (`Sealer.seal_alike`).
    """

    hash: bytes
    box_key: bytes


def keyed_name(form: DiscoveryFormat, value: str) -> Name:
    """Return the name of a value under the campaign's hash key: whoever has a client's campaign file can make it."""
    return Name(form.hash(value), form.hash_key)


def name_of(output: bytes) -> Name:
    """Return the name of the value whose pseudorandom function has this output: nobody can make it without asking.

    Both parts come from the output. If the box key were public, its box would test a guess as well as the hash does.
    """
    return Name(*(_derived(output, part) for part in (b"bin hash", b"box key")))


def blank_name() -> Name:
    """Return a random name, which no other report has: "nothing to discover"."""
    fresh = SystemWords().words((HASH_BYTES + _KEY_BYTES) // 8).tobytes()
    return Name(fresh[:HASH_BYTES], fresh[HASH_BYTES:])


def _derived(output: bytes, part: bytes) -> bytes:
    return hashlib.blake2b(b"", digest_size=32, key=output, person=part).digest()
