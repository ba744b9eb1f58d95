"""Sums of items with standard errors, for groups that the deployment names and for levels of items' paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hushcount.errors import UsageError
from hushcount.questions.counted import Group
from hushcount.questions.selecting import by_prefix, parent_of
from pipelines.monitoring.panel_campaign import Shown
from pipelines.pages.figures import Block, Figure, Prose, Row, Span
from pipelines.pages.text import sentence
from pipelines.questions.findings import share_of, state_of
from pipelines.questions.selection import declared_groups
from pipelines.questions.sums import sums_table

_SEPARATORS = ("/", "::", ".")
_DEPTH = 4
_MOST_ROWS = 1500
_HEADS = ("group", "items", "count", "from", "to", "from, all", "to, all", "share", "state, among all")
_NOTES = (
    "Sums in the newest window, with 95 % intervals: thick lines for each sum alone, thin lines for all sums together. "
    "Each sum has its own error, which does not follow from the errors of its items.",
)


def groups_of(shown: Shown) -> Iterator[Block]:
    """Yield a figure of the groups that the deployment names, and a figure of path levels if most items are paths."""
    declared = declared_groups(shown.source)
    if declared:
        yield _summed(shown, "groups", "Groups", declared, None)
    items = shown.source.followed
    separator = _separator(items)
    if separator is None:
        return
    heading, nodes = f"Items by parts of their paths, parted by {separator}", levels(items, separator)
    if nodes:
        yield _summed(shown, "paths", heading, nodes, separator)
    else:
        says = f"More than {_MOST_ROWS:,} first parts are too many for a page: hushcount ask sum --by-prefix has all."
        yield Prose(f"{shown.key}-paths", heading, (says,))


def levels(items: Sequence[str], separator: str) -> tuple[Group, ...]:
    """Return the groups of paths by their first parts, at the deepest level that fits on a page; empty if none fits."""
    parts = (by_prefix(items, separator, depth) for depth in range(_DEPTH, 0, -1))
    return next((nodes for nodes in parts if len(nodes) <= _MOST_ROWS), ())


def _separator(items: Sequence[str]) -> str | None:
    """Return the separator that occurs inside more than half of the items, or None."""
    parted = {one: sum(one in item.strip(one) for item in items) for one in _SEPARATORS}
    return next((one for one, number in parted.items() if 2 * number > len(items)), None)


def _summed(shown: Shown, key: str, heading: str, groups: Sequence[Group], separator: str | None) -> Block:
    key = f"{shown.key}-{key}"
    newest = shown.newest.counted[-1]
    known = [group for group in groups if len(newest.lacks(group.items)) < len(group.items)]
    try:
        table = sums_table([newest], known) if known else None
    except UsageError as error:
        return Prose(key, heading, (sentence(error),))
    if table is None:
        return Prose(key, heading, ("The newest result knows none of their items.",))
    rows = tuple(_row(row, separator) for row in table.sort_by([("count", "descending")]).to_pylist())
    detected = sum(row.drawn.strong for row in rows if isinstance(row.drawn, Span))
    says = (f"{detected:,} of {len(rows):,} are detected.",)
    drills = separator is not None
    return Figure(key, heading, says, "intervals", _HEADS, rows, axis="reports", drills=drills, notes=_NOTES)


def _row(row: dict[str, Any], separator: str | None) -> Row:
    low, high, low_all, high_all = (row[name] for name in ("low", "high", "low_all", "high_all"))
    numbers = [f"{number:,.0f}" for number in (row["count"], low, high, low_all, high_all)]
    share = share_of(row["count"], row["reports"])
    cells = (f"{row['items']:,}", *numbers, f"{share:.2%}", state_of(row))
    parent = "" if separator is None else parent_of(row["group"], separator) or ""
    # The deployment names groups, and nobody names the parts of paths.
    strong, named = state_of(row) == "detected", separator is None
    drawn = Span(row["count"], low, high, low_all, high_all, strong, row["group"], parent, named)
    return Row(row["group"], cells, drawn, facts={**row, "share": share})
