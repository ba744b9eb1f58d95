"""Estimates as a summary shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Largest:
    """A count of users, its share of the reports, and its two errors added in squares."""

    item: str
    count: float
    share: float
    error: float


@dataclass(frozen=True)
class TableFacts:
    """Rows of a table of estimates, levels of its intervals and of detection, and detected rows: each alone, or all."""

    items: int
    confidence: float
    false_positive_rate: float
    detected: int
    detected_all: int


@dataclass(frozen=True)
class Estimates:
    """The estimates of one tally.

    Attributes:
        table: None: no items were asked for.
        largest: counts of detected items, largest first.
        other: columns of the row of all items outside the dictionary; None without a dictionary.
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
