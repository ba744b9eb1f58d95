"""The loops of `candidates` over the field of 2**61 - 1: items that no list holds, by their fingerprints."""

from __future__ import annotations

import numpy as np

from hushcount.arrays import Counts, UInt64Array
from hushcount.kernels.compiled import compiled
from hushcount.kernels.division import quotient
from hushcount.kernels.residues61 import HALF, LOW31, residue61

TILE = 1024
"""Reports that are held against an item at once: they stay in the nearest cache."""


@compiled()
def windows61(
    counts: Counts, slopes: UInt64Array, ahead: UInt64Array, lengths: UInt64Array, items: UInt64Array
) -> None:
    """Add to each item's count how often `a x + ahead mod P` is below the length.

    Args:
        counts: int64[c], changed in place.
        slopes: uint64[r], below P.
        ahead: uint64[r], at most P.
        lengths: uint64[r].
        items: uint64[c], below P.
    """
    highs, lows = slopes >> HALF, slopes & LOW31
    for start in range(0, slopes.shape[0], TILE):
        high, low = highs[start : start + TILE], lows[start : start + TILE]
        offset, length = ahead[start : start + TILE], lengths[start : start + TILE]
        for column in range(items.shape[0]):
            counts[column] += _window(high, low, offset, length, items[column])


@compiled()
def strided61(
    counts: Counts,
    slopes: UInt64Array,
    ahead: UInt64Array,
    lengths: UInt64Array,
    items: UInt64Array,
    inverse: np.uint64,
    twos: np.uint64,
) -> None:
    """Add to each item's count how often `a x + ahead mod P` is the stride times a number below the length.

    Args:
        inverse: with `twos`, divides by the stride: see `division.exact_division`.
    """
    highs, lows = slopes >> HALF, slopes & LOW31
    for start in range(0, slopes.shape[0], TILE):
        high, low = highs[start : start + TILE], lows[start : start + TILE]
        offset, length = ahead[start : start + TILE], lengths[start : start + TILE]
        for column in range(items.shape[0]):
            counts[column] += _progression(high, low, offset, length, items[column], inverse, twos)


@compiled()
def _window(
    highs: UInt64Array, lows: UInt64Array, ahead: UInt64Array, lengths: UInt64Array, item: np.uint64
) -> np.uint64:
    item_high, item_low = item >> HALF, item & LOW31
    count = np.uint64(0)
    for index in range(highs.shape[0]):
        residue = residue61(highs[index], lows[index], ahead[index], item_high, item_low)
        count += np.uint64(residue < lengths[index])
    return count


@compiled()
def _progression(
    highs: UInt64Array,
    lows: UInt64Array,
    ahead: UInt64Array,
    lengths: UInt64Array,
    item: np.uint64,
    inverse: np.uint64,
    twos: np.uint64,
) -> np.uint64:
    item_high, item_low = item >> HALF, item & LOW31
    count = np.uint64(0)
    for index in range(highs.shape[0]):
        residue = residue61(highs[index], lows[index], ahead[index], item_high, item_low)
        count += np.uint64(quotient(residue, inverse, twos) < lengths[index])
    return count
