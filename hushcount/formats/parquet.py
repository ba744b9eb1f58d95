"""Parquet files that another party or a damaged disk may have changed: bounded and checked before they are read.

Parquet has checksums of pages, but not of the footer, which describes them. So our Parquet files contain a digest of
the whole file.
"""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING, Any

from hushcount.errors import FormatError

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 1 << 26
DIGEST_KEY = b"hushcount.digest"
"""The footer's key of the digest: BLAKE2b of the file with zeros in place of the digest, in hexadecimal digits."""
_BYTES = 32
_EMPTY = b"0" * (2 * _BYTES)


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    """Return a table as a Parquet file with a digest; `options` go to pyarrow's ParquetWriter."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, table.schema, write_page_checksum=True, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({DIGEST_KEY: _EMPTY})
    raw = buffer.getvalue()
    return _exchanged(raw, _EMPTY, _digest(raw))


def parse_parquet(raw: bytes, name: str) -> pa.Table:
    """Return the table in the bytes of a Parquet file of at most 2^26 rows; its strings are UTF-8.

    Raises:
        FormatError: the file states more rows, or has a digest that does not match its bytes.
        ArrowException, OSError: the file is not Parquet, or is damaged; the message may quote its content.
    """
    # Imported here, because clients read no tables and need no pyarrow.
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.BufferReader(raw), page_checksum_verification=True)
    # The rows are counted before they are read, because a few bytes may state that a value is repeated a million times.
    if file.metadata.num_rows > MOST_ROWS:
        raise FormatError(f"{name} has {file.metadata.num_rows:,} rows, must have {MOST_ROWS:,} at most")
    said = (file.metadata.metadata or {}).get(DIGEST_KEY)
    if said is not None and (len(said) != len(_EMPTY) or said != _digest(_exchanged(raw, said, _EMPTY))):
        raise FormatError(f"{name} is damaged: its digest does not match its bytes; restore it, or make it again")
    table = file.read()
    table.validate(full=True)
    return table


def _digest(raw: bytes) -> bytes:
    return hashlib.blake2b(raw, digest_size=_BYTES).hexdigest().encode()


def _exchanged(raw: bytes, old: bytes, new: bytes) -> bytes:
    """Return a file's bytes with another digest: the last `old` bytes, those of the footer, become `new`."""
    before, _, after = raw.rpartition(old)
    return before + new + after
