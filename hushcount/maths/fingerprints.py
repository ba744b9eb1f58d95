"""Strings to points of the field: one BLAKE2b a string, after which every hash is arithmetic."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from hushcount.arrays import UInt64Array
from hushcount.maths.field61 import PRIME

OTHER = PRIME - 1
"""The fingerprint of the reserved item "other"; no string has it."""
_HASH_BYTES = 16


def fingerprints(strings: Iterable[str]) -> UInt64Array:
    """Return uint64[n], each in 0..2**61-3: BLAKE2b, 128 bits, little-endian, of the UTF-8 bytes, modulo 2**61-2.

    Two strings of a million share a fingerprint with probability about 2e-7. Cryptographic, because whoever could make
    a string with the fingerprint of a popular one would have all its reports counted for his own: to hit any of T items
    takes 2**61/T hashes. Two strings of his own that collide, which takes 2**31, are one item and concern nobody else.
    """
    return np.fromiter((_point(string.encode()) for string in strings), dtype=np.uint64)


def _point(octets: bytes) -> int:
    hashed = hashlib.blake2b(octets, digest_size=_HASH_BYTES, person=b"fingerprint").digest()
    return int.from_bytes(hashed, "little") % OTHER
