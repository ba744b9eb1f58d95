"""Sum the squares of how many items of a group each report holds: the candidates' comparison, group by group.

Counts of single items do not tell how often a report holds two of them together. The loops are those of `candidates`,
but a tile of reports meets a whole group before its hits are squared and added up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import IntArray, UInt64Array
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
"""Progressions that are compared with an item at once: they stay in the nearest cache."""
_MOST = 1 << 63


def squares(
    progressions: Progressions, each: int, items: UInt64Array, starts: IntArray, threads: int = 1
) -> UInt64Array:
    """Return uint64[g]: for each group, the sum over reports of the squared number of its items that a report holds.

    Args:
        progressions: those of a report one after the other, without a residue in common.
        each: how many a report has.
        items: uint64[sum of the sizes of all groups], below P, the groups one after the other, none of them empty.
        starts: int64[g], where each group begins.
        threads: share the reports.

    Raises:
        ValueError: the sum may not fit in 63 bits: give fewer reports at once.
    """
    reports, ends = len(progressions.slopes) // each, np.append(starts, len(items))[1:]
    largest = int((ends - starts).max(initial=0))
    if reports * largest**2 >= _MOST:
        raise ValueError(f"reports is {reports:,}, too many at once for a group of {largest:,} items")
    prime, stride = progressions.prime, progressions.stride
    modulus, (inverse, twos) = np.uint64(prime), (np.uint64(value) for value in exact_division(stride))
    # Words of 32 bits are twice as quick, and enough if P (P-1) is below 2**32.
    short = prime < 1 << 16
    word: type[Any] = np.uint32 if short else np.uint64
    ahead, beyond = modulus - progressions.begins, (progressions.begins + progressions.lengths) % modulus
    field, windows = prime == field61.PRIME, stride == 1
    slopes = progressions.slopes if field else turns(progressions.slopes, prime, word)
    if not field and windows:
        ahead = turns(progressions.begins, prime, word)
    elif not field:
        ahead = turns(ahead % modulus, prime, word)
    lengths = progressions.lengths.astype(word)
    if windows and not field:
        lengths = turns(beyond, prime, word) - ahead

    def add(span: slice) -> UInt64Array:
        rows = slice(span.start * each, span.stop * each)
        sums, mine = np.zeros(len(starts), dtype=np.uint64), (slopes[rows], ahead[rows], lengths[rows])
        if field:
            _squares61(sums, *mine, each, items, starts, ends, stride, inverse, twos)
        elif windows:
            _windows(sums, *mine, each, items.astype(word), starts, ends)
        elif short:
            _strided32(
                sums,
                *mine,
                each,
                items.astype(word),
                starts,
                ends,
                *_exact_division32(stride),
                modulus,
            )
        else:
            _strided(sums, *mine, each, items, starts, ends, inverse, twos, modulus)
        return sums

    parts = at_once(add, spans(reports, threads), threads)
    return np.sum(parts, axis=0, dtype=np.uint64) if parts else np.zeros(len(starts), dtype=np.uint64)


@compiled()
def _tile_of(each: int) -> int:
    """Return how many progressions are in a tile: those of whole reports, of one at least."""
    return max(1, _TILE // each) * each


@compiled()
def _squared(held: npt.NDArray[Any], each: int) -> Any:
    total = np.uint64(0)
    if each == 1:
        for index in range(held.shape[0]):
            total += np.uint64(held[index]) * np.uint64(held[index])
        return total
    for first in range(0, held.shape[0], each):
        together = np.uint64(0)
        for index in range(first, first + each):
            together += np.uint64(held[index])
        total += together * together
    return total


@compiled()
def _windows(
    sums: UInt64Array,
    slopes: npt.NDArray[Any],
    begins: npt.NDArray[Any],
    sizes: npt.NDArray[Any],
    each: int,
    items: npt.NDArray[Any],
    starts: IntArray,
    ends: IntArray,
) -> None:
    """Add whether `a x`, as a word, lies in the arc of the window; four items a pass share the loads."""
    tile = _tile_of(each)
    held = np.empty(tile, dtype=slopes.dtype)
    for start in range(0, slopes.shape[0], tile):
        slope, begin, size = slopes[start : start + tile], begins[start : start + tile], sizes[start : start + tile]
        hits = held[: slope.shape[0]]
        for number in range(starts.shape[0]):
            hits[:] = 0
            place = starts[number]
            while place + 4 <= ends[number]:
                _hold_four(hits, slope, begin, size, items[place], items[place + 1], items[place + 2], items[place + 3])
                place += 4
            while place < ends[number]:
                _hold(hits, slope, begin, size, items[place])
                place += 1
            sums[number] += _squared(hits, each)


@compiled()
def _hold_four(
    hits: npt.NDArray[Any],
    slopes: npt.NDArray[Any],
    begins: npt.NDArray[Any],
    sizes: npt.NDArray[Any],
    first: Any,
    second: Any,
    third: Any,
    fourth: Any,
) -> None:
    word = slopes.dtype.type
    for index in range(slopes.shape[0]):
        slope, begin, size = slopes[index], begins[index], sizes[index]
        one = word(word(slope * first - begin) < size) + word(word(slope * second - begin) < size)
        other = word(word(slope * third - begin) < size) + word(word(slope * fourth - begin) < size)
        hits[index] = word(hits[index] + word(one + other))


@compiled()
def _hold(
    hits: npt.NDArray[Any], slopes: npt.NDArray[Any], begins: npt.NDArray[Any], sizes: npt.NDArray[Any], item: Any
) -> None:
    word = slopes.dtype.type
    for index in range(slopes.shape[0]):
        hits[index] = word(hits[index] + word(word(slopes[index] * item - begins[index]) < sizes[index]))


def _exact_division32(divisor: int) -> tuple[np.uint32, np.uint32]:
    """Return the two numbers of `exact_division` for words of 32 bits."""
    inverse, twos = exact_division(divisor)
    return np.uint32(inverse & 0xFFFFFFFF), np.uint32(twos)


@compiled()
def _strided32(
    sums: UInt64Array,
    slopes: npt.NDArray[Any],
    ahead: npt.NDArray[Any],
    lengths: npt.NDArray[Any],
    each: int,
    items: npt.NDArray[np.uint32],
    starts: IntArray,
    ends: IntArray,
    inverse: np.uint32,
    twos: np.uint32,
    prime: np.uint64,
) -> None:
    """Do what `_strided` does in words of 32 bits: each arc has more than 2**16 of them."""
    tile, left = _tile_of(each), np.uint32((np.uint32(32) - twos) & np.uint32(31))
    held = np.empty(tile, dtype=np.uint32)
    for start in range(0, slopes.shape[0], tile):
        slope, offset, length = slopes[start : start + tile], ahead[start : start + tile], lengths[start : start + tile]
        hits = held[: slope.shape[0]]
        for number in range(starts.shape[0]):
            hits[:] = 0
            for place in range(starts[number], ends[number]):
                item = items[place]
                for index in range(slope.shape[0]):
                    turned = np.uint32(slope[index] * item + offset[index])
                    residue = np.uint32((np.uint64(turned) * prime) >> np.uint64(32))
                    scaled = np.uint32(residue * inverse)
                    parts = np.uint32(np.uint32(scaled >> twos) | np.uint32(scaled << left))
                    hits[index] = np.uint32(hits[index] + np.uint32(parts < length[index]))
            sums[number] += _squared(hits, each)


@compiled()
def _strided(
    sums: UInt64Array,
    slopes: UInt64Array,
    ahead: UInt64Array,
    lengths: UInt64Array,
    each: int,
    items: UInt64Array,
    starts: IntArray,
    ends: IntArray,
    inverse: np.uint64,
    twos: np.uint64,
    prime: np.uint64,
) -> None:
    """Add whether `a x + ahead mod P` is the stride times a number below the length; slopes and ahead as turns."""
    tile, middle = _tile_of(each), middle_of(prime)
    held = np.empty(tile, dtype=np.uint64)
    for start in range(0, slopes.shape[0], tile):
        slope, offset, length = slopes[start : start + tile], ahead[start : start + tile], lengths[start : start + tile]
        hits = held[: slope.shape[0]]
        for number in range(starts.shape[0]):
            hits[:] = 0
            for place in range(starts[number], ends[number]):
                item = items[place]
                for index in range(slope.shape[0]):
                    residue = residue_at(slope[index] * item + offset[index] + middle, prime)
                    hits[index] += np.uint64(quotient(residue, inverse, twos) < length[index])
            sums[number] += _squared(hits, each)


@compiled()
def _squares61(
    sums: UInt64Array,
    slopes: UInt64Array,
    ahead: UInt64Array,
    lengths: UInt64Array,
    each: int,
    items: UInt64Array,
    starts: IntArray,
    ends: IntArray,
    stride: int,
    inverse: np.uint64,
    twos: np.uint64,
) -> None:
    """Add whether `a x + ahead mod P` is the stride times a number below the length, for P = 2**61 - 1."""
    tile = _tile_of(each)
    held, highs, lows = np.empty(tile, dtype=np.uint64), slopes >> HALF, slopes & LOW31
    for start in range(0, slopes.shape[0], tile):
        high, low = highs[start : start + tile], lows[start : start + tile]
        offset, length = ahead[start : start + tile], lengths[start : start + tile]
        hits = held[: high.shape[0]]
        for number in range(starts.shape[0]):
            hits[:] = 0
            for place in range(starts[number], ends[number]):
                item_high, item_low = items[place] >> HALF, items[place] & LOW31
                # Windows need no division.
                if stride == 1:
                    for index in range(high.shape[0]):
                        residue = residue61(high[index], low[index], offset[index], item_high, item_low)
                        hits[index] += np.uint64(residue < length[index])
                else:
                    for index in range(high.shape[0]):
                        residue = residue61(high[index], low[index], offset[index], item_high, item_low)
                        hits[index] += np.uint64(quotient(residue, inverse, twos) < length[index])
            sums[number] += _squared(hits, each)
