"""Bins: how many reports share a hash, and a uniform sample of their sealed values, in constant memory a bin.

Every sealed value gets a random 64-bit priority; a bin keeps the v of least priority. That is a uniform draw without
replacement, and the v least of two samples are the v least of their union, so samples merge in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.discovery import HASH_BYTES
from hushcount.randomness import UInt64Array, Words


@dataclass(frozen=True, eq=False)
class Bins:
    """Counts and samples of a set of bins.

    Attributes:
        hashes: S32[b], ascending.
        counts: int64[b].
        owner: int64[e], the bin of each sampled value, ascending; at most v of a bin.
        priority: uint64[e], ascending within a bin.
        sealed: S[e], the sampled sealed values.
    """

    hashes: npt.NDArray[np.bytes_]
    counts: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]
    priority: UInt64Array
    sealed: npt.NDArray[np.bytes_]


def no_bins(sealed_value_bytes: int) -> Bins:
    """Return the empty set of bins."""
    return Bins(
        np.zeros(0, f"S{HASH_BYTES}"),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros(0, np.uint64),
        np.zeros(0, f"S{sealed_value_bytes}"),
    )


def bins_of(pairs: bytes, sealed_value_bytes: int, values_per_bin: int, words: Words) -> Bins:
    """Count and sample a block of pairs, each a hash and a sealed value."""
    rows = np.frombuffer(pairs, dtype=[("hash", f"S{HASH_BYTES}"), ("sealed", f"S{sealed_value_bytes}")])
    hashes, owner, counts = np.unique(np.ascontiguousarray(rows["hash"]), return_inverse=True, return_counts=True)
    return _sampled(
        hashes, counts.astype(np.int64), owner.reshape(-1), words.words(len(rows)), rows["sealed"], values_per_bin
    )


def merge(left: Bins, right: Bins, values_per_bin: int) -> Bins:
    """Return the bins of both: counts added, the least priorities of both samples kept."""
    hashes, place = np.unique(np.concatenate([left.hashes, right.hashes]), return_inverse=True)
    place = place.reshape(-1)
    counts = np.zeros(len(hashes), dtype=np.int64)
    np.add.at(counts, place, np.concatenate([left.counts, right.counts]))
    owner = np.concatenate([place[left.owner], place[len(left.hashes) + right.owner]])
    priority = np.concatenate([left.priority, right.priority])
    sealed = np.concatenate([left.sealed, right.sealed])
    return _sampled(hashes, counts, owner, priority, sealed, values_per_bin)


def _sampled(
    hashes: npt.NDArray[np.bytes_],
    counts: npt.NDArray[np.int64],
    owner: npt.NDArray[np.int64],
    priority: UInt64Array,
    sealed: npt.NDArray[Any],
    values_per_bin: int,
) -> Bins:
    order = np.lexsort((priority, owner))
    ordered = owner[order]
    first = np.searchsorted(ordered, np.arange(len(hashes)))
    rank = np.arange(len(order)) - first[ordered]
    chosen = order[rank < values_per_bin]
    return Bins(hashes, counts, owner[chosen], priority[chosen], np.ascontiguousarray(sealed[chosen]))
