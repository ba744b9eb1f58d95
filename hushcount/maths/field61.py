"""Arithmetic in the prime field of 2**61 - 1, vectorised over uint64 arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hushcount.arrays import UInt64Array

PRIME = (1 << 61) - 1
_P = np.uint64(PRIME)
_LOW31 = np.uint64((1 << 31) - 1)
_LOW30 = np.uint64((1 << 30) - 1)


def reduce(values: npt.NDArray[np.uint64]) -> UInt64Array:
    """Return `values mod (2**61 - 1)` for any uint64 values."""
    folded = (values & _P) + (values >> np.uint64(61))
    return np.where(folded >= _P, folded - _P, folded)


def multiply(left: UInt64Array, right: UInt64Array) -> UInt64Array:
    """Return `left * right mod (2**61 - 1)` for operands below the prime.

    Each operand is cut into its high 30 and low 31 bits. `2**62 = 2` and `2**61 = 1` in this field, so the four partial
    products add up to less than `2**64`.
    """
    left_high, left_low = left >> np.uint64(31), left & _LOW31
    right_high, right_low = right >> np.uint64(31), right & _LOW31
    middle = left_high * right_low + left_low * right_high
    total = np.uint64(2) * left_high * right_high + (middle >> np.uint64(30)) + left_low * right_low
    return reduce(total + ((middle & _LOW30) << np.uint64(31)))


def add(left: UInt64Array, right: UInt64Array) -> UInt64Array:
    """Return `left + right mod (2**61 - 1)` for operands below the prime."""
    return reduce(left + right)
