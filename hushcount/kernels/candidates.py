"""Decode item by item: test whether each report supports an item, several reports in one machine instruction.

The loops over reports have neither branch nor division, so that the compiler vectorises them. A tile of reports stays
in the nearest cache while every item is tested. `_count61` decodes the fingerprints of an open domain, modulo
2**61 - 1.
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
"""The number of reports that are compared with an item in one step; so many reports fit into the nearest cache."""


def candidates(counts: Counts, progressions: Progressions, items: UInt64Array, threads: int = 1) -> None:
    """Decode as `decoding.decode` says, in time proportional to progressions times items; threads share the items."""
    wanted = items.astype(np.uint64)
    at_once(lambda rows: _count(counts[rows], progressions, wanted[rows]), spans(len(items), threads), threads)


def _count(counts: Counts, progressions: Progressions, items: UInt64Array) -> None:
    prime, stride, begins, lengths = progressions.prime, progressions.stride, progressions.begins, progressions.lengths
    modulus, (inverse, twos) = np.uint64(prime), (np.uint64(value) for value in exact_division(stride))
    if prime == field61.PRIME:
        _count61(counts, progressions.slopes, modulus - begins, lengths, items, stride, inverse, twos)
        return
    # Words of 32 bits are twice as quick, and enough if P (P-1) is below 2**32.
    word = np.uint32 if stride == 1 and prime < 1 << 16 else np.uint64
    slopes = turns(progressions.slopes, prime, word)
    if stride == 1:
        first, beyond = turns(begins, prime, word), turns((begins + lengths) % modulus, prime, word)
        _windows(counts, slopes, first, beyond - first, items.astype(word))
    else:
        ahead = turns((modulus - begins) % modulus, prime, word)
        _strided(counts, slopes, ahead, lengths, items, inverse, twos, modulus)


@compiled()
def _windows(
    counts: Counts,
    slopes: npt.NDArray[Any],
    begins: npt.NDArray[Any],
    sizes: npt.NDArray[Any],
    items: npt.NDArray[Any],
) -> None:
    """Count for each item the reports with the word `a x` in an arc of their window; one pass tests two items."""
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
    """Count how often `a x + ahead mod P` is the stride times a number below the length; a and ahead are turns."""
    ahead = ahead + middle_of(prime)
    for start in range(0, slopes.shape[0], _TILE):
        tile = slice(start, start + _TILE)
        slope, offset, length = slopes[tile], ahead[tile], lengths[tile]
        for column in range(items.shape[0]):
            item, count = items[column], np.uint64(0)
            for index in range(slope.shape[0]):
                residue = residue_at(slope[index] * item + offset[index], prime)
                count += np.uint64(quotient(residue, inverse, twos) < length[index])
            counts[column] += count


@compiled()
def _count61(
    counts: Counts,
    slopes: UInt64Array,
    ahead: UInt64Array,
    lengths: UInt64Array,
    items: UInt64Array,
    stride: int,
    inverse: np.uint64,
    twos: np.uint64,
) -> None:
    """Count how often `a x + ahead mod P` is the stride times a number below the length, for P = 2**61 - 1."""
    highs, lows = slopes >> HALF, slopes & LOW31
    for start in range(0, slopes.shape[0], _TILE):
        tile = slice(start, start + _TILE)
        high, low, offset, length = highs[tile], lows[tile], ahead[tile], lengths[tile]
        for column in range(items.shape[0]):
            item_high, item_low, count = items[column] >> HALF, items[column] & LOW31, np.uint64(0)
            # Windows need no division.
            if stride == 1:
                for index in range(high.shape[0]):
                    residue = residue61(high[index], low[index], offset[index], item_high, item_low)
                    count += np.uint64(residue < length[index])
            else:
                for index in range(high.shape[0]):
                    residue = residue61(high[index], low[index], offset[index], item_high, item_low)
                    count += np.uint64(quotient(residue, inverse, twos) < length[index])
            counts[column] += count
