"""Read all estimates of a store as one table, for SQL and notebooks.

The data set has one Parquet file for each result, ESTIMATES/campaign=ID/window=W/EPOCH-FINGERPRINT.parquet.
docs/data.md says what the columns mean and which rows may be added up. Reading needs pyarrow: `pip install
hushcount[results]`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timezone, tzinfo
from typing import TYPE_CHECKING, Any

from hushcount.collection.periods import period_of
from hushcount.collection.tilings import zone_of
from hushcount.collection.windows import is_window
from hushcount.errors import FormatError, UsageError
from hushcount.formats.parquet import parse_parquet
from hushcount.formats.reading import TABLE_BYTES, take

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = "estimates"
"""The folder of the data set in a store."""
TABLE = "estimates.parquet"
"""The name that a file of the data set has in the output of the job that makes the file."""
VERSION = 1
"""Version of the columns. The version rises when a column's name, type or meaning changes; readers also read all older
versions.
"""
VERSION_KEY = b"hushcount.schema_version"
"""Key in the metadata of each file under which the version is stored, in decimal digits."""


@dataclass(frozen=True)
class Column:
    """A column of the data set: its name, the name of its type in pyarrow, and whether a row may lack a value."""

    name: str
    type: str
    nullable: bool = False


_TIME = "timestamp[us, tz=UTC]"
COLUMNS = (
    Column("campaign", "string"),
    Column("window", "string", nullable=True),
    Column("window_start", _TIME, nullable=True),
    Column("window_end", _TIME, nullable=True),
    Column("epoch", "int64"),
    Column("fingerprint", "string"),
    Column("item", "string", nullable=True),
    Column("other", "bool"),
    Column("source", "string"),
    Column("reports", "int64"),
    Column("count", "double"),
    Column("share", "double"),
    Column("standard_error", "double"),
    Column("collision_error", "double"),
    Column("variance", "double"),
    Column("confidence", "double"),
    Column("low", "double"),
    Column("high", "double"),
    Column("low_all", "double", nullable=True),
    Column("high_all", "double", nullable=True),
    Column("detected", "bool"),
    Column("detected_all", "bool", nullable=True),
    Column("combined", "double", nullable=True),
    Column("combined_error", "double", nullable=True),
    Column("repeated", "bool"),
    Column("pool", "bool"),
    Column("mechanism", "string"),
    Column("epsilon", "double"),
)
_FILE = re.compile(
    r"campaign=(?P<campaign>[^/]+)/window=(?P<window>[0-9]{8}T[0-9]{6}Z)/(?P<file>[0-9]{6,}-[0-9a-f]{16})\.parquet"
)


def file_name(campaign: str, window: str, file: str) -> str:
    """Return the path of a result's file in the data set; `file` is EPOCH-FINGERPRINT."""
    return f"campaign={campaign}/window={window}/{file}.parquet"


def schema() -> pa.Schema:
    """Return the columns as pyarrow's schema, with the version in its metadata."""
    arrow = _pyarrow()
    types = {
        "string": arrow.string(),
        "bool": arrow.bool_(),
        "int64": arrow.int64(),
        "double": arrow.float64(),
        _TIME: arrow.timestamp("us", tz="UTC"),
    }
    fields = [arrow.field(column.name, types[column.type], column.nullable) for column in COLUMNS]
    return arrow.schema(fields, metadata={VERSION_KEY: str(VERSION).encode()})


def version_of(metadata: dict[bytes, bytes] | None, path: str) -> int:
    """Return the version of a file from the metadata of its schema; FormatError if the metadata have no version."""
    text = (metadata or {}).get(VERSION_KEY, b"")
    if not re.fullmatch(rb"[1-9][0-9]{0,5}", text):
        raise FormatError(
            f"{path} has no {VERSION_KEY.decode()}, so it is not a table of hushcount job analyze: move it away"
        )
    return int(text)


def read(
    path: str | os.PathLike[str],
    campaign: str | None = None,
    windows: Iterable[str] | None = None,
    items: Iterable[str] | None = None,
    zone: str = "UTC",
) -> pa.Table:
    """Return the estimates of a store as a table with the columns COLUMNS, the oldest window of each campaign first.

    `.to_pandas()` turns the table into a data frame. In each window and epoch the row with the largest count is first,
    and the row of "other" is last.

    Args:
        path: the folder "estimates" of a store: a local path, gs:// or s3://.
        campaign: id of the campaign to read; None: all.
        windows: the windows to read, each as 20261121T000000Z or as `hushcount ask` prints it: 2026-11-21T13:00Z; a day
            or a month names all its windows. None: all.
        items: the items whose rows to read, spelled as in the table; None: all rows.
        zone: the time zone of days and months in `windows`, as in the deployment file; another one than UTC needs the
            package tzdata.

    Raises:
        UsageError: pyarrow or tzdata is missing, or no zone has this name, or the folder has no estimates, or it has
            no estimates of this campaign or of one of the windows.
        FormatError: a file is damaged, or of a newer version than this package reads.
    """
    arrow, clock = _pyarrow(), _clock(zone)
    system, root = _opened(os.fspath(path))
    files = _files(system, root)
    if not files:
        raise UsageError(f"{path} holds no estimates, must be the folder {FOLDER!r} of a store")
    chosen = files if campaign is None else [file for file in files if file["campaign"] == campaign]
    if not chosen:
        known = sorted({file["campaign"] for file in files})
        raise UsageError(f"campaign is {campaign!a}, must be one of {', '.join(known)}")
    if windows is not None:
        there, names = {file["window"] for file in chosen}, set[str]()
        for window in [windows] if isinstance(windows, str) else windows:
            period = period_of(window, clock)
            if period is None or not (meant := {*filter(period.begins, there)}):
                span = f"{len(there):,} windows from {min(there)} to {max(there)}"
                raise UsageError(f"window is {window!a}, must be one of those with estimates: {span}")
            names |= meant
        chosen = [file for file in chosen if file["window"] in names]
    wanted = None if items is None else arrow.array(sorted(set(items)), arrow.string())
    return arrow.concat_tables(
        [_table(system, f"{root}/{file[0]}", wanted) for file in chosen] or [schema().empty_table()]
    )


def parse(raw: bytes, path: str) -> pa.Table:
    """Return the rows of one file; FormatError, with the path: the file is damaged or its version is not supported."""
    arrow = _pyarrow()
    try:
        table = parse_parquet(raw, path)
        version = version_of(table.schema.metadata, path)
        if version > VERSION:
            raise FormatError(f"{path} has schema version {version}, must be at most {VERSION}: update hushcount")
        there, columns = {*table.column_names}, schema()
        missing = [field.name for field in columns if field.name not in there and not field.nullable]
        if missing:
            raise FormatError(f"{path} lacks the column {missing[0]}: restore it")
        made = [
            table[field.name].cast(field.type) if field.name in there else arrow.nulls(table.num_rows, field.type)
            for field in columns
        ]
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unread(path, error) from None
    return arrow.table(made, schema=columns)


def _table(system: Any, path: str, wanted: pa.Array | None) -> pa.Table:
    import pyarrow.compute as pc

    try:
        with system.open_input_file(path) as stream:
            raw = take(stream, TABLE_BYTES, path)
    except OSError as error:
        raise _unread(path, error) from None
    whole = parse(raw, path)
    return whole if wanted is None else whole.filter(pc.is_in(whole["item"], value_set=wanted))


def _unread(path: str, error: Exception) -> FormatError:
    # Only the first line of the error is shown, because further lines may quote the content of the file.
    return FormatError(f"cannot read {path}: {str(error).splitlines()[0]:.200}")


def _files(system: Any, root: str) -> list[re.Match[str]]:
    """Return the files of the data set, sorted by campaign, window, epoch and fingerprint."""
    from pyarrow import fs

    listed = system.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    prefix = len(root.rstrip("/")) + 1
    found = [_FILE.fullmatch(one.path[prefix:]) for one in listed if one.type == fs.FileType.File]
    there = (one for one in found if one is not None and is_window(one["window"]))
    return sorted(there, key=lambda one: (one["campaign"], one["window"], one[0]))


def _opened(path: str) -> tuple[Any, str]:
    from pyarrow import ArrowException, fs

    if "://" not in path:
        return fs.LocalFileSystem(), os.path.abspath(path)
    try:
        system, root = fs.FileSystem.from_uri(path)
    except (ArrowException, OSError, ValueError) as error:
        raise UsageError(f"cannot open {path}: {str(error).splitlines()[0]:.200}") from None
    return system, root.rstrip("/")


def _clock(zone: str) -> tzinfo:
    try:
        return timezone.utc if zone == "UTC" else zone_of(zone)
    except ModuleNotFoundError:
        raise UsageError(f"zone {zone!a} needs tzdata: pip install tzdata") from None
    except ValueError as error:
        raise UsageError(str(error)) from None


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError:
        raise UsageError("hushcount.results needs pyarrow: pip install pyarrow") from None
    return pyarrow
