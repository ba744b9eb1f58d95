"""Decoding and its cost: operations and estimated seconds of one thread, for plans and for the choice of a method.

Three exact methods give the same counts of affine reports (docs/mathematics.md section 4), so only time decides:
- *walk*: add 1 to every item that a report supports;
- *group*: count all reports with one slope together, in the coordinate where their windows are intervals;
- *candidates*: compare every report with every wanted item, many in one machine instruction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hushcount.arrays import Counts, UInt64Array
from hushcount.kernels.progressions import Progressions
from hushcount.maths import field61
from hushcount.threads import available_threads

AT_ONCE = 1 << 21
"""The most progressions in one call, at about 50 bytes each; in larger calls `group` needs less time for each."""

CELL_NS = 3.0
BIT_NS = 0.9
HASH_NS = 40.0
BUTTERFLY_NS = 2.0
"""Nanoseconds to count a supported cell, to count a bit, to hash an item into a row and look it up, and to do one step
of the fast transform: estimates that `hushcount simulate` measured on one thread of a 2-core server."""
# Nanoseconds of one thread of an AMD EPYC (Zen 4, AVX-512), as benchmarks/decode.py measures them. A table has pairs of
# largest prime and nanoseconds: counters for a larger prime do not fit into the nearest cache, or into the next cache.
_WALK_STEP = ((1 << 17, 0.60), (1 << 20, 1.1), (1 << 23, 2.2), (1 << 31, 8.0))
_WALK_REPORT, _WALK_SLOPE, _WALK_RESIDUE = 10.0, 60.0, 3.0
_GROUP_RESIDUE, _GROUP_RESIDUE_STRIDED = 0.33, 0.55
_GROUP_ITEM = ((1 << 17, 0.66), (1 << 20, 1.3), (1 << 23, 2.5), (1 << 31, 8.0))
_GROUP_REPORT = 15.0
_CANDIDATE_WINDOW = ((1 << 16, 0.053), (1 << 31, 0.105), (field61.PRIME, 0.50))
_CANDIDATE_BUCKET = ((1 << 31, 0.21), (field61.PRIME, 0.65))
_CANDIDATE_REPORT = 30.0
_WORTH_A_THREAD = 0.01
"""The seconds of work from which on one more thread saves time."""


@dataclass(frozen=True)
class DecodeCost:
    """The cost of decoding.

    Attributes:
        way: "walk", "group" or "candidates" for affine reports; "cells" if cells are tallied.
        operations: the number of steps of the inner loops.
        seconds: of one thread of the reference machine; machines without wide vector units take much longer.
    """

    way: str
    operations: float
    seconds: float


@dataclass(frozen=True)
class CountCost:
    """The cost of adding cells to a tally: the number of cells or bits to count, and nanoseconds of one thread."""

    operations: float
    nanoseconds: float


def cells_cost(count: CountCost, items: int, transform: float = 0.0, hashes: float = 0.0) -> DecodeCost:
    """Return the cost to tally cells, to do the steps of the fast transform, to hash, and to look up each item."""
    nanoseconds = count.nanoseconds + transform * BUTTERFLY_NS + hashes * HASH_NS + items
    return DecodeCost("cells", count.operations + transform + hashes + items, nanoseconds * 1e-9)


@dataclass(frozen=True)
class DecodeLoad:
    """The amount to decode: r progressions of stride t modulo P, their mean length in residues, and c items."""

    progressions: int
    prime: int
    length: float
    items: int
    stride: int = 1

    @property
    def slopes(self) -> float:
        """The expected number of distinct slopes of r reports, among `(P-1)/2` slopes."""
        slopes = max(1.0, (self.prime - 1) / 2)
        return -slopes * math.expm1(-self.progressions / slopes)


def walk_cost(load: DecodeLoad) -> DecodeCost:
    """The cost is `r (length)` steps, an inverse for each distinct slope, and one pass over P counters."""
    steps = load.progressions * load.length
    nanoseconds = (
        steps * _at(_WALK_STEP, load.prime)
        + load.progressions * _WALK_REPORT
        + load.slopes * _WALK_SLOPE
        + load.prime * _WALK_RESIDUE
    )
    return DecodeCost("walk", steps + load.prime, nanoseconds * 1e-9)


def group_cost(load: DecodeLoad) -> DecodeCost:
    """The cost is `A (P + c)` operations for A distinct slopes: a running sum and a gather for each slope."""
    residue = _GROUP_RESIDUE if load.stride == 1 else _GROUP_RESIDUE_STRIDED
    each = load.prime * residue + load.items * _at(_GROUP_ITEM, load.prime)
    operations = load.slopes * (load.prime + load.items) + load.progressions
    return DecodeCost("group", operations, (load.slopes * each + load.progressions * _GROUP_REPORT) * 1e-9)


def candidates_cost(load: DecodeLoad) -> DecodeCost:
    """The cost is `r c` tests, one for each progression and item."""
    pairs = float(load.progressions) * load.items
    pair = _at(_CANDIDATE_WINDOW if load.stride == 1 else _CANDIDATE_BUCKET, load.prime)
    return DecodeCost("candidates", pairs, (pairs * pair + load.progressions * _CANDIDATE_REPORT) * 1e-9)


def cheapest(load: DecodeLoad) -> DecodeCost:
    """Return the cost of the fastest method; modulo 2**61 - 1 there is only one method."""
    ways = (candidates_cost,) if load.prime == field61.PRIME else (candidates_cost, walk_cost, group_cost)
    return min((way(load) for way in ways), key=lambda cost: cost.seconds)


def threads_for(cost: DecodeCost) -> int:
    """Return the number of threads to decode with: at most all cores, fewer if there is little work."""
    return max(1, min(available_threads(), int(cost.seconds / _WORTH_A_THREAD)))


def decode(counts: Counts, progressions: Progressions, items: UInt64Array, threads: int | None = None) -> None:
    """Add to int64[c] how many progressions contain each of uint64[c] items, by the cheapest method.

    Args:
        counts: changed in place.
        progressions: of one stride.
        items: below P.
        threads: number of threads; None for `threads_for`.
    """
    if not (len(items) and len(progressions.slopes)):
        return
    # Imported here: clients encode without numba, only servers decode.
    from hushcount.kernels.candidates import candidates
    from hushcount.kernels.group import group
    from hushcount.kernels.walk import walk

    length = float(progressions.lengths.mean())
    cost = cheapest(DecodeLoad(len(progressions.slopes), progressions.prime, length, len(items), progressions.stride))
    threads = threads or threads_for(cost)
    {"candidates": candidates, "group": group, "walk": walk}[cost.way](counts, progressions, items, threads)


def _at(table: tuple[tuple[int, float], ...], prime: int) -> float:
    return next(value for bound, value in table if prime <= bound)
