"""Limits of a difference and of a ratio from the limits of each side (MOVER)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushcount.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Limited:
    """Values with their limits, float64[g] each; independent, unless a correlation is given."""

    value: FloatArray
    low: FloatArray
    high: FloatArray

    def widened(self, by: FloatArray) -> Limited:
        """Return wider limits: a symmetric half-width, float64[g], is added in squares on both sides."""
        return Limited(
            self.value,
            self.value - np.hypot(self.value - self.low, by),
            self.value + np.hypot(self.high - self.value, by),
        )


def sum_limits(parts: Sequence[Limited]) -> tuple[FloatArray, FloatArray]:
    """Return (low, high) of the sum of independent values: the distances to their limits, added in squares.

    Reference: Zou and Donner 2008.
    """
    value = sum(part.value for part in parts)
    below = np.sqrt(sum((part.value - part.low) ** 2 for part in parts))
    above = np.sqrt(sum((part.high - part.value) ** 2 for part in parts))
    return value - below, value + above


def difference_limits(
    before: Limited, after: Limited, correlation: FloatArray | float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return (low, high) of `after - before`: distances to the limits, added in squares.

    Reference: Zou and Donner 2008; with a correlation of the values: Zou 2007.
    """
    difference = after.value - before.value
    low = difference - _apart(after.value - after.low, before.high - before.value, correlation)
    return low, difference + _apart(after.high - after.value, before.value - before.low, correlation)


def _apart(one: FloatArray, other: FloatArray, correlation: FloatArray | float) -> FloatArray:
    return np.sqrt(np.maximum(one**2 + other**2 - 2.0 * correlation * one * other, 0.0))


def ratio_limits(before: Limited, after: Limited) -> tuple[FloatArray, FloatArray]:
    """Return (low, high) of `after / before`: the r of 0 or more for which `after - r before` may be 0.

    `difference_limits` of after and r before is solved for r. Negative shares are set to 0, so low is 0 if after may be
    0, and high is inf if before may be 0.

    Reference: Donner and Zou 2012; with symmetric limits the result is the set of Fieller 1954.
    """
    a, b = np.maximum(before.value, 0.0), np.maximum(after.value, 0.0)
    a_low, a_high = np.maximum(before.low, 0.0), np.maximum(before.high, a)
    b_low, b_high = np.maximum(after.low, 0.0), np.maximum(after.high, b)
    # (b - r a)^2 = c^2 + r^2 e^2, with the distances c of after and e of before. b^2 - c^2 is computed without
    # cancellation.
    e, c, rest = a_high - a, b - b_low, b_low * (2.0 * b - b_low)
    root = a * b + np.sqrt(np.maximum((a * c) ** 2 + e**2 * rest, 0.0))
    low = np.where(rest <= 0.0, 0.0, _over(rest, root))
    e, c, square = a - a_low, b_high - b, a_low * (2.0 * a - a_low)
    root = a * b + np.sqrt(np.maximum((e * b) ** 2 + c**2 * square, 0.0))
    return low, _over(root, square)


def _over(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return the quotient; inf where the divisor is 0."""
    infinite = np.full(len(above), np.inf)
    return np.asarray(np.divide(above, below, out=infinite, where=below > 0.0), dtype=np.float64)
