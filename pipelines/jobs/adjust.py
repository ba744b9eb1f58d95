"""hushcount adjust: a column of counts that are not negative or add up, with a bias, beside the unbiased ones."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from hushcount.arrays import FloatArray
from hushcount.errors import UsageError
from hushcount.formats.parquet import parse_parquet
from hushcount.formats.reading import TABLE_BYTES
from hushcount.oracles.postprocess import non_negative, norm_sub, sum_to
from pipelines.files import storage
from pipelines.files.csv_cells import text_of
from pipelines.files.storage_errors import cause
from pipelines.jobs.results import COLUMNS
from pipelines.jobs.tables import put_table, require_table
from pipelines.outputs.received_summary import file_of
from pipelines.outputs.staging import SUMMARY

ADJUSTED = "adjusted"
TO_TOTAL: Mapping[str, Callable[[FloatArray, float], FloatArray]] = {"sum-to": sum_to, "norm-sub": norm_sub}
BIAS: Mapping[str, str] = {
    "non-negative": "biased upward for rare items: never add adjusted counts up",
    "sum-to": "unbiased if the total is; counts may be negative still",
    "norm-sub": "biased upward for rare items and downward for frequent ones",
}
"""The bias of each method."""
_SCHEMA = pa.schema(
    [
        ("item", pa.string()),
        *((name, pa.float64()) for name in COLUMNS[1:-2]),
        *((name, pa.bool_()) for name in COLUMNS[-2:]),
    ]
)
_OURS = _SCHEMA.append(pa.field(ADJUSTED, pa.float64()))


def adjust(
    estimates: str, method: str, out: str, *, total: float | None = None, overwrite: bool = False
) -> dict[str, Any]:
    """Write the estimates with one more column, "adjusted"; errors and intervals remain those of the counts.

    Args:
        estimates: an estimates.parquet or estimates.csv.
        method: a name of BIAS.
        out: file to write, a table by its ending: .csv or .parquet.
        total: users that hold one of the items; None: the accepted reports of the summary.json beside the estimates,
            less its estimate of "other". Not for non-negative.
        overwrite: whether an adjusted table at `out` may be replaced.

    Returns:
        The method with its bias, the total and its source, and the sums before and after.

    Raises:
        UsageError: a file is missing or not ours, `out` is taken, or the total is not known or not possible.
    """
    if method not in BIAS:
        raise UsageError(f"method is {method!r}, must be one of {', '.join(BIAS)}")
    if total is not None and method not in TO_TOTAL:
        raise UsageError(f"total is {total:g}, but {method} makes nothing add up to it: leave it out")
    _require_free(out, overwrite)
    table = _read(file_of(estimates), _SCHEMA)
    counts = table["count"].to_numpy()
    known = None if method not in TO_TOTAL else (total, "given") if total is not None else _total(estimates, table)
    try:
        adjusted = non_negative(counts) if known is None else TO_TOTAL[method](counts, known[0])
    except ValueError as error:
        raise UsageError(f"cannot adjust {estimates}: {error}") from None
    put_table(out, table.append_column(ADJUSTED, pa.array(adjusted)), overwrite)
    return {
        "hop": "adjust",
        "estimates": estimates,
        "method": method,
        "bias": BIAS[method],
        "items": table.num_rows,
        "total": None if known is None else known[0],
        "total_from": None if known is None else known[1],
        "sum_of_counts": float(counts.sum()),
        "sum_of_adjusted": float(adjusted.sum()),
    }


def _total(estimates: str, table: pa.Table) -> tuple[float, str]:
    """Return how many reports hold one of the items, by the summary beside the estimates, and in words."""
    path = storage.join(posixpath.dirname(estimates) or ".", SUMMARY)
    if not storage.exists(path):
        raise UsageError(f"there is no {SUMMARY} beside {estimates} to take the total from: give --total")
    summary = storage.read_json(path)
    if "other" not in summary:
        raise UsageError(f"{path} has no estimate of 'other', so its reports are of more items: give --total")
    if summary.get("whole_dictionary") is not True or summary.get("items") != table.num_rows:
        raise UsageError(f"{estimates} is not of the whole dictionary, so its items have fewer reports: give --total")
    try:
        accepted, other = int(summary["accepted"]), float(summary["other"]["count"])
    except (KeyError, TypeError, ValueError):
        raise UsageError(f"{path} is no summary that hushcount analyze or estimate wrote: give --total") from None
    return accepted - other, f"{accepted:,} accepted reports less an estimated {other:,.0f} outside the dictionary"


def _read(path: str, schema: pa.Schema) -> pa.Table:
    """Read a table of ours; UsageError if it is missing or has other columns."""
    require_table(path)
    try:
        raw = storage.read_bytes(path, TABLE_BYTES)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {cause(error)}") from None
    try:
        if path.endswith(".parquet"):
            table = parse_parquet(raw, path)
        else:
            parse = pa_csv.ParseOptions(newlines_in_values=True)
            convert = pa_csv.ConvertOptions(column_types=schema)
            table = pa_csv.read_csv(pa.BufferReader(raw), parse_options=parse, convert_options=convert)
        if table.column_names != schema.names:
            raise UsageError(f"{path} has columns {', '.join(table.column_names)}, must have {', '.join(schema.names)}")
        table = table.cast(schema)
        if path.endswith(".csv"):
            items = pa.array([text_of(item) for item in table["item"].to_pylist()], pa.string())
            table = table.set_column(0, "item", items)
    except (pa.ArrowException, OSError):
        raise UsageError(
            f"{path} is no table of estimates: give the estimates.parquet or estimates.csv of analyze or estimate"
        ) from None
    if any(column.null_count for column in table.columns):
        raise UsageError(f"{path} has empty cells: restore it")
    return table


def _require_free(out: str, overwrite: bool) -> None:
    """Raise UsageError unless `out` is free, or holds an adjusted table that may be replaced."""
    require_table(out)
    if not storage.exists(out):
        return
    if not overwrite:
        raise UsageError(f"output {out} already exists: give another, or --overwrite to replace it")
    try:
        _read(out, _OURS)
    except UsageError:
        raise UsageError(f"output {out} is no result of hushcount adjust: give another name") from None
