"""Residues modulo a prime without division: by turns of a circle, by exact quotients, and modulo 2**61 - 1.

Turns: all 2**64 words form a circle. The arc of residue r is the words V with `r <= V P / 2**64 < r + 1`, more than
2**33 words for `P < 2**31`. Let `A = ceil(a 2**64 / P)` be the turn of a. The word `A x` lies in the arc of
`a x mod P`, less than x words from its beginning. So the overflow of a machine word reduces modulo the prime, and one
multiplication, or one addition for the next x, replaces a product and a division.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import UInt64Array
from hushcount.kernels.compiled import compiled
from hushcount.maths.field61 import PRIME

_P = np.uint64(PRIME)
_LOW30 = np.uint64((1 << 30) - 1)
_30, _31, _61 = np.uint64(30), np.uint64(31), np.uint64(61)
LOW31 = np.uint64((1 << 31) - 1)
HALF = np.uint64(31)
"""A value below 2**61 is passed as `value >> HALF` and `value & LOW31`."""
_HALF_WORD = np.uint64(32)


def turns(values: UInt64Array, prime: int, word: type[np.uint32] | type[np.uint64]) -> npt.NDArray[Any]:
    """Return `ceil(v 2**bits / P)`, the first word in the arc of each residue v, for P below 2**31 (32-bit: 2**16)."""
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
    """Return the residue of a word's arc, if the word is 2**32 or more from both ends of the arc."""
    half = np.uint64(32)
    return ((turn >> half) * prime) >> half


def exact_division(divisor: int) -> tuple[int, int]:
    """Return (u, k) such that `x u mod 2**64`, rotated k bits to the right, is `x / divisor` if that is whole.

    If `x / divisor` is not whole, the result is above every quotient, so one comparison tests both divisibility and the
    quotient.
    Reference: Granlund and Montgomery 1994, section 9.
    """
    twos = (divisor & -divisor).bit_length() - 1
    return pow(divisor >> twos, -1, 1 << 64), twos


@compiled()
def quotient(value: np.uint64, inverse: np.uint64, twos: np.uint64) -> np.uint64:
    """Divide a value by the divisor that `exact_division` turned into (inverse, twos)."""
    scaled = value * inverse
    return (scaled >> twos) | (scaled << ((np.uint64(64) - twos) & np.uint64(63)))


@compiled()
def residue61(
    high: np.uint64, low: np.uint64, offset: np.uint64, item_high: np.uint64, item_low: np.uint64
) -> np.uint64:
    """Return `a x + offset mod 2**61 - 1`, for a and x below this prime and an offset of at most the prime.

    The compiler vectorises products of 30 and 31 bits, as in `field61.multiply`, but not 128-bit integers.
    """
    middle = high * item_low + low * item_high
    total = np.uint64(2) * high * item_high + (middle >> _30) + ((middle & _LOW30) << _31) + low * item_low
    total = (total & _P) + (total >> _61) + offset
    total = (total & _P) + (total >> _61)
    return total - _P if total >= _P else total
