"""Estimates: counts in users with their errors, noise and collisions apart."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Unbiased estimates, one an item, never clipped or rescaled: a rare item's count may well be below zero.

    Attributes:
        count: float64[c], users (reports) that hold the item.
        standard_error: float64[c], users: the noise of the clients' randomisation, at the estimated count.
        collision_error: float64[c], users: with a pool of fixed hash functions, the size of the bias by items that
            share cells with this one. More reports do not average it away. Zero where functions are fresh.
    """

    count: FloatArray
    standard_error: FloatArray
    collision_error: FloatArray

    def interval(self, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return (low, high): a normal interval for each item alone, both errors added in squares.

        Args:
            confidence: in (0, 1), of one item's interval; that of all items together is lower.
        """
        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence is {confidence}, must be in (0, 1)")
        half = NormalDist().inv_cdf(0.5 + confidence / 2.0) * np.hypot(self.standard_error, self.collision_error)
        return self.count - half, self.count + half
