"""Write a result as a table of the data set: estimates, "other", and counts of discovered values (docs/data.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.epochs import FINGERPRINT_DIGITS
from hushcount.collection.windows import Window
from hushcount.discovery.found_counts import count_estimates
from hushcount.formats.parquet import parquet_bytes
from hushcount.oracles.catalogue import frequency_oracle
from hushcount.oracles.estimates import Levels
from hushcount.oracles.tally import Tally
from hushcount.results import COLUMNS, schema
from pipelines.jobs.found import COMBINED_COLUMNS, FOUND, count_law_of, shown_counts

_OF_ROW = ("item", "other", "source", "count", "standard_error", "collision_error", "low", "high", "low_all",
           "high_all", "detected", "detected_all", "combined", "combined_error")  # fmt: skip


def data_set_bytes(
    campaign: Campaign,
    tally: Tally,
    levels: Levels,
    estimates: pa.Table | None,
    other: Mapping[str, Any] | None,
    counts: pa.Table | None,
    window: Window | None,
) -> bytes:
    """Return a result as the bytes of a file: rows with the columns of `hushcount.results`, the largest count first.

    Args:
        estimates: a table with the columns of estimates.csv; None: no items were asked for.
        other: the last row, for all values outside the dictionary; None in an open domain.
        counts: counts of values discovered in the same batch, with COMBINED_COLUMNS if the counts were combined with
            the estimates; None: there are no such counts.
        window: the window at the end of which the batch was made; None: not known.
    """
    parts = [] if estimates is None else [_estimated(estimates, counts)]
    if counts is not None:
        parts += _found(campaign, tally, counts, levels, estimates)
    rows = pa.concat_tables(parts or [_part({}, "estimate", 0)])
    rows = rows.sort_by([("count", "descending"), ("item", "ascending")])
    if other is not None:
        last = _part({name: [value] for name, value in other.items()}, "estimate", 1, other=True)
        rows = pa.concat_tables([rows, last])
    return _file_bytes(_whole(rows, campaign, window, tally.reports, levels))


def _estimated(estimates: pa.Table, counts: pa.Table | None) -> pa.Table:
    """Return a row for each estimate, with the value's combined count if it has one."""
    columns: dict[str, Any] = {name: estimates[name] for name in estimates.column_names}
    for name in COMBINED_COLUMNS[2:]:
        if counts is not None and name in counts.column_names:
            known = dict(zip(counts["item"].to_pylist(), counts[name].to_pylist(), strict=True))
            columns[name] = [known.get(item) for item in estimates["item"].to_pylist()]
    return _part(columns, "estimate", len(estimates))


def _found(
    campaign: Campaign, tally: Tally, counts: pa.Table, levels: Levels, estimates: pa.Table | None
) -> list[pa.Table]:
    """Return a row with the noisy count of each discovered value that has no estimate."""
    law = count_law_of(campaign, tally.senders)
    there = set() if estimates is None else {*estimates["item"].to_pylist()}
    here = counts.filter(pa.array([item not in there for item in counts["item"].to_pylist()], pa.bool_()))
    if law is None or not len(here):
        return []
    drawn = shown_counts(here, law, FOUND)
    each, together = (count_estimates(law, drawn, 1.0 - (1.0 - levels.confidence) / n) for n in (1, len(here)))
    columns = {
        "item": here["item"],
        "count": each.count,
        "standard_error": each.standard_error,
        "collision_error": np.zeros(len(here)),
        "low": each.low,
        "high": each.high,
        "low_all": together.low,
        "high_all": together.high,
        "detected": np.ones(len(here), dtype=np.bool_),
        "detected_all": np.ones(len(here), dtype=np.bool_),
    }
    return [_part(columns, "discovery", len(here))]


def _part(columns: Mapping[str, Any], source: str, rows: int, *, other: bool = False) -> pa.Table:
    """Return rows from one source ("estimate" or "discovery"); a column that is not in `columns` is empty."""
    of_row = schema()
    given = {**columns, "source": [source] * rows, "other": [other] * rows}
    made = {}
    for field in (of_row.field(name) for name in _OF_ROW):
        column = given.get(field.name, pa.nulls(rows, field.type))
        made[field.name] = (column if isinstance(column, pa.ChunkedArray) else pa.array(column)).cast(field.type)
    return pa.table(made)


def _whole(rows: pa.Table, campaign: Campaign, window: Window | None, reports: int, levels: Levels) -> pa.Table:
    """Return the rows, and add the columns of the schema that have one value for all rows or are computed."""
    size, of_row = len(rows), schema()
    part, noise = campaign.mechanism, campaign.noise
    count, *errors = (rows[name].to_numpy() for name in ("count", "standard_error", "collision_error"))
    shared = {
        "campaign": campaign.id,
        "window": window and window.name,
        "window_start": window and window.start,
        "window_end": window and window.end,
        "epoch": campaign.epoch,
        "fingerprint": campaign.fingerprint.hex()[:FINGERPRINT_DIGITS],
        "reports": reports,
        "confidence": levels.confidence,
        "repeated": campaign.memory,
        "pool": part is not None and frequency_oracle(part.name).seeded,
        "mechanism": "noise" if part is None else part.name,
        "epsilon": campaign.require_frequency().epsilon if noise is None else noise.epsilon,
    }
    made = {name: pa.repeat(pa.scalar(value, of_row.field(name).type), size) for name, value in shared.items()}
    made |= {"share": pa.array(count / reports), "variance": pa.array(errors[0] ** 2 + errors[1] ** 2)}
    return pa.table([made[name] if name in made else rows[name] for name in of_row.names], schema=of_row)


def _file_bytes(table: pa.Table) -> bytes:
    """Return a table as a Parquet file with zstd: numbers and items in plain encoding, other columns as a dictionary.

    Because the rows are sorted by count, plain numbers compress better than a dictionary of numbers. Byte-wise
    encodings of numbers would compress better than plain numbers, but not every program that reads Parquet can read
    these encodings. The columns campaign and window, whose values are also in the file's path, have the type that
    pandas and pyarrow give to a part of a path.
    """
    for name in ("campaign", "window"):
        place = table.schema.get_field_index(name)
        field = pa.field(name, pa.dictionary(pa.int32(), pa.string()), table.schema.field(name).nullable)
        table = table.set_column(place, field, table[name].dictionary_encode())
    few = [column.name for column in COLUMNS if column.type != "double" and column.name != "item"]
    return parquet_bytes(table, compression="zstd", use_dictionary=few)
