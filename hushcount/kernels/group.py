"""Decode by slope: in the coordinate `y = a x` all reports with one slope, however many, are counted in one pass."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import Counts, UInt64Array
from hushcount.kernels.compiled import compiled
from hushcount.kernels.progressions import Progressions
from hushcount.kernels.residues import middle_of, residue_at, turn_of
from hushcount.threads import at_once


def group(counts: Counts, progressions: Progressions, items: UInt64Array, threads: int = 1) -> None:
    """Decode as `decoding.decode` says, in time proportional to distinct slopes times (P + c); threads share slopes.

    A progression is two steps of a difference array, four if it passes the end of the circle. Each slope takes one
    running sum of stride t and one gather along `x -> a x mod P`. P must be below 2**31, and there must be fewer than
    2**32 progressions. The more progressions a call has, the less time each progression takes.
    """
    if not len(progressions.slopes):
        return
    sizes = np.bincount(progressions.slopes.astype(np.intp))
    # The count at a residue is at most the number of progressions with the slope. So the smallest integer type for the
    # number of progressions counts exactly, although steps of -1 wrap around. A small table stays in the nearest cache.
    kind = np.min_scalar_type(int(sizes.max()))
    places = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    begins, lengths = _by_slope(progressions.slopes, places, progressions.begins, progressions.lengths)
    wanted, prime, stride = items.astype(np.uint64), progressions.prime, progressions.stride

    def count(span: tuple[int, int]) -> Counts:
        mine, steps = np.zeros_like(counts), np.zeros(prime + stride, dtype=kind)
        _group(mine, steps, *span, places, begins, lengths, stride, prime, wanted)
        return mine

    # Each thread gets about the same number of progressions, not of slopes.
    ends = np.searchsorted(places, np.linspace(0, places[-1], threads + 1)[1:-1])
    bounds = [0, *ends.tolist(), len(sizes)]
    for mine in at_once(count, list(pairwise(bounds)), threads):
        counts += mine


@compiled()
def _by_slope(
    slopes: UInt64Array, places: npt.NDArray[np.int64], begins: UInt64Array, lengths: UInt64Array
) -> tuple[UInt64Array, UInt64Array]:
    """Return the begins and lengths in the order of their slopes, by a counting sort."""
    sorted_begins, sorted_lengths = np.empty_like(begins), np.empty_like(lengths)
    nexts = places.copy()
    for index in range(slopes.shape[0]):
        place = nexts[slopes[index]]
        sorted_begins[place] = begins[index]
        sorted_lengths[place] = lengths[index]
        nexts[slopes[index]] = place + 1
    return sorted_begins, sorted_lengths


@compiled()
def _group(
    counts: Counts,
    steps: npt.NDArray[Any],
    first: int,
    beyond: int,
    places: npt.NDArray[np.int64],
    begins: UInt64Array,
    lengths: UInt64Array,
    stride: int,
    prime: int,
    items: UInt64Array,
) -> None:
    modulus, middle = np.uint64(prime), middle_of(np.uint64(prime))
    for slope in range(first, beyond):
        if places[slope] == places[slope + 1]:
            continue
        steps[:] = 0
        for place in range(places[slope], places[slope + 1]):
            _mark(steps, np.int64(begins[place]), np.int64(lengths[place]), stride, prime)
        # The height at a residue is the sum of every stride-th step up to this residue.
        if stride == 1:
            height = steps[0]
            for place in range(1, steps.shape[0]):
                height += steps[place]
                steps[place] = height
        else:
            for place in range(stride, steps.shape[0]):
                steps[place] += steps[place - stride]
        turn = turn_of(np.uint64(slope), modulus)
        for column in range(items.shape[0]):
            counts[column] += steps[residue_at(turn * items[column] + middle, modulus)]


@compiled(error_model="numpy")
def _mark(steps: npt.NDArray[Any], begin: int, length: int, stride: int, prime: int) -> None:
    """Mark where a progression begins and ends; the part beyond the end of the circle continues near 0."""
    before = min(length, (prime - 1 - begin) // stride + 1)
    end = begin + before * stride
    steps[begin] += 1
    steps[end] -= 1
    if before < length:
        steps[end - prime] += 1
        steps[end - prime + (length - before) * stride] -= 1
