"""Parquet files that another party, or a damaged disk, may have made: bounded before they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushcount.errors import FormatError

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 1 << 26


def parse_parquet(raw: bytes, name: str) -> pa.Table:
    """Return the table in the bytes of a Parquet file of at most 2^26 rows; its strings are UTF-8.

    Raises:
        FormatError: it says that it has more rows.
        ArrowException, OSError: it is no Parquet file, or is damaged; the message may quote what is in it.
    """
    # Clients read no tables, and need no pyarrow.
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.BufferReader(raw), page_checksum_verification=True)
    # A few bytes may say that a value is repeated a million times.
    if file.metadata.num_rows > MOST_ROWS:
        raise FormatError(f"{name} has {file.metadata.num_rows:,} rows, must have {MOST_ROWS:,} at most")
    table = file.read()
    table.validate(full=True)
    return table
