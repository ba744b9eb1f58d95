"""Ranks of subsets and subsets of ranks: the inner loops that pack and read reports with a subset."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Limbs, UInt64Array
from hushcount.kernels.compiled import compiled

_NO_LEAD = np.iinfo(np.int64).max
"""Higher than any lead."""


def sum_binomials(
    sums: UInt64Array, elements: npt.NDArray[Any], table: npt.NDArray[np.uint32], row_limbs: tuple[int, ...]
) -> None:
    """Add the limbs of each element's binomial to the sum of its subset; `ranks.rank_integer` is the plain twin.

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
    # The outer loop goes over elements, the greatest first, so that one row of the table stays in the cache for all
    # reports. Two rounds of counting find a place: the comparisons of a round are independent, so the processor runs
    # many in parallel and predicts no branch.
    count, width, _ = table.shape
    step = int(math.sqrt(width)) + 1
    leads = np.full(-(-width // step) * step, _NO_LEAD, dtype=np.int64)
    for index in range(count - 1, -1, -1):
        row, limbs = table[index], row_limbs[index]
        for place in range(width):
            leads[place] = _lead(row[place], limbs)
        coarse = leads[::step].copy()
        for report in range(left.shape[0]):
            rank = left[report]
            lead = _lead(rank, limbs)
            begin = _last_within(coarse, lead) * step
            place = begin + _last_within(leads[begin : begin + step], lead)
            # Only a tie of the leading bits needs a bisection: bisecting everything takes twice as long for GCMS.
            # All small binomials of a row with several limbs have lead 0, so a linear search could take 1,000 steps.
            if leads[place] == lead:
                place = _last_exact(row, limbs, rank, place)
            _subtract(rank, row[place], limbs)
            subsets[report, index] = index + place


@compiled()
def _lead(integer: npt.NDArray[np.uint32], limbs: int) -> int:
    """Return the leading 62 bits of two limbs, or the only limb; these bits ascend with the integer."""
    if limbs == 1:
        return np.int64(integer[0])
    return (np.int64(integer[limbs - 1]) << 30) | (np.int64(integer[limbs - 2]) >> 2)


@compiled()
def _last_within(leads: npt.NDArray[np.int64], lead: int) -> int:
    """Return the last place with a lead of at most `lead`; leads ascend, and the first is at most `lead`."""
    within = 0
    for place in range(leads.shape[0]):
        within += leads[place] <= lead
    return within - 1


@compiled()
def _last_exact(row: npt.NDArray[np.uint32], limbs: int, rank: npt.NDArray[np.uint32], place: int) -> int:
    """Return the last place up to `place` with an entry of at most `rank`; entries ascend, the first is at most it."""
    first = 0
    while first < place:
        middle = (first + place + 1) // 2
        if _exceeds(row[middle], rank, limbs):
            place = middle - 1
        else:
            first = middle
    return place


@compiled()
def _exceeds(entry: npt.NDArray[np.uint32], rank: npt.NDArray[np.uint32], limbs: int) -> bool:
    for limb in range(limbs - 1, -1, -1):
        if entry[limb] != rank[limb]:
            return entry[limb] > rank[limb]
    return False


@compiled()
def _subtract(rank: npt.NDArray[np.uint32], entry: npt.NDArray[np.uint32], limbs: int) -> None:
    borrow = np.uint64(0)
    for limb in range(limbs):
        difference = np.uint64(rank[limb]) - np.uint64(entry[limb]) - borrow
        rank[limb] = np.uint32(difference)
        borrow = difference >> np.uint64(63)
