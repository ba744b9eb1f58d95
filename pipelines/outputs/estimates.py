"""What estimating came to, as a summary says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Largest:
    """One of the largest counts: of users, its share of the reports, and its two errors added in squares."""

    item: str
    count: float
    share: float
    error: float


@dataclass(frozen=True)
class TableFacts:
    """A table of estimates: its rows, the levels of its intervals and detection, and how many rows are detected.

    Attributes:
        detected_all: of all rows looked at together; `detected` is of each alone.
    """

    items: int
    confidence: float
    false_positive_rate: float
    detected: int
    detected_all: int


@dataclass(frozen=True)
class Estimates:
    """What estimating came to.

    Attributes:
        table: None where no items were asked for.
        largest: counts of detected items, largest first.
        other: row of all items outside the dictionary, by column; None without a dictionary.
        whole_dictionary: whether the rows are the dictionary; None without one.
    """

    table: TableFacts | None
    largest: tuple[Largest, ...]
    other: Mapping[str, float] | None = None
    whole_dictionary: bool | None = None

    def data(self) -> dict[str, Any]:
        """Return it as it stands in a summary."""
        outside = {"other": self.other, "whole_dictionary": self.whole_dictionary}
        return {
            **(asdict(self.table) if self.table is not None else {}),
            "largest": [asdict(row) for row in self.largest],
            **(outside if self.other is not None else {}),
        }
