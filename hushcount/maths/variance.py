"""The exact variance of an estimated count, in arithmetic that broadcasts: one formula for results and for plans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hushcount.arrays import FloatArray

Numbers = float | FloatArray | npt.NDArray[np.int64]
"""A number or an array of numbers."""


@dataclass(frozen=True, eq=False)
class SupportLaw:
    """What one report adds to the score of an item; every field may be an array of candidates.

    A report scores 1 for the items that it supports and 0 for all others; with blocks, -1 for items that it opposes.

    Attributes:
        own: mean score of the client's item; p* if scores are supports.
        other: mean score of any other item; q* if scores are supports.
        own_spread: variance of the score of the client's item.
        near_spread: variance of the score of an item that the client does not hold; with blocks, of one in the client's
            block.
        far_spread: variance of the score of an item in another block; near_spread without blocks.
        clash: `c/((1-c) k)`, the mean square error by collisions, in a pool of k fixed functions that collide with
            probability c, for one user of another item; N users of the item cause N^2 times as much. 0 with fresh
            functions or with only one function.
        least: the lowest possible score; the highest is 1.
    """

    own: Numbers
    other: Numbers
    own_spread: Numbers
    near_spread: Numbers
    far_spread: Numbers
    clash: float = 0.0
    least: float = 0.0

    @property
    def gain(self) -> FloatArray:
        """How much more a client with the item adds to its score, on average, than another client: `p* - q*`."""
        return np.asarray(np.subtract(self.own, self.other), dtype=np.float64)

    def noise(self, n: Numbers, share: Numbers, near: Numbers | None = None) -> FloatArray:
        """Return the exact variance of an estimated count that randomisation causes, in users squared.

        `[F p*(1-p*) + (n-F) q*(1-q*)] / (p*-q*)^2 - (n-F) clash` with `F = n share`.

        Args:
            n: reports.
            share: of the item, in [0, 1].
            near: with blocks, the share of users that hold another item of the same block; None stands for the worst
                case, in which all users of other items hold an item of the block.

        Reference: [P26] Theorem 2.6; [J] Theorem 3 corrected, docs/mathematics.md sections 5 and 8: the printed
        `p^2/k` and `alpha1^2/k` ignore that a client answers in only one row, and overstate the variance (see tests).
        """
        held = np.multiply(n, share)
        close = n - held if near is None else np.multiply(n, near)
        spread = held * self.own_spread + close * self.near_spread + (n - held - close) * self.far_spread
        with np.errstate(divide="ignore", invalid="ignore"):
            # A candidate without gain has no estimate: its variance is infinite or NaN, and planning skips it.
            return np.asarray(spread / self.gain**2 - (n - held) * self.clash, dtype=np.float64)


def supporting(p: Numbers, q: Numbers, collision: Numbers = 0.0, clash: float = 0.0) -> SupportLaw:
    """Return the law of reports that support items or do not.

    Args:
        p: the probability that a report supports its own cell.
        q: the probability that a report supports a fixed other cell.
        collision: c, the probability over the hash function that two items share a cell; `q* = c p + (1-c) q`.
        clash: of a pool, see `SupportLaw`.
    """
    other = np.asarray(np.multiply(collision, p) + np.multiply(1.0 - np.asarray(collision), q), dtype=np.float64)
    spread = other * (1.0 - other)
    return SupportLaw(p, other, np.multiply(p, 1.0 - np.asarray(p)), spread, spread, clash)


def opposing(p: Numbers, q: Numbers) -> SupportLaw:
    """Return the law of scores +1, -1 or 0: randomised response over a pair of opposite cells for each block.

    The other items of a block fall on either cell of its pair equally often, so their reports cancel in the mean. Each
    such report adds noise of variance `p + q`, each report of an item in another block only `2 q`. This law is derived
    here; the tests verify it by enumeration.
    """
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    return SupportLaw(p - q, np.zeros_like(p), p + q - (p - q) ** 2, p + q, 2.0 * q, least=-1.0)
