"""--population: the counts of a table, scaled from a sample of clients to all clients."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hushcount.oracles.estimates import Levels
from hushcount.questions.counted import Counted, Group
from hushcount.questions.population import scaled
from pipelines.jobs.table_files import schema_of

SCHEMA = schema_of("population_count", "population_error", "population_low", "population_high")
"""Columns that `--population` adds: clients of the population, the standard error, and limits for all rows together.

The error contains that of the sample. All are null in a row of a count that discovery released.
"""


def with_population(
    table: pa.Table, results: Sequence[Counted], groups: Sequence[Group], population: int, looks: int
) -> pa.Table:
    """Return a table of items, sums or totals with the columns SCHEMA.

    Args:
        results: those of the table; a row without a window is of all of them.
        groups: those of the rows; a row of no group is of the item with its name.
        looks: rows that were looked at, for intervals that hold together (Bonferroni).

    Raises:
        UsageError: as in `hushcount.questions.population.scaled`.
    """
    confidence = 1.0 - (1.0 - Levels().confidence) / looks
    named, rows = {group.name: group for group in groups}, table.to_pylist()
    # Rows of one window and epoch are of one result.
    parts: dict[tuple[Any, Any], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        if row.get("source") != "discovery":
            parts[row.get("window"), row.get("epoch")].append(number)
    columns: dict[str, list[float | None]] = {name: [None] * len(rows) for name in SCHEMA.names}
    for (window, epoch), numbers in parts.items():
        of = [one for one in results if window is None or (one.window, one.campaign.epoch) == (window, epoch)]
        wanted = [named.get(name) or Group(name, (name,)) for name in (_name(rows[number]) for number in numbers)]
        found = scaled(of, [_counted(group, of) for group in wanted], population, confidence)
        for name, values in zip(SCHEMA.names, (found.count, found.error, found.low, found.high), strict=True):
            for number, value in zip(numbers, values.tolist(), strict=True):
                columns[name][number] = value
    for field in SCHEMA:
        table = table.append_column(field, pa.array(columns[field.name], field.type))
    return table


def in_population(table: pa.Table, population: int) -> pa.Table:
    """Return a table of `with_population` for people: counts, errors and limits are those of the population."""
    rows = [
        {
            **row,
            "reports": population,
            "count": row["population_count"],
            "standard_error": row["population_error"],
            "collision_error": 0.0,
            **dict.fromkeys(("low", "low_all"), row["population_low"]),
            **dict.fromkeys(("high", "high_all"), row["population_high"]),
            **({"combined": None} if "combined" in row else {}),
        }
        for row in table.to_pylist()
        if row["population_count"] is not None
    ]
    return pa.Table.from_pylist(rows, table.schema)


def _name(row: dict[str, Any]) -> str:
    return str(row["group"] if "group" in row else row["item"])


def _counted(group: Group, results: Sequence[Counted]) -> Group:
    """Return the items of a group that were counted."""
    lacking = {item for one in results for item in one.lacks(group.items)}
    return replace(group, items=tuple(item for item in group.items if item not in lacking)) if lacking else group
