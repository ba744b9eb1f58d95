"""Read a pool's tally: hash every item with every function, and add up its cells, in one pass."""

from __future__ import annotations

import numpy as np

from hushcount.arrays import Counts, UInt64Array
from hushcount.kernels.compiled import compiled
from hushcount.kernels.residues import HALF, LOW31, residue61
from hushcount.threads import at_once, spans

_TILE = 1024
_WORTH_A_THREAD = 1 << 21
"""The number of hashes for which one more thread pays."""


def sum_of_cells(matrix: Counts, table: UInt64Array, cells: int, items: UInt64Array, threads: int = 1) -> Counts:
    """Return int64[c]: the sum over all rows j of `matrix[j, h_j(x)]`, `h_j(x) = c0 + c1 x + c2 x^2 mod P mod m`.

    Args:
        matrix: int64[k, >= m].
        table: uint64[3, k], the coefficients c0, c1, c2 of every function, below P = 2**61 - 1.
        cells: m, 1..2**24.
        items: uint64[c], below P; threads share them.
    """
    sums = np.zeros(len(items), dtype=np.int64)
    threads = max(1, min(threads, len(items) * len(matrix) // _WORTH_A_THREAD))
    constant, linear, square = (np.ascontiguousarray(row) for row in table)
    halves = square >> HALF, square & LOW31
    rows = np.ascontiguousarray(matrix)

    def add(span: slice) -> None:
        _add_cells(sums[span], rows, *halves, linear, constant, np.uint64(cells), items[span])

    at_once(add, spans(len(items), threads), threads)
    return sums


@compiled()
def _add_cells(
    sums: Counts,
    matrix: Counts,
    highs: UInt64Array,
    lows: UInt64Array,
    linear: UInt64Array,
    constant: UInt64Array,
    cells: np.uint64,
    items: UInt64Array,
) -> None:
    """Handle one tile of items in all rows; hashing has its own loop, which the compiler vectorises."""
    hashes = np.empty(_TILE, dtype=np.uint64)
    mask = cells - np.uint64(1)
    whole = cells & mask == 0
    for start in range(0, items.shape[0], _TILE):
        tile = items[start : start + _TILE]
        for row in range(matrix.shape[0]):
            high, low, c1, c0 = highs[row], lows[row], linear[row], constant[row]
            for index in range(tile.shape[0]):
                item_high, item_low = tile[index] >> HALF, tile[index] & LOW31
                value = residue61(high, low, c1, item_high, item_low)
                hashes[index] = residue61(value >> HALF, value & LOW31, c0, item_high, item_low)
            if whole:
                for index in range(tile.shape[0]):
                    sums[start + index] += matrix[row, hashes[index] & mask]
            else:
                for index in range(tile.shape[0]):
                    sums[start + index] += matrix[row, hashes[index] % cells]
