"""--population: the counts of a table, scaled from a sample of clients to all clients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from hushcount.arrays import FloatArray
from hushcount.oracles.estimates import Levels
from hushcount.questions.counted import Counted, Group
from hushcount.questions.population import scaled
from pipelines.jobs.table_files import schema_of
from pipelines.questions.added_columns import with_columns

SCHEMA = schema_of("population_count", "population_error", "population_low", "population_high")
"""Columns that `--population` adds: clients of the population, the standard error, and limits for all rows together.

The error contains that of the sample. All are null in a row of a count that discovery released.
"""


def with_population(
    table: pa.Table, results: Sequence[Counted], groups: Sequence[Group], population: int, looks: int
) -> pa.Table:
    """Return a table of items, sums or totals with the columns SCHEMA.

    Args:
        results, groups: as in `with_columns`.
        looks: rows that were looked at, for intervals that hold together (Bonferroni).

    Raises:
        UsageError: as in `hushcount.questions.population.scaled`.
    """
    confidence = 1.0 - (1.0 - Levels().confidence) / looks

    def columns(of: Sequence[Counted], wanted: Sequence[Group]) -> Iterable[FloatArray]:
        found = scaled(of, wanted, population, confidence)
        return found.count, found.error, found.low, found.high

    return with_columns(table, results, groups, SCHEMA, columns, chosen=lambda _: True)


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
