"""Bins of pairs alone, where it does not matter in which boxes they came."""

from __future__ import annotations

from aux_server import bins
from hushcount.wire.tags import TAG_BYTES


def bins_of_pairs(pairs: bytes, pair_bytes: int) -> bins.Bins:
    """Count the equal pairs of a block, each in a box of its own."""
    starts = range(0, len(pairs), pair_bytes)
    tagged = (start.to_bytes(TAG_BYTES, "big") + pairs[start : start + pair_bytes] for start in starts)
    return bins.bins_of(b"".join(tagged), pair_bytes)
