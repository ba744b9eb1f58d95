"""Decode by visiting the items that each report supports: the inner loop has one addition and no division."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Counts, UInt64Array
from hushcount.kernels.compiled import compiled
from hushcount.kernels.progressions import Progressions
from hushcount.kernels.residues import middle_of, residue_at, turn_of
from hushcount.threads import at_once, spans


def walk(counts: Counts, progressions: Progressions, items: UInt64Array, threads: int = 1) -> None:
    """Decode as `decoding.decode` says, in time proportional to the residues in all progressions; threads share them.

    The items of a progression form a progression too: `x = a^-1 (begin + j t) mod P`. P must be below 2**31, and there
    must be fewer than 2**32 progressions.
    """
    slopes, begins, lengths = progressions.slopes, progressions.begins, progressions.lengths
    if not len(slopes):
        return
    highest = int(slopes.max())

    def count(rows: slice) -> npt.NDArray[np.uint32]:
        everywhere = np.zeros(progressions.prime, dtype=np.uint32)
        turned = np.zeros(highest + 1, dtype=np.uint64)
        stride, prime = np.uint64(progressions.stride), np.uint64(progressions.prime)
        _walk(everywhere, turned, slopes[rows], begins[rows], lengths[rows], stride, prime)
        return everywhere

    for everywhere in at_once(count, spans(len(slopes), threads), threads):
        counts += everywhere[items]


@compiled()
def _walk(
    counts: npt.NDArray[np.uint32],
    turned: UInt64Array,
    slopes: UInt64Array,
    begins: UInt64Array,
    lengths: UInt64Array,
    stride: np.uint64,
    prime: np.uint64,
) -> None:
    """`turned` caches the turn of each slope's inverse, because slopes repeat; no turn is 0, so 0 means not cached."""
    middle = middle_of(prime)
    for index in range(slopes.shape[0]):
        slope = slopes[index]
        turn = turned[slope]
        if turn == 0:
            turn = turn_of(_inverse(slope, prime), prime)
            turned[slope] = turn
        place = turn * begins[index] + middle
        step = turn * stride
        for _ in range(lengths[index]):
            counts[residue_at(place, prime)] += np.uint32(1)
            place += step


@compiled(error_model="numpy")
def _inverse(value: np.uint64, prime: np.uint64) -> np.uint64:
    """Return the inverse modulo the prime, by Euclid's algorithm."""
    greater, less = np.int64(prime), np.int64(value)
    before, factor = np.int64(0), np.int64(1)
    while less > 1:
        quotient = greater // less
        greater, less = less, greater - quotient * less
        before, factor = factor, before - quotient * factor
    return np.uint64(factor if factor > 0 else factor + np.int64(prime))
