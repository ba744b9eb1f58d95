"""Places: records that must meet go to the same place, by their tag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hushcount.wire.tags import Tags

MOST_PLACES = 1 << 10
"""With more, a block would have too few records for each place."""
_PIECE_BYTES = 1 << 18
"""Flink groups in buffers, and each must hold a whole record."""


def split(records: np.ndarray[Any, Any], tagged: Tags, places: int) -> Iterator[tuple[int, bytes]]:
    """Yield places with blocks of their records, small enough for every engine.

    `tagged`, uint32[n, 4], are the tags: equal tags, one place. There are 1..MOST_PLACES places.
    """
    if places == 1:
        yield from ((0, piece) for piece in _pieces(records))
        return
    drawn = (tagged[:, 0] % np.uint32(places)).astype(np.uint16)
    order = np.argsort(drawn, kind="stable")
    ordered = np.take(records, order)
    counts = np.bincount(drawn, minlength=places)
    stops = np.cumsum(counts)
    for place in np.flatnonzero(counts):
        members = ordered[stops[place] - counts[place] : stops[place]]
        yield from ((int(place), piece) for piece in _pieces(members))


def _pieces(records: np.ndarray[Any, Any]) -> Iterator[bytes]:
    step = max(1, _PIECE_BYTES // records.itemsize)
    for start in range(0, len(records), step):
        yield records[start : start + step].tobytes()
