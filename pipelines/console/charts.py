"""Charts of one line for a terminal: a bar with its interval, and a line of small columns over windows.

An encoding that lacks these letters gets plain ones (`pipelines.entry`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FULL, TAIL = "\u2588", "\u2591"
COLUMNS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
ABSENT = "\u00b7"
PLAIN = {**dict(zip(COLUMNS, "_.-=+*%#", strict=True)), TAIL: "-", ABSENT: " "}
"""A letter of ASCII for each letter of a chart."""


@dataclass(frozen=True)
class Bar:
    """A bar of an interval: full up to `low`, and lighter from there to `high`; both are parts of the whole, 0..1."""

    low: float
    high: float

    def drawn(self, width: int) -> str:
        """Return the bar, `width` characters at most and one at least."""
        full, end = (round(part * width) for part in (self.low, self.high))
        return FULL * full + TAIL * (max(end, 1) - full)


def sparkline(values: Sequence[float | None]) -> str:
    """Return a column for each value, of at least 0, in parts of the largest value; a dot for None."""
    most = max((value for value in values if value is not None), default=0.0) or 1.0
    places = [None if value is None else round(value / most * (len(COLUMNS) - 1)) for value in values]
    return "".join(ABSENT if place is None else COLUMNS[place] for place in places)
