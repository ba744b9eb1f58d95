"""Residues as turns of a circle of 2**64 words, where reducing modulo the prime is the overflow of a machine word.

The arc of residue r holds the words V with `r <= V P / 2**64 < r + 1`: more than 2**33 of them for `P < 2**31`. With
`A = ceil(a 2**64 / P)`, the turn of a, the word `A x` lies in the arc of `a x mod P`, less than x words from its
beginning; so one multiplication, or one addition for the next x, replaces a product and a division.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import UInt64Array
from hushcount.kernels.compiled import compiled

_HALF_WORD = np.uint64(32)


def turns(values: UInt64Array, prime: int, word: type[np.uint32] | type[np.uint64]) -> npt.NDArray[Any]:
    """Return `ceil(v 2**bits / P)`, the first word in the arc of each residue v.

    Args:
        values: uint64[n], below P.
        prime: P, below 2**31; below 2**16 for words of 32 bits.
        word: uint32 or uint64, the words of the circle.
    """
    modulus = np.uint64(prime)
    high, rest = np.divmod(values << _HALF_WORD, modulus)
    if word is np.uint32:
        return (high + (rest > 0)).astype(np.uint32)
    low, rest = np.divmod(rest << _HALF_WORD, modulus)
    return (high << _HALF_WORD) + low + (rest > 0)


@compiled()
def turn_of(value: np.uint64, prime: np.uint64) -> np.uint64:
    """Return the turn of one residue, `ceil(v 2**64 / P)`."""
    half = np.uint64(32)
    dividend = value << half
    high = dividend // prime
    dividend = (dividend - high * prime) << half
    low = dividend // prime
    return (high << half) + low + np.uint64(low * prime != dividend)


@compiled()
def middle_of(prime: np.uint64) -> np.uint64:
    """Return half an arc, `floor(2**63 / P)`: words moved by it are far enough from both ends for `residue_at`."""
    return (np.uint64(1) << np.uint64(63)) // prime


@compiled()
def residue_at(turn: np.uint64, prime: np.uint64) -> np.uint64:
    """Return the residue whose arc holds a word, given that the word lies 2**32 or more from its ends."""
    half = np.uint64(32)
    return ((turn >> half) * prime) >> half
