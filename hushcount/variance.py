"""The exact variance of an estimated count, in plain arithmetic that broadcasts: one formula for results and plans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Numbers = float | FloatArray | npt.NDArray[np.int64]
"""A number or an array of them."""


@dataclass(frozen=True, eq=False)
class SupportLaw:
    """The probabilities by which reports support items; every field may be an array of candidates.

    Attributes:
        p: that a report supports its own cell.
        q: that it supports another given cell.
        collision: c, that two items share a cell, over the function drawn.
        pool: k, how many functions all reports share; infinity where each draws its own or there is only one.
    """

    p: Numbers
    q: Numbers
    collision: Numbers
    pool: float = np.inf

    @property
    def q_star(self) -> FloatArray:
        """The probability that a report supports another given item: `c p + (1-c) q`."""
        return np.asarray(self.collision * self.p + (1.0 - self.collision) * self.q, dtype=np.float64)

    @property
    def gain(self) -> FloatArray:
        """`p* - q*`: by how much a report of the item adds to its support more than another."""
        return np.asarray(self.p - self.q_star, dtype=np.float64)

    @property
    def collision_unit(self) -> FloatArray:
        """`a2 = (p-q)^2 c(1-c)/k`: what one pair of colliding items adds to Var[C] over pools of fresh functions."""
        spread = (self.p - self.q) ** 2 * self.collision * (1.0 - self.collision)
        return np.asarray(spread / self.pool, dtype=np.float64)

    def noise(self, n: float, share: Numbers) -> FloatArray:
        """Return the variance of an estimated count by randomisation, in users squared.

        `[F p*(1-p*) + (n-F)(q*(1-q*) - a2)] / (p*-q*)^2` with `F = n share`.

        Reference: [P26] Theorem 2.6; [J] Theorem 3 corrected, docs/mathematics.md sections 5 and 8: the printed
        `p^2/k` and `alpha1^2/k` forget that a client answers in one row only, and overstate the variance (simulated
        in the tests).
        """
        held = n * share
        own, other = self.p, self.q_star
        spread = held * own * (1.0 - own) + (n - held) * (other * (1.0 - other) - self.collision_unit)
        return np.asarray(spread / self.gain**2, dtype=np.float64)
