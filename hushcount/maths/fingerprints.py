"""Map strings to elements of the field by one BLAKE2b hash each; all later hashing is field arithmetic."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from hushcount.arrays import UInt64Array
from hushcount.maths.field61 import PRIME

OTHER = PRIME - 1
"""The fingerprint of the reserved item "other"; no string has it."""


def fingerprints(strings: Iterable[str]) -> UInt64Array:
    """Return uint64[n], each in 0..2**61-3: BLAKE2b, 128 bits, little-endian, of the UTF-8 bytes, modulo 2**61-2.

    Among a million strings any two share a fingerprint with probability about 2e-7. The hash is cryptographic, because
    if a forger finds a string with the fingerprint of a popular string, all reports of the popular string also count
    for the forger's string. To find a string with the fingerprint of any of T items takes 2**61/T hashes. One person
    can make two strings that collide with 2**31 hashes; the two strings count as one item and harm nobody else.
    """
    hashes = (hashlib.blake2b(string.encode(), digest_size=16, person=b"fingerprint").digest() for string in strings)
    return np.fromiter((int.from_bytes(hashed, "little") % OTHER for hashed in hashes), dtype=np.uint64)
