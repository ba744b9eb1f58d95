"""The one rule for a finding, which tables, sentences, JSON and the page ask: noise is never shown as a finding.

A count is a finding if its row is detected among all rows looked at together (`detected_all`). A change is a finding if
it is significant among all rows (`significant`). If the question named a row, the row is shown in any case, with its
state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, Protocol

Row = Mapping[str, Any]
State = Literal["detected", "not detected"]
Verdict = Literal["rise", "fall", "not significant"]


class Compared(Protocol):
    """A row of a comparison."""

    @property
    def significant(self) -> bool:
        """Whether the difference is significant among all rows."""

    @property
    def difference(self) -> float:
        """The difference of two shares."""


def state_of(row: Row) -> State:
    """Return the state of a count; `row`: of `items_table`, `sums_table`, `totals_table` or `top_table`."""
    return "detected" if row["detected_all"] else "not detected"


def verdict_of(change: Compared) -> Verdict:
    """Return whether a share rose or fell, corrected for all rows."""
    if not change.significant:
        return "not significant"
    return "rise" if change.difference > 0.0 else "fall"


def findings(rows: Iterable[Row], named: Collection[str] = (), head: str = "item") -> list[Row]:
    """Return the rows that may be shown, in their order: detected rows, and rows that the question named.

    Args:
        named: the items or groups that the question named.
        head: the column of the names.
    """
    return [row for row in rows if state_of(row) == "detected" or row[head] in named]


def share_of(count: float, reports: float) -> float:
    """Return a count, or a limit of a count, as a share of the reports, within 0..1."""
    return min(max(count / reports, 0.0), 1.0)
