"""Residues modulo 2**61 - 1 in compiled loops.

Products are cut into 30 and 31 bits as in `field61.multiply`, which the compiler vectorises and 128-bit integers are
not.
"""

from __future__ import annotations

import numpy as np

from hushcount.kernels.compiled import compiled
from hushcount.maths.field61 import PRIME

_P = np.uint64(PRIME)
_LOW30 = np.uint64((1 << 30) - 1)
_30, _31, _61 = np.uint64(30), np.uint64(31), np.uint64(61)
LOW31 = np.uint64((1 << 31) - 1)
HALF = np.uint64(31)
"""A value below 2**61 is given as `value >> HALF` and `value & LOW31`."""


@compiled()
def residue61(
    high: np.uint64, low: np.uint64, offset: np.uint64, item_high: np.uint64, item_low: np.uint64
) -> np.uint64:
    """Return `a x + offset mod 2**61 - 1`, for a and x below it and offset at most it."""
    middle = high * item_low + low * item_high
    total = np.uint64(2) * high * item_high + (middle >> _30) + ((middle & _LOW30) << _31) + low * item_low
    total = (total & _P) + (total >> _61) + offset
    total = (total & _P) + (total >> _61)
    return total - _P if total >= _P else total
