"""Places: records that must meet are sent to one place each, by their tag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hushcount.tags import Tags

MOST_PLACES = 1 << 10
"""No more, so that a block that is read has enough records for each to be worth a piece of its own."""


def split(records: np.ndarray[Any, Any], tagged: Tags, places: int) -> Iterator[tuple[int, bytes]]:
    """Yield each place that a tag falls in, with its records in one block.

    Args:
        records: n of them.
        tagged: uint32[n, 4], what decides: equal tags, one place.
        places: how many there are, 1..MOST_PLACES.
    """
    if places == 1:
        yield 0, records.tobytes()
        return
    drawn = (tagged[:, 0] % np.uint32(places)).astype(np.uint16)
    order = np.argsort(drawn, kind="stable")
    ordered = np.take(records, order)
    counts = np.bincount(drawn, minlength=places)
    stops = np.cumsum(counts)
    for place in np.flatnonzero(counts):
        yield int(place), ordered[stops[place] - counts[place] : stops[place]].tobytes()
