"""Columns that options add to a table of items, sums or totals: each row is computed from the results of its window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hushcount.arrays import FloatArray
from hushcount.questions.counted import Counted, Group

Columns = Callable[[Sequence[Counted], Sequence[Group]], Iterable[FloatArray]]
"""Computes the values of each column for some groups in results that are added up; NaN: the row has no value."""


def with_columns(
    table: pa.Table,
    results: Sequence[Counted],
    groups: Sequence[Group],
    schema: pa.Schema,
    columns: Columns,
    chosen: Callable[[dict[str, Any]], bool],
) -> pa.Table:
    """Return a table with more columns.

    Args:
        results: those of the table; a row without a window is of all of them.
        groups: those of the rows; a row of no group is of the item with its name.
        schema: of the new columns.
        chosen: whether a row has values; all are null in other rows.
    """
    named, rows = {group.name: group for group in groups}, table.to_pylist()
    # Rows of one window and epoch are of one result.
    parts: dict[tuple[Any, Any], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        if row.get("source") != "discovery" and chosen(row):
            parts[row.get("window"), row.get("epoch")].append(number)
    added: dict[str, list[float | None]] = {name: [None] * len(rows) for name in schema.names}
    for (window, epoch), numbers in parts.items():
        of = [one for one in results if window is None or (one.window, one.campaign.epoch) == (window, epoch)]
        wanted = [named.get(name) or Group(name, (name,)) for name in (_name(rows[number]) for number in numbers)]
        for name, values in zip(schema.names, columns(of, [_counted(group, of) for group in wanted]), strict=True):
            for number, value in zip(numbers, values.tolist(), strict=True):
                added[name][number] = value
    for field in schema:
        table = table.append_column(field, pa.array(added[field.name], field.type, from_pandas=True))
    return table


def _name(row: dict[str, Any]) -> str:
    return str(row["group"] if "group" in row else row["item"])


def _counted(group: Group, results: Sequence[Counted]) -> Group:
    """Return the items of a group that were counted."""
    lacking = {item for one in results for item in one.lacks(group.items)}
    return replace(group, items=tuple(item for item in group.items if item not in lacking)) if lacking else group
