"""Ranks of subsets and subsets of ranks: the inner loops that pack and read reports with a subset."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Limbs, UInt64Array
from hushcount.kernels.compiled import compiled


def sum_binomials(
    sums: UInt64Array, elements: npt.NDArray[Any], table: npt.NDArray[np.uint32], row_limbs: tuple[int, ...]
) -> None:
    """Add the limbs of every element's binomial to its subset's; `ranks.sum_binomials_numpy` is the twin.

    Args:
        sums: uint64[n, limbs], changed in place, without carries.
        elements: unsigned integers [n, count], each row strictly ascending.
        table, row_limbs: those of `wire.ranks`.
    """
    _sum_binomials(sums, elements.astype(np.uint32), table, np.array(row_limbs, dtype=np.int64))


@compiled()
def _sum_binomials(
    sums: UInt64Array,
    elements: npt.NDArray[np.uint32],
    table: npt.NDArray[np.uint32],
    row_limbs: npt.NDArray[np.int64],
) -> None:
    for index in range(table.shape[0]):
        row = table[index]
        for report in range(sums.shape[0]):
            entry = row[np.int64(elements[report, index]) - index]
            for limb in range(row_limbs[index]):
                sums[report, limb] += entry[limb]


def unrank(table: npt.NDArray[np.uint32], row_limbs: tuple[int, ...], ranks: Limbs) -> npt.NDArray[np.uint32]:
    """Return uint32[n, count]: the subsets of these ranks, by `wire.ranks`' tables; `unrank_integers` is its twin."""
    subsets = np.empty((ranks.shape[1], len(table)), dtype=np.uint32)
    _unrank(subsets, np.ascontiguousarray(ranks.T, dtype=np.uint32), table, np.array(row_limbs, dtype=np.int64))
    return subsets


@compiled()
def _unrank(
    subsets: npt.NDArray[np.uint32],
    left: npt.NDArray[np.uint32],
    table: npt.NDArray[np.uint32],
    row_limbs: npt.NDArray[np.int64],
) -> None:
    # Element by element for all reports, the greatest first: one row of the table is small enough to stay in cache.
    count, width, _ = table.shape
    places = np.full(left.shape[0], width - 1, dtype=np.int64)
    for index in range(count - 1, -1, -1):
        row = table[index]
        limbs = row_limbs[index]
        for report in range(left.shape[0]):
            place = _last_within(row, limbs, left[report], places[report])
            _subtract(left[report], row[place], limbs)
            places[report] = place
            subsets[report, index] = index + place


@compiled()
def _last_within(row: npt.NDArray[np.uint32], limbs: int, rank: npt.NDArray[np.uint32], last: int) -> int:
    """Return the last place up to `last` whose entry is at most `rank`; that of place 0 is 0. Entries ascend."""
    above, step = last + 1, 1
    while above - step > 0 and _exceeds(row[above - step], rank, limbs):
        above -= step
        step *= 2
    below = max(above - step, 0)
    while above - below > 1:
        middle = (above + below) // 2
        if _exceeds(row[middle], rank, limbs):
            above = middle
        else:
            below = middle
    return below


@compiled()
def _exceeds(entry: npt.NDArray[np.uint32], rank: npt.NDArray[np.uint32], limbs: int) -> bool:
    for limb in range(limbs - 1, -1, -1):
        if entry[limb] != rank[limb]:
            return entry[limb] > rank[limb]
    return False


@compiled()
def _subtract(rank: npt.NDArray[np.uint32], entry: npt.NDArray[np.uint32], limbs: int) -> None:
    borrow = np.int64(0)
    for limb in range(limbs):
        difference = np.int64(rank[limb]) - np.int64(entry[limb]) - borrow
        rank[limb] = np.uint32(difference & 0xFFFFFFFF)
        borrow = np.int64(difference < 0)
