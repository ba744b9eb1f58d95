"""The closed forms of [J]: variance of a generalised count mean sketch, as printed and corrected, and its planning."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.maths.variance import Numbers


def other_cell(p: Numbers, cells: int, epsilon: float) -> FloatArray:
    """Return the q that belongs to p if the whole budget is spent, with s as a real number.

    Reference: [J] eq. (7).
    """
    e = math.exp(epsilon)
    return np.asarray((cells - e + e * p - p) / ((cells - 1) * (e / p - e + 1.0)), dtype=np.float64)


def sketch_variance(  # noqa: PLR0913  # the symbols of one formula
    p: Numbers, q: Numbers, cells: int, rows: int, n: float, held: Numbers, others: Numbers = 0.0, printed: bool = False
) -> FloatArray:
    """Return the variance of an estimated count, users squared.

    Args:
        p, q: probability that a report supports its own cell, and that it supports another given cell.
        cells: m.
        rows: k.
        n: reports.
        held: F, how many hold the item.
        others: the sum of the squared counts of the other items.
        printed: as printed, with `p^2/k` and `alpha1^2/k`: wrong, because a client answers in one row only.

    Reference: [J] Theorem 3; corrected, docs/mathematics.md sections 5 and 8.
    """
    share = 1.0 / rows if printed else 1.0
    any_cell = (p + (cells - 1) * q) / cells
    collisions = (p - q) ** 2 / (rows * cells) * (1.0 - 1.0 / cells)
    count = held * (p - share * p**2) + (n - held) * (any_cell - share * any_cell**2 - collisions) + collisions * others
    return np.asarray(count / ((p - q) ** 2 * (1.0 - 1.0 / cells) ** 2), dtype=np.float64)


def lemma_objective(p: float, epsilon: float, share: float, rows: int) -> float:
    """Return what [J] Lemma 1 and Algorithm 4 minimise over p."""
    w = math.exp(epsilon) * (1.0 - p) + p
    return (rows * w - p + share * (w - 1.0) * (rows * w - p - w * p)) / (rows * (1.0 - p) ** 2 * p)


def printed_choice(epsilon: float, share: float, rows: int) -> float:
    """Return the p of [J] Algorithm 4, in [1/2, 1]; here the loop ends when the interval is 1e-9 wide."""
    return least(lambda p: lemma_objective(p, epsilon, share, rows), 0.5, 1.0 - 1e-6)


def corrected_choice(epsilon: float, share: float, cells: int, rows: int) -> float:
    """Return the p of least corrected variance, with s as a real number."""

    def variance(p: float) -> float:
        q = other_cell(p, cells, epsilon)
        return float(sketch_variance(p, q, cells, rows, 1.0, share))

    e = math.exp(epsilon)
    # The search range: from p at s = 1 to p at s = m - 1.
    return least(variance, e / (e + cells - 1.0), e * (cells - 1.0) / (e * (cells - 1.0) + 1.0))


def least(loss: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with a single minimum is least, by the ternary search of [J] Algorithm 4."""
    while high - low > 1e-9:
        third = (high - low) / 3.0
        if loss(low + third) <= loss(high - third):
            high -= third
        else:
            low += third
    return (low + high) / 2.0


def apple_keep(epsilon: float) -> float:
    """Return the p of Apple's CMS, `e^(epsilon/2) / (e^(epsilon/2) + 1)`; its q is 1-p."""
    return 1.0 / (1.0 + math.exp(-epsilon / 2.0))


def printed_size(p: float, epsilon: float, cells: int) -> int:
    """Return s of [J] Algorithm 4: `ceil(m / (1 + (1/p - 1) e))`."""
    return math.ceil(cells / (1.0 + (1.0 / p - 1.0) * math.exp(epsilon)) - 1e-12)
