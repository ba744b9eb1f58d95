"""Bins: how many reports hold the same pair of hash and sealed value.

Honest clients that hold a value make the same pair, byte for byte, so a bin has one sealed value and nothing is drawn.
A forged pair, another sealed value under the same hash, is a bin of its own and takes nothing from the honest one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Bins:
    """Counts of a set of bins.

    Attributes:
        pairs: S[b], ascending and distinct, each a hash and a sealed value.
        counts: int64[b].
    """

    pairs: npt.NDArray[np.bytes_]
    counts: npt.NDArray[np.int64]


def bins_of(pairs: bytes, pair_bytes: int) -> Bins:
    """Count the equal pairs of a block."""
    distinct, counts = np.unique(np.frombuffer(pairs, dtype=f"S{pair_bytes}"), return_counts=True)
    return Bins(distinct, counts.astype(np.int64))


def merge(left: Bins, right: Bins) -> Bins:
    """Return the bins of both, their counts added."""
    pairs, place = np.unique(np.concatenate([left.pairs, right.pairs]), return_inverse=True)
    counts = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(counts, place.reshape(-1), np.concatenate([left.counts, right.counts]))
    return Bins(pairs, counts)
