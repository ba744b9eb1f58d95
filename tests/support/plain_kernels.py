"""Plain twins of compiled loops: what they must compute, in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushcount.arrays import Counts, UInt64Array
from hushcount.kernels.progressions import Progressions
from hushcount.maths import field61

_CHUNK_HASHES = 1 << 20


def walk_numpy(counts: Counts, progressions: Progressions, items: UInt64Array) -> None:
    """The twin of `walk`."""
    prime = progressions.prime
    everywhere = np.zeros(prime, dtype=np.int64)
    rows: Any = zip(progressions.slopes, progressions.begins, progressions.lengths, strict=True)
    for slope, begin, length in rows:
        inverse = np.uint64(pow(int(slope), -1, prime))
        residues = (begin + np.uint64(progressions.stride) * np.arange(length, dtype=np.uint64)) % np.uint64(prime)
        np.add.at(everywhere, inverse * residues % np.uint64(prime), 1)
    counts += everywhere[items]


def group_numpy(counts: Counts, progressions: Progressions, items: UInt64Array) -> None:
    """The twin of `group`."""
    prime, stride = progressions.prime, progressions.stride
    rows = -(-(prime + stride) // stride)
    for slope in np.unique(progressions.slopes):
        chosen = progressions.slopes == slope
        begins, lengths = progressions.begins[chosen].astype(np.int64), progressions.lengths[chosen].astype(np.int64)
        before = np.minimum(lengths, (prime - 1 - begins) // stride + 1)
        ends = begins + before * stride
        turned = before < lengths
        steps = np.zeros(rows * stride, dtype=np.int64)
        np.add.at(steps, begins, 1)
        np.add.at(steps, ends, -1)
        np.add.at(steps, ends[turned] - prime, 1)
        np.add.at(steps, (ends + (lengths - before) * stride)[turned] - prime, -1)
        heights = steps.reshape(rows, stride).cumsum(axis=0).reshape(-1)
        counts += heights[items * slope % np.uint64(prime)]


def count_by_definition(counts: Counts, progressions: Progressions, items: UInt64Array) -> None:
    """Add to int64[c] how many progressions hold each item, item by item: the oracle of the compiled ways."""
    prime = np.uint64(progressions.prime)
    stride = np.uint64(progressions.stride)
    for column, item in enumerate(items):
        if progressions.prime == field61.PRIME:
            residues = field61.multiply(progressions.slopes, item)
        else:
            residues = progressions.slopes * item % prime
        steps, rest = np.divmod((residues + prime - progressions.begins) % prime, stride)
        counts[column] += np.count_nonzero((rest == 0) & (steps < progressions.lengths))


def sum_of_cells_numpy(matrix: Counts, table: UInt64Array, cells: int, items: UInt64Array) -> Counts:
    """The twin of `sum_of_cells`."""
    flat, width = matrix.reshape(-1), np.uint64(matrix.shape[1])
    offsets = (np.arange(len(matrix), dtype=np.uint64) * width)[:, None]
    counts = np.empty(len(items), dtype=np.int64)
    step = max(1, _CHUNK_HASHES // len(matrix))
    for start in range(0, len(items), step):
        some = items[None, start : start + step]
        value = field61.add(field61.multiply(table[2][:, None], some), table[1][:, None])
        value = field61.add(field61.multiply(value, some), table[0][:, None])
        counts[start : start + step] = flat[value % np.uint64(cells) + offsets].sum(axis=0)
    return counts
