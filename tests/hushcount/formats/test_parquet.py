"""Parquet files are bounded before they are read."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushcount.errors import FormatError
from hushcount.formats.parquet import MOST_ROWS, parse_parquet


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
