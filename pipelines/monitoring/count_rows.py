"""The row of a count in a figure: its interval, its share and its state, beside what is drawn of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.pages.figures import Row, Span
from pipelines.questions.findings import share_of, state_of

_ENDS = ("low", "high", "low_all", "high_all")
HEADS = ("count", "from", "to", "from, all", "to, all", "share", "state, among all")
"""Heads of the cells after the name."""


def count_row(name: str, row: Mapping[str, Any], reports: int) -> Row:
    """Return the row of a count among `reports`, drawn in any case; `row`: as `estimate_table` has it."""
    share, state = share_of(row["count"], reports), state_of(row)
    low, high, low_all, high_all = (row[end] for end in _ENDS)
    numbers = [f"{number:,.0f}" for number in (row["count"], low, high, low_all, high_all)]
    drawn = Span(row["count"], low, high, low_all, high_all, state == "detected", named=True)
    return Row(name, (*numbers, f"{share:.2%}", state), drawn, facts={**row, "share": share})
