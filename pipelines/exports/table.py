"""One result as rows of the data set: what hushcount analyze estimated, "other", and counts of discovered values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import other_item
from hushcount.collection.epochs import FINGERPRINT_DIGITS, folder_name
from hushcount.collection.windows import window_start
from hushcount.discovery.found_counts import count_estimates
from hushcount.errors import FormatError, UsageError
from hushcount.estimating import estimated
from hushcount.formats.parquet import parquet_bytes, parse_parquet
from hushcount.formats.reading import TABLE_BYTES
from hushcount.oracles.catalogue import CATALOGUE
from hushcount.oracles.estimates import Levels
from hushcount.oracles.tally import Tally
from hushcount.results import COLUMNS, file_name, schema
from pipelines.files import storage
from pipelines.jobs import results
from pipelines.jobs.found import (
    COMBINED_COLUMNS,
    FOUND,
    combined,
    count_law_of,
    read_counts,
    shown_counts,
    unbiased_of,
    was_combined,
)
from pipelines.outputs.received_summary import folder_of, read_summary, require_batch
from pipelines.outputs.staging import SUMMARY

_NUMBERS = tuple(column.name for column in COLUMNS if column.type == "double")
_OF_ROW = ("item", "other", "source", "count", "standard_error", "collision_error", "low", "high", "low_all",
           "high_all", "detected", "detected_all", "combined", "combined_error")  # fmt: skip
_ESTIMATES = "estimates.parquet"
_KINDS = {
    name: pa.string() if name == "item" else pa.bool_() if name.startswith("detected") else pa.float64()
    for name in results.COLUMNS
}


@dataclass(frozen=True)
class Result:
    """A result of hushcount analyze, and when its reports came.

    Attributes:
        directory: with summary.json.
        window: name of the window at whose end its batch was made.
        ends: when that window ended, with a time zone; None: not known.
        batch: the name of the batch that its summary, if it names one, must be of; None: any.
    """

    directory: str
    campaign: Campaign
    window: str
    ends: datetime | None
    batch: str | None = None

    @property
    def file_name(self) -> str:
        """The path of its file in the data set."""
        file = folder_name(self.campaign.epoch, self.campaign.fingerprint.hex())
        return file_name(self.campaign.id, self.window, file)

    def table(self) -> pa.Table | None:
        """Return its rows with the columns of `hushcount.results`, the largest count first and "other" last.

        None: too few reports could be opened, or their key was retired, so that there is no tally.

        Raises:
            UsageError: it is no result of hushcount analyze of this campaign and batch, or a file of it is missing or
                damaged.
        """
        mark = storage.join(self.directory, SUMMARY)
        summary = read_summary(mark)
        if (summary.hop, summary.fingerprint) != ("analyze", self.campaign.fingerprint.hex()):
            raise UsageError(
                f"{self.directory} is no result of hushcount analyze of campaign {self.campaign.id}, epoch "
                f"{self.campaign.epoch}: give its directory, with the campaign file that it was made under"
            )
        require_batch(self.directory, summary.batch, self.batch)
        folder = folder_of(self.directory, summary)
        if not storage.exists(storage.join(folder, results.TALLY)):
            return None
        tally = results.read_tally(storage.join(folder, results.TALLY), self.campaign)
        said = storage.read_json(mark)
        confidence = said.get("confidence", Levels().confidence)
        if not isinstance(confidence, int | float):
            raise FormatError(f"{mark} has confidence {str(confidence)[:60]!a}, must be a number: restore it")
        levels = Levels(float(confidence))
        rows = _rows(folder, self.campaign, tally, levels, apart="found_apart" in said)
        return _whole(rows, self, tally.reports, levels)


def file_bytes(table: pa.Table) -> bytes:
    """Return a table as a file: zstd, numbers and items as they are, and a dictionary for what repeats.

    Sorted by count, numbers pack better so than with a dictionary. Encodings by byte pack better still, and not every
    engine reads them. What the path says too has the type that pandas and pyarrow give a part of a path.
    """
    for name in ("campaign", "window"):
        place = table.schema.get_field_index(name)
        field = pa.field(name, pa.dictionary(pa.int32(), pa.string()), nullable=False)
        table = table.set_column(place, field, table[name].dictionary_encode())
    few = [column.name for column in COLUMNS if column.type != "double" and column.name != "item"]
    return parquet_bytes(table, compression="zstd", use_dictionary=few)


def _rows(folder: str, campaign: Campaign, tally: Tally, levels: Levels, *, apart: bool) -> pa.Table:
    """Return the rows of a result, without what all rows share; `apart`: its found values are of another batch."""
    parts = []
    estimates = _estimates(folder)
    found = storage.join(folder, FOUND)
    counts = read_counts(found) if storage.exists(found) and not apart else None
    if estimates is not None:
        columns: dict[str, Any] = {name: estimates[name] for name in results.COLUMNS}
        if counts is not None and was_combined(found):
            both = combined(counts, estimates, unbiased_of(campaign, tally.senders))
            columns |= {name: _beside(estimates, both, name) for name in COMBINED_COLUMNS[2:]}
        parts.append(_part(columns, "estimate", len(estimates)))
    if counts is not None:
        there = set() if estimates is None else {*estimates["item"].to_pylist()}
        parts += _found(campaign, tally, found, counts, there, levels)
    if not parts:
        parts.append(_part({}, "estimate", 0))
    ordered = pa.concat_tables(parts).sort_by([("count", "descending"), ("item", "ascending")])
    if campaign.dictionary is None:
        return ordered
    number = np.array([other_item(campaign.require_frequency())], dtype=np.uint64)
    alone = results.estimate_table(("",), estimated(campaign, tally, number), levels)
    # Its interval is not one together with the rows of a table.
    columns = {name: alone[name] for name in results.COLUMNS[1:] if not name.endswith("_all")}
    return pa.concat_tables([ordered, _part(columns, "estimate", 1, other=True)])


def _estimates(folder: str) -> pa.Table | None:
    """Return the estimates of a result; None: no items were asked for, as in an open domain that found none."""
    path = storage.join(folder, _ESTIMATES)
    if not storage.exists(path):
        return None
    raw = storage.read_bytes(path, TABLE_BYTES)
    try:
        table = parse_parquet(raw, path)
    except (pa.ArrowException, OSError):
        table = None
    if table is None or not _is_whole(table):
        raise FormatError(f"{path} is not what hushcount analyze wrote: restore it")
    return table


def _is_whole(table: pa.Table) -> bool:
    """Return whether a table has the columns of estimates, of their types, a value in each cell, and an item once."""
    if {field.name: field.type for field in table.schema} != _KINDS or len(table.schema) != len(_KINDS):
        return False
    there = not any(column.null_count for column in table.columns)
    numbers = [table[name] for name, kind in _KINDS.items() if pa.types.is_floating(kind)]
    there = there and not any(np.isnan(column.to_numpy()).any() for column in numbers)
    return there and len(table["item"].unique()) == len(table)


def _found(
    campaign: Campaign, tally: Tally, path: str, counts: pa.Table, there: set[str], levels: Levels
) -> list[pa.Table]:
    """Return the rows of discovered values that have no estimate, from their noisy counts, which are at `path`."""
    law = count_law_of(campaign, tally.senders)
    alone = [item not in there for item in counts["item"].to_pylist()]
    here = counts.filter(pa.array(alone, pa.bool_()))
    if law is None or not len(here):
        return []
    drawn = shown_counts(here, law, path)
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


def _beside(estimates: pa.Table, both: pa.Table, name: str) -> pa.Array:
    """Return a column of the found values, by the items of the estimates."""
    known = dict(zip(both["item"].to_pylist(), both[name].to_pylist(), strict=True))
    return pa.array([known.get(item) for item in estimates["item"].to_pylist()], pa.float64())


def _part(columns: Mapping[str, Any], source: str, rows: int, *, other: bool = False) -> pa.Table:
    """Return rows of one source; a column that is not given has no values."""
    of_row = schema()
    given = {**columns, "source": pa.array([source] * rows, pa.string()), "other": pa.array([other] * rows, pa.bool_())}
    fields = [of_row.field(name) for name in _OF_ROW]
    return pa.table(
        {
            field.name: pa.chunked_array(given[field.name]).cast(field.type)
            if isinstance(given.get(field.name), pa.ChunkedArray)
            else pa.nulls(rows, field.type)
            if field.name not in given
            else pa.array(given[field.name]).cast(field.type)
            for field in fields
        }
    )


def _whole(rows: pa.Table, result: Result, reports: int, levels: Levels) -> pa.Table:
    """Return rows with what they share and what follows, in the order of the schema."""
    campaign, size, of_row = result.campaign, len(rows), schema()
    epsilon = campaign.require_frequency().epsilon
    name = "" if campaign.mechanism is None else campaign.mechanism.name
    count, *errors = (rows[name].to_numpy() for name in ("count", "standard_error", "collision_error"))
    shared = {
        "campaign": campaign.id,
        "window": result.window,
        "window_start": window_start(result.window),
        "window_end": result.ends,
        "epoch": campaign.epoch,
        "fingerprint": campaign.fingerprint.hex()[:FINGERPRINT_DIGITS],
        "reports": reports,
        "confidence": levels.confidence,
        "repeated": campaign.memory,
        "pool": CATALOGUE[name].seeded,
        "mechanism": name,
        "epsilon": epsilon,
    }
    made = {name: pa.repeat(pa.scalar(value, of_row.field(name).type), size) for name, value in shared.items()}
    made |= {"share": pa.array(count / reports), "variance": pa.array(errors[0] ** 2 + errors[1] ** 2)}
    return pa.table([made[name] if name in made else rows[name] for name in of_row.names], schema=of_row)
