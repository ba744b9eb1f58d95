"""The variance of the number of a group's items that one report supports: exact, or exact on average over groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.maths.variance import SupportLaw


@dataclass(frozen=True)
class Supported:
    """One case of the cells that a report can support.

    Attributes:
        chance: the probability of this case.
        own: whether the client's own cell is supported.
        others: how many other cells are supported; all sets of this size are equally likely.
    """

    chance: float
    own: bool
    others: float


def spreads(sizes: FloatArray, ways: tuple[Supported, ...], others: float) -> tuple[FloatArray, FloatArray]:
    """Return (inside, outside), float64[g] each: the variance of T if the client's item is in the group, and if not.

    T is the number of the group's items that a report supports. In each case, the number of supported items other than
    the client's own is hypergeometric: t of N other cells are supported, and the group has g-1 or g of these N.

    Args:
        sizes: float64[g], items of each group.
        ways: the cases; their chances add up to 1.
        others: N, the number of cells other than the client's own.
    """
    inside = _variance(
        [(way.chance, float(way.own), *_hypergeometric(sizes - 1.0, way.others, others)) for way in ways]
    )
    outside = _variance([(way.chance, 0.0, *_hypergeometric(sizes, way.others, others)) for way in ways])
    return inside, outside


def independent(law: SupportLaw, sizes: FloatArray) -> SupportLaw:
    """Return the law of the sum of `sizes` item scores, which are uncorrelated for a fixed item of the client."""
    far = sizes * np.asarray(law.far_spread)
    own = np.asarray(law.own_spread) + (sizes - 1.0) * np.asarray(law.far_spread)
    return of_groups(law, sizes, own, far)


def of_groups(law: SupportLaw, sizes: FloatArray, inside: FloatArray, outside: FloatArray) -> SupportLaw:
    """Return the law of a group's score: `other` is g times an item's `other`, and the gain equals an item's gain."""
    other = sizes * np.asarray(law.other)
    return SupportLaw(other + law.gain, other, inside, outside, outside)


def _hypergeometric(drawn: FloatArray, marked: float, cells: float) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the number of marked cells among `drawn` cells, drawn without replacement."""
    share = drawn / cells
    if cells <= 1.0:
        return share * marked, np.zeros_like(share)
    return share * marked, marked * share * (1.0 - share) * (cells - marked) / (cells - 1.0)


def _variance(ways: list[tuple[float, float, FloatArray, FloatArray]]) -> FloatArray:
    mean = sum((chance * (own + others) for chance, own, others, _ in ways), start=np.zeros(1))
    square = sum((chance * (spread + (own + others - mean) ** 2) for chance, own, others, spread in ways), np.zeros(1))
    return np.asarray(square, dtype=np.float64)
