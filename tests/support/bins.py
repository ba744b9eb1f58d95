"""Bins of pairs alone, where it does not matter in which boxes they came."""

from __future__ import annotations

from aux_server.bins import Bins
from aux_server.boxes import MARK_BYTES, boxes_of


def bins_of(pairs: bytes, pair_bytes: int) -> Bins:
    """Count the equal pairs of a block, each in a box of its own."""
    starts = range(0, len(pairs), pair_bytes)
    marked = (start.to_bytes(MARK_BYTES, "big") + pairs[start : start + pair_bytes] for start in starts)
    return boxes_of(b"".join(marked), pair_bytes).bins
