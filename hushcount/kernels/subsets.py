"""Floyd's method in a compiled loop: each client has a bitmap of cells, which is read in ascending order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import UInt64Array
from hushcount.kernels.compiled import compiled


def floyd(
    drawn: npt.NDArray[np.uint32], own: UInt64Array, dropped: UInt64Array, width: int, out: npt.NDArray[Any]
) -> npt.NDArray[np.bool_]:
    """Write the subsets of drawn words to `out`; return bool[n]: the subsets to draw anew.

    Twin of `subsets.floyd_numpy`.
    """
    again = np.zeros(len(drawn), dtype=np.bool_)
    bounds = np.arange(width - drawn.shape[1], width, dtype=np.uint64)
    unfair = (1 << 32) % bounds
    _floyd(drawn, own.astype(np.int64), dropped.astype(np.int64), width, bounds, unfair, out, again)
    return again


@compiled()
def _floyd(
    drawn: npt.NDArray[np.uint32],
    own: npt.NDArray[np.int64],
    dropped: npt.NDArray[np.int64],
    width: int,
    bounds: UInt64Array,
    unfair: UInt64Array,
    out: npt.NDArray[Any],
    again: npt.NDArray[np.bool_],
) -> None:
    count, size = drawn.shape
    first = width - 1 - size
    one = np.uint64(1)
    bits = np.zeros((width + 63) >> 6, dtype=np.uint64)
    for row in range(count):
        mine = own[row]
        mark = dropped[row]
        gives_way = np.int64(-1)
        favoured = False
        for column in range(size):
            product = np.uint64(drawn[row, column]) * bounds[column]
            favoured |= (product & np.uint64(0xFFFFFFFF)) < unfair[column]
            cell = np.int64(product >> np.uint64(32))
            cell += cell >= mine
            if bits[cell >> 6] & (one << np.uint64(cell & 63)):
                cell = np.int64(first + column)
                cell += cell >= mine
            bits[cell >> 6] |= one << np.uint64(cell & 63)
            if column == mark:
                gives_way = cell
        again[row] = favoured
        if gives_way >= 0:
            bits[gives_way >> 6] ^= one << np.uint64(gives_way & 63)
            bits[mine >> 6] |= one << np.uint64(mine & 63)
        place = 0
        for index in range(len(bits)):
            word = bits[index]
            bits[index] = 0
            while word:
                below = (word & (~word + one)) - one
                out[row, place] = (index << 6) + _ones(below)
                place += 1
                word &= word - one


@compiled(inline="always")
def _ones(word: Any) -> Any:
    """Return the number of set bits; of the mask below a word's lowest set bit, this is the place of that bit."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
