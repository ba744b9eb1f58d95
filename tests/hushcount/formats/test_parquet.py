"""Parquet files are bounded before they are read."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushcount.errors import FormatError
from hushcount.formats.parquet import DIGEST_KEY, MOST_ROWS, parquet_bytes, parse_parquet


def file_of(array: pa.Array) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"item": array}), buffer)
    return buffer.getvalue()


def test_a_few_bytes_that_claim_many_rows_are_refused_before_they_are_read() -> None:
    small = file_of(pa.nulls(MOST_ROWS + 1))
    assert len(small) < 1 << 20
    with pytest.raises(FormatError, match=r"^bomb .*67,108,865 .*67,108,864"):
        parse_parquet(small, "bomb")


def test_a_string_that_is_not_utf8_is_refused() -> None:
    array = pa.array([b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(pa.ArrowException):
        parse_parquet(file_of(array), "table")


@pytest.mark.parametrize("item", ["a", "0" * 64])
def test_any_changed_bit_is_told_or_changes_nothing(item: str) -> None:
    """Also where only the digest can tell: in the footer, which has no checksum of Parquet's."""
    table = pa.table({"item": [item, "b"], "count": [1.0, 2.0]})
    whole = parquet_bytes(table)
    assert parse_parquet(whole, "table").equals(table)
    told = 0
    for place in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        try:
            read = parse_parquet(bytes(changed), "table")
        except (FormatError, pa.ArrowException, OSError, UnicodeDecodeError):
            told += 1
        else:
            # Its key is another one, or what says how long that is.
            assert read.equals(table)
    assert told >= 8 * (len(whole) - len(DIGEST_KEY) - 2)
