"""Pack counts of many items in many windows for a page: 10,000 items in 100 windows take about a megabyte."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from hushcount.arrays import BoolArray, FloatArray
from pipelines.pages.text import visible

Grain = Literal["window", "day", "week", "month"]
"""What one place of a series' time is."""
PIECE = 50
"""The number of items in a piece."""
_MISSING = -(2**31)
_MOST = 2**31 - 1
_FINE = 64.0
"""Number of rounding steps in half an interval of a window (the median interval).

Rounding to a step changes a number by about 1 % of its standard error.
"""


@dataclass(frozen=True, eq=False)
class Series:
    """Counts of items in windows, with intervals; a missing count is NaN.

    Attributes:
        items: names of the items.
        windows: names of the windows, the oldest first.
        times: begin and end of each window, in seconds since 1970-01-01T00:00:00Z.
        reports: number of reports in each window.
        count, low, high: float64[items, windows], users.
        found: bool[items, windows], whether the item is detected in the window.
        first: indexes of the items that the page draws before a reader chooses items.
        partial: indexes of the windows, as days or weeks, in which a window has no result.
    """

    items: tuple[str, ...]
    windows: tuple[str, ...]
    times: tuple[tuple[int, int], ...]
    reports: tuple[int, ...]
    count: FloatArray
    low: FloatArray
    high: FloatArray
    found: BoolArray
    first: tuple[int, ...] = ()
    partial: tuple[int, ...] = ()

    def of(self, places: Sequence[int]) -> Series:
        """Return the items at these places only."""
        rows = np.array(places, dtype=np.int64)
        parts = {name: getattr(self, name)[rows] for name in ("count", "low", "high", "found")}
        return replace(self, items=tuple(self.items[place] for place in places), first=(), **parts)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of all that pieces are made of."""
        facts = (self.items, self.windows, self.times, self.reports, self.partial, PIECE)
        numbers = (self.count, self.low, self.high, self.found)
        return hashlib.sha256(b"".join([repr(facts).encode(), *(part.tobytes() for part in numbers)])).digest()

    def piece(self, number: int) -> bytes:
        """Return the packed block of the items from number * PIECE on, at most PIECE; empty: there are none."""
        places = range(number * PIECE, min((number + 1) * PIECE, len(self.items)))
        return self.of(places).packed() if places else b""

    def opening(self) -> bytes:
        """Return the packed block of the items that are drawn first, whose head has the names of all items too."""
        known = {"all": [visible(item) for item in self.items], "places": self.first, "piece": PIECE}
        return self.of(self.first).packed(known)

    def packed(self, known: Mapping[str, object] | None = None) -> bytes:
        """Return a compressed block, which static/data.js reads; `known` is more for its head.

        The block consists of the length of a JSON head (uint32, little-endian), the head, three planes, for count,
        count - low and high - count, and one bit for each number, set if the item is detected. A plane has its numbers
        item by item, each number as a multiple of its window's step. A number is an int32 whose lowest bit is the sign.
        A plane has the lowest bytes of all numbers first, then the next bytes, so the highest bytes, which are nearly
        all 0, are together and take almost no space when compressed.
        """
        halves = (self.high - self.low) / 2.0
        # A window without counts has no intervals, and keeps steps of 1.
        there = np.isfinite(halves).any(axis=0)
        steps = np.ones(len(self.windows))
        if there.any():
            steps[there] = np.maximum(np.nanmedian(halves[:, there], axis=0) / _FINE, 1e-3)
        head = {
            "items": [visible(item) for item in self.items],
            "windows": [visible(window) for window in self.windows],
            "times": self.times,
            "reports": self.reports,
            "steps": steps.tolist(),
            "first": self.first,
            "partial": self.partial,
            **(known or {}),
        }
        encoded = json.dumps(head, ensure_ascii=False).encode()
        planes = [_plane(part / steps) for part in (self.count, self.count - self.low, self.high - self.count)]
        bits = np.packbits(self.found, axis=None, bitorder="little").tobytes()
        block = b"".join([struct.pack("<I", len(encoded)), encoded, *planes, bits])
        return zlib.compress(block, 9)


def _plane(numbers: FloatArray) -> bytes:
    there = np.isfinite(numbers)
    whole = np.full(numbers.shape, _MISSING, dtype=np.int64)
    whole[there] = np.clip(np.rint(numbers[there]), -_MOST, _MOST).astype(np.int64)
    folded = ((whole << 1) ^ (whole >> 63)).astype(np.uint64).astype("<u4")
    return folded.reshape(-1, 1).view(np.uint8).T.tobytes()
