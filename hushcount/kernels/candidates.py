"""Decode item by item: whether each report supports a wanted item, several reports to one machine instruction.

The loops over reports have neither branch nor division, so that the compiler vectorises them; a tile of reports stays
in the nearest cache while it meets every item. The loops of names with 61 are over the field of 2**61 - 1: items that
no list holds, by their fingerprints.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Counts, UInt64Array
from hushcount.kernels.compiled import compiled
from hushcount.kernels.progressions import Progressions
from hushcount.kernels.residues import (
    HALF,
    LOW31,
    exact_division,
    middle_of,
    quotient,
    residue61,
    residue_at,
    turns,
)
from hushcount.maths import field61
from hushcount.threads import at_once, spans

_TILE = 1024
"""Reports that are compared with an item at once: they stay in the nearest cache."""


def candidates(counts: Counts, progressions: Progressions, items: UInt64Array, threads: int = 1) -> None:
    """Do what `decoding.decode` says in time proportional to progressions times items, which threads share."""
    wanted = items.astype(np.uint64)
    count = _count_windows if progressions.stride == 1 else _count_strided
    at_once(lambda rows: count(counts[rows], progressions, wanted[rows]), spans(len(items), threads), threads)


def _count_windows(counts: Counts, progressions: Progressions, items: UInt64Array) -> None:
    prime, begins, lengths = progressions.prime, progressions.begins, progressions.lengths
    if prime == field61.PRIME:
        _windows61(counts, progressions.slopes, np.uint64(prime) - begins, lengths, items)
        return
    # Words of 32 bits are twice as quick, and enough where P (P-1) is below 2**32.
    word = np.uint32 if prime < 1 << 16 else np.uint64
    first = turns(begins, prime, word)
    beyond = turns((begins + lengths) % np.uint64(prime), prime, word)
    _windows(counts, turns(progressions.slopes, prime, word), first, beyond - first, items.astype(word))


def _count_strided(counts: Counts, progressions: Progressions, items: UInt64Array) -> None:
    prime, lengths = progressions.prime, progressions.lengths
    inverse, twos = (np.uint64(value) for value in exact_division(progressions.stride))
    ahead = np.uint64(prime) - progressions.begins
    if prime == field61.PRIME:
        _strided61(counts, progressions.slopes, ahead, lengths, items, inverse, twos)
        return
    turned = turns(ahead % np.uint64(prime), prime, np.uint64)
    slopes = turns(progressions.slopes, prime, np.uint64)
    _strided(counts, slopes, turned, lengths, items, inverse, twos, np.uint64(prime))


@compiled()
def _windows(
    counts: Counts,
    slopes: npt.NDArray[Any],
    begins: npt.NDArray[Any],
    sizes: npt.NDArray[Any],
    items: npt.NDArray[Any],
) -> None:
    """Count whether `a x`, as a word, lies in the arcs of the window; two items a pass share the loads."""
    for start in range(0, slopes.shape[0], _TILE):
        slope = slopes[start : start + _TILE]
        begin = begins[start : start + _TILE]
        size = sizes[start : start + _TILE]
        for column in range(0, items.shape[0] - 1, 2):
            one, other = _window(slope, begin, size, items[column], items[column + 1])
            counts[column] += one
            counts[column + 1] += other
        if items.shape[0] % 2:
            counts[-1] += _window(slope, begin, size, items[-1], items[-1])[0]


@compiled()
def _window(
    slopes: npt.NDArray[Any], begins: npt.NDArray[Any], sizes: npt.NDArray[Any], first: Any, second: Any
) -> tuple[Any, Any]:
    word = slopes.dtype.type
    one, other = word(0), word(0)
    for index in range(slopes.shape[0]):
        slope, begin, size = slopes[index], begins[index], sizes[index]
        one = word(one + word(word(slope * first - begin) < size))
        other = word(other + word(word(slope * second - begin) < size))
    return one, other


@compiled()
def _strided(
    counts: Counts,
    slopes: UInt64Array,
    ahead: UInt64Array,
    lengths: UInt64Array,
    items: UInt64Array,
    inverse: np.uint64,
    twos: np.uint64,
    prime: np.uint64,
) -> None:
    ahead = ahead + middle_of(prime)
    for start in range(0, slopes.shape[0], _TILE):
        slope = slopes[start : start + _TILE]
        offset = ahead[start : start + _TILE]
        length = lengths[start : start + _TILE]
        for column in range(items.shape[0]):
            counts[column] += _progression(slope, offset, length, items[column], inverse, twos, prime)


@compiled()
def _progression(
    slopes: UInt64Array,
    ahead: UInt64Array,
    lengths: UInt64Array,
    item: np.uint64,
    inverse: np.uint64,
    twos: np.uint64,
    prime: np.uint64,
) -> np.uint64:
    """Count where `a x - begin` is the stride times a number below the length."""
    count = np.uint64(0)
    for index in range(slopes.shape[0]):
        residue = residue_at(slopes[index] * item + ahead[index], prime)
        count += np.uint64(quotient(residue, inverse, twos) < lengths[index])
    return count


@compiled()
def _windows61(
    counts: Counts, slopes: UInt64Array, ahead: UInt64Array, lengths: UInt64Array, items: UInt64Array
) -> None:
    """Count how often `a x + ahead mod P` is below the length."""
    highs, lows = slopes >> HALF, slopes & LOW31
    for start in range(0, slopes.shape[0], _TILE):
        high, low = highs[start : start + _TILE], lows[start : start + _TILE]
        offset, length = ahead[start : start + _TILE], lengths[start : start + _TILE]
        for column in range(items.shape[0]):
            counts[column] += _window61(high, low, offset, length, items[column])


@compiled()
def _strided61(
    counts: Counts,
    slopes: UInt64Array,
    ahead: UInt64Array,
    lengths: UInt64Array,
    items: UInt64Array,
    inverse: np.uint64,
    twos: np.uint64,
) -> None:
    """Count how often `a x + ahead mod P` is the stride times a number below the length."""
    highs, lows = slopes >> HALF, slopes & LOW31
    for start in range(0, slopes.shape[0], _TILE):
        high, low = highs[start : start + _TILE], lows[start : start + _TILE]
        offset, length = ahead[start : start + _TILE], lengths[start : start + _TILE]
        for column in range(items.shape[0]):
            counts[column] += _progression61(high, low, offset, length, items[column], inverse, twos)


@compiled()
def _window61(
    highs: UInt64Array, lows: UInt64Array, ahead: UInt64Array, lengths: UInt64Array, item: np.uint64
) -> np.uint64:
    item_high, item_low = item >> HALF, item & LOW31
    count = np.uint64(0)
    for index in range(highs.shape[0]):
        residue = residue61(highs[index], lows[index], ahead[index], item_high, item_low)
        count += np.uint64(residue < lengths[index])
    return count


@compiled()
def _progression61(
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
