"""Groups of items: those that the deployment names, and the levels of items that are paths, each with its own error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from hushcount.errors import UsageError
from hushcount.questions.counted import Group
from hushcount.questions.selecting import by_prefix, parent_of
from pipelines.monitoring.panel_campaign import Shown
from pipelines.pages.figures import Block, Figure, Prose, Row, Span
from pipelines.questions.selection import declared_groups
from pipelines.questions.sums import sums_table

_SEPARATORS = ("/", "::", ".")
_DEPTH = 4
_MOST_NODES = 50_000
_MOST_ROWS = 1500
_TOP, _PARTS = 100, (100, 40, 20, 10, 5)
"""How many rows at the top, and parts of each node, a page shows if all are too many."""
_HEADS = ("group", "items", "count", "from", "to", "from, all", "to, all", "share", "detected among all")
_SAYS = (
    "Sums in the newest window, with 95 % intervals: thick lines for each alone, thin ones for all together. The error "
    "of a sum is its own; it does not follow from the errors of its items."
)


def groups_of(shown: Shown) -> Iterator[Block]:
    """Yield the groups that the deployment names, and roll-ups if most items are paths."""
    declared = declared_groups(shown.source)
    if declared:
        yield _summed(shown, "groups", "Groups", declared, None)
    items = shown.source.followed
    separator = _separator(items)
    if separator is None:
        return
    for depth in range(_DEPTH, 0, -1):
        nodes = by_prefix(items, separator, depth)
        if len(nodes) <= _MOST_NODES:
            yield _summed(shown, "paths", f"Items by parts of their paths, parted by {separator}", nodes, separator)
            return
    says = f"The {len(nodes):,} first parts are too many for a page: ask hushcount ask sum --by-prefix."
    yield Prose(f"{shown.key}-paths", "Items by parts of their paths", (says,))


def _separator(items: Sequence[str]) -> str | None:
    """Return what parts most of the items inside; None if nothing does."""
    parted = {one: sum(one in item.strip(one) for item in items) for one in _SEPARATORS}
    return next((one for one, number in parted.items() if 2 * number > len(items)), None)


def _summed(shown: Shown, key: str, heading: str, groups: Sequence[Group], separator: str | None) -> Block:
    key = f"{shown.key}-{key}"
    newest = shown.newest.counted[-1]
    known = [group for group in groups if len(newest.lacks(group.items)) < len(group.items)]
    try:
        table = sums_table([newest], known) if known else None
    except UsageError as error:
        return Prose(key, heading, (f"{error}.",))
    if table is None:
        return Prose(key, heading, ("The newest result knows none of their items.",))
    drills = separator is not None
    rows = tuple(_row(row, separator) for row in _ordered(table))
    kept = largest(rows) if drills else rows
    says: tuple[str, ...] = (_SAYS,)
    if len(kept) < len(rows):
        says = (_SAYS, f"The largest {len(kept):,} of {len(rows):,} parts are shown: hushcount ask sum has all.")
    return Figure(key, heading, says, "intervals", _HEADS, kept, axis="reports", drills=drills)


def largest(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return rows of a tree, the largest first, without those that are too many for a page, and what is below them."""
    kept = tuple(rows)
    for most in _PARTS:
        if len(kept) <= _MOST_ROWS:
            break
        kept = tuple(_pruned(rows, most))
    return kept


def _pruned(rows: Sequence[Row], most: int) -> Iterator[Row]:
    """Yield the largest parts of each node, as long as the node is there itself."""
    above = dict(map(_place, rows))
    parts: Counter[str] = Counter()
    first = set()
    for path, parent in above.items():
        parts[parent] += 1
        if parts[parent] <= (most if parent else _TOP):
            first.add(path)
    for row in rows:
        path, _ = _place(row)
        while path in first:
            path = above[path]
        if path == "":
            yield row


def _place(row: Row) -> tuple[str, str]:
    return (row.drawn.path, row.drawn.parent) if isinstance(row.drawn, Span) else ("", "")


def _ordered(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.sort_by([("count", "descending")]).to_pylist()
    return rows


def _row(row: dict[str, Any], separator: str | None) -> Row:
    low, high, low_all, high_all = (row[name] for name in ("low", "high", "low_all", "high_all"))
    numbers = [f"{number:,.0f}" for number in (row["count"], low, high, low_all, high_all)]
    cells = (f"{row['items']:,}", *numbers, f"{row['share']:.2%}", "yes" if row["detected_all"] else "")
    parent = "" if separator is None else parent_of(row["group"], separator) or ""
    drawn = Span(row["count"], low, high, low_all, high_all, row["detected_all"], row["group"], parent)
    return Row(row["group"], cells, drawn)
