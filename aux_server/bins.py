"""Bins: how many reports hold the same pair of hash and sealed value.

Honest clients with the same value make the same pair, byte for byte, so a bin has one sealed value. A forged pair
(another sealed value under the same hash) has a bin of its own, and does not change the honest pair's count.

An honest client seals each report under a fresh ephemeral key, so no two honest reports are equal. Equal reports are
copies. A shuffler could copy one client's report until its value is common enough to be revealed, so copies count once.
The shuffler cannot seal the same content in another box, because it cannot open the client's box.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.wire.equality import first_of_equal, first_words, run_starts
from hushcount.wire.tags import TAG_BYTES


@dataclass(frozen=True, eq=False)
class Bins:
    """A set of bins.

    Attributes:
        pairs: S[b], distinct, each a hash and a sealed value.
        counts: int64[b], how many different reports hold each pair.
        copies: how many reports were not counted because they are copies of other reports.
    """

    pairs: npt.NDArray[np.bytes_]
    counts: npt.NDArray[np.int64]
    copies: int = 0


def counted_dtype(pair_bytes: int) -> np.dtype[Any]:
    """Return the dtype of a pair with its count, in which bins are sent between steps."""
    return np.dtype([("pair", f"S{pair_bytes}"), ("count", "<i8")])


def bins_of(block: bytes, pair_bytes: int) -> Bins:
    """Count the pairs in a block of records, each a report's tag and pair; records with equal tags count once."""
    records = np.frombuffer(block, dtype=[("tag", f"S{TAG_BYTES}"), ("pair", f"S{pair_bytes}")])
    pairs = records["pair"][first_of_equal(records["tag"])]
    return _grouped(pairs, np.ones(len(pairs), dtype=np.int64), len(records) - len(pairs))


def united(block: bytes, pair_bytes: int) -> Bins:
    """Add up the counts of equal pairs in a block of bins."""
    parts = np.frombuffer(block, dtype=counted_dtype(pair_bytes))
    return _grouped(parts["pair"], parts["count"], 0)


def _grouped(pairs: npt.NDArray[np.bytes_], counts: npt.NDArray[np.int64], copies: int) -> Bins:
    order, ordered, begins = in_runs(pairs)
    sums = np.add.reduceat(counts[order], begins) if len(begins) else np.zeros(0, dtype=np.int64)
    return Bins(ordered[begins], sums, copies)


def in_runs(
    pairs: npt.NDArray[np.bytes_],
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bytes_], npt.NDArray[np.intp]]:
    """Return an order of S[n] in which equal pairs are neighbours, the pairs in that order, and where each run begins.

    Pairs are sorted by their first eight bytes, part of a hash, which differ between different honest pairs. If forged
    pairs share these bytes, such pairs are sorted by all bytes.
    """
    words = first_words(pairs)
    order = np.argsort(words)
    words, ordered = words[order], pairs[order]
    begins = run_starts(ordered)
    inner = begins[1:]
    mixed = words[inner[words[inner] == words[inner - 1]]]
    if len(mixed):
        rows = np.flatnonzero(np.isin(words, mixed))
        # The rows are sorted by word first, so that the pairs of each word keep the positions that they had together.
        order[rows] = order[rows][np.lexsort((ordered[rows], words[rows]))]
        ordered = pairs[order]
        begins = run_starts(ordered)
    return order, ordered, begins
