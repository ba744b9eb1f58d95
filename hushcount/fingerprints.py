"""Strings to points of the field: one MurmurHash3 a string, after which every hash is arithmetic."""

from __future__ import annotations

from collections.abc import Iterable

import mmh3
import numpy as np

from hushcount.field61 import PRIME
from hushcount.randomness import UInt64Array

OTHER = PRIME - 1
"""The fingerprint of the reserved item "other"; no string has it."""


def fingerprints(strings: Iterable[str]) -> UInt64Array:
    """Return uint64[n], each in 0..2**61-3: MurmurHash3 (x64, 128 bits, seed 0) of the UTF-8 bytes, modulo 2**61-2.

    Two strings of a million share a fingerprint with probability about 2e-7. Whoever makes strings that collide on
    purpose makes his own items indistinguishable and nobody else's; where that matters (discovery) a keyed
    cryptographic hash is used instead.
    """
    return np.fromiter(
        (mmh3.hash128(string.encode(), 0, True, signed=False) % OTHER for string in strings), dtype=np.uint64
    )
