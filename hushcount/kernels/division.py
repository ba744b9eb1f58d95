"""Exact division by a fixed number, without dividing: one product and one rotation of machine words."""

from __future__ import annotations

import numpy as np

from hushcount.kernels.compiled import compiled


def exact_division(divisor: int) -> tuple[int, int]:
    """Return (u, k) such that `x u mod 2**64`, rotated k bits to the right, is `x / divisor` where that is whole.

    Where it is not, the result is above every quotient, so that one comparison tests divisibility and the quotient.

    Reference: Granlund and Montgomery 1994, section 9.
    """
    twos = (divisor & -divisor).bit_length() - 1
    return pow(divisor >> twos, -1, 1 << 64), twos


@compiled()
def quotient(value: np.uint64, inverse: np.uint64, twos: np.uint64) -> np.uint64:
    """Return what `exact_division` promises of a value, given its two numbers."""
    scaled = value * inverse
    return (scaled >> twos) | (scaled << ((np.uint64(64) - twos) & np.uint64(63)))
