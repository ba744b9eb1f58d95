"""Write tables as CSV and Parquet files, each file whole or not at all, and check a CSV file when it is read."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

from hushcount.errors import UsageError
from hushcount.formats.parquet import parquet_bytes
from hushcount.formats.reading import TABLE_BYTES
from hushcount.formats.whole_files import write_new
from pipelines.files import permissions, storage
from pipelines.files.csv_cells import csv_rows, csv_text
from pipelines.files.storage_errors import cause

_TYPES: Mapping[str, pa.DataType] = {
    **dict.fromkeys(
        ("window", "item", "group", "bin", "interval", "interval_all", "first_seen", "last_seen", "decision", "source"),
        pa.string(),
    ),
    **dict.fromkeys(("epoch", "reports", "items", "missing", "results"), pa.int64()),
    **dict.fromkeys(("detected", "detected_all", "backfilled", "repeated", "listed"), pa.bool_()),
}
"""The types of some columns in the tables of answers; all other columns are floats."""


def schema_of(*names: str) -> pa.Schema:
    """Return the schema of a table of answers with these columns."""
    return pa.schema([(name, _TYPES.get(name, pa.float64())) for name in names])


def read_csv_rows(path: str, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the rows of a CSV file in any file system; UsageError if the file cannot be read or lacks a column."""
    try:
        raw = storage.read_bytes(path, TABLE_BYTES)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {cause(error)}") from None
    return csv_rows(raw, path, columns)


def csv_bytes(table: pa.Table) -> bytes:
    """Return a table as a CSV file (`csv_cells.csv_text`)."""
    # Convert column by column, because a dict for each row takes twice as long.
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return csv_text(table.column_names, rows).encode()


TABLES: Mapping[str, Callable[[pa.Table], bytes]] = {".csv": csv_bytes, ".parquet": parquet_bytes}
"""For each ending of a table's file, the function that writes the table in this format."""


def require_table(path: str) -> None:
    """Raise UsageError unless the path has the ending of a table's file."""
    if posixpath.splitext(path)[1] not in TABLES:
        raise UsageError(f"{path} must end in {' or '.join(TABLES)}")


def put_table(path: str, table: pa.Table) -> None:
    """Write a table whole or not at all; a local file is readable by its owner only, as every result is.

    Raises:
        UsageError: another process wrote a file at `path` while the job ran; that file is not changed.
    """
    data = TABLES[posixpath.splitext(path)[1]](table)
    if storage.is_remote(path):
        storage.write_whole(path, [data])
        return
    local = Path(path)
    permissions.make_folder(local.parent)
    try:
        write_new(local, data, 0o600)
    except FileExistsError:
        raise UsageError(f"output {path} was taken while the job ran: give another path") from None
