"""Block files: a golden header, round trips, and no bytes whatever that make wrong records without a sign."""

from __future__ import annotations

import io
import struct
import zlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hushcount.errors import FormatError
from hushcount.wire.blocks import (
    HEADER_BYTES,
    ID_BYTES,
    Header,
    Kind,
    encode_blocks,
    encode_header,
    read_block,
    read_header,
)

CAMPAIGN = bytes(range(32))
GOLDEN = (
    "48555348424c4b31"  # HUSHBLK1
    "03000000"  # sealed reports
    "65000000"  # records of 101 bytes
    "00100000"  # 4096 a block
    "8813000000000000"  # 5000 records
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    "776f7264732d32303236" + "00" * 58 + "13dbc42d"
)
"""Version 1 of the format. A change that breaks this breaks every file that is already there."""


def file_of(header: Header, records: bytes) -> bytes:
    return b"".join(encode_blocks(header, records))


def read_all(raw: bytes) -> tuple[Header, list[bytes | None]]:
    stream = io.BytesIO(raw)
    header = read_header(stream, "name")
    return header, [read_block(stream, header, index) for index in range(header.blocks)]


def test_the_header_is_as_it_was() -> None:
    header = Header(Kind.SEALED_REPORTS, 101, 5000, CAMPAIGN, "words-2026")
    assert encode_header(header).hex() == GOLDEN
    assert read_header(io.BytesIO(bytes.fromhex(GOLDEN)), "golden") == header
    assert len(GOLDEN) == 2 * HEADER_BYTES == 264


def test_kinds_are_as_they_were() -> None:
    assert {kind.name: int(kind) for kind in Kind} == {
        "REPORT_ENVELOPES": 1, "DISCOVERY_ENVELOPES": 2, "SEALED_REPORTS": 3, "SEALED_DISCOVERY": 4, "RELEASED": 5,
        "DEAD_LETTER": 6,
    }  # fmt: skip


def test_round_trip_and_the_arithmetic_of_lengths(subtests: pytest.Subtests) -> None:
    for records in [0, 1, 4095, 4096, 4097, 3 * 4096]:
        for record_bytes in [1, 7, 101]:
            with subtests.test(records=records, record_bytes=record_bytes):
                content = bytes(index * 31 % 251 for index in range(records * record_bytes))
                header = Header(Kind.RELEASED, record_bytes, records, CAMPAIGN, "ü" * (ID_BYTES // 2))
                raw = file_of(header, content)
                assert len(raw) == header.file_bytes == HEADER_BYTES + 4 * -(-records // 4096) + records * record_bytes
                again, blocks = read_all(raw)
                assert again == header
                assert b"".join(block or b"" for block in blocks) == content
                assert [len(block or b"") // record_bytes for block in blocks] == [
                    header.block_records(index) for index in range(header.blocks)
                ]
                assert sum(header.block_records(index) for index in range(header.blocks)) == records


def test_the_whole_blocks_of_a_file_of_some_length() -> None:
    header = Header(Kind.RELEASED, 1, 4096 + 5, CAMPAIGN, "a")
    first = HEADER_BYTES + 4 + 4096
    lengths = {
        0: 0,
        HEADER_BYTES: 0,
        first - 1: 0,
        first: 1,
        header.file_bytes - 1: 1,
        header.file_bytes: 2,
        1 << 40: 2,
    }
    assert {length: header.whole_blocks(length) for length in lengths} == lengths


def test_long_records_make_smaller_blocks() -> None:
    """At most 4 MiB a block, and always one record at least; blocks are read in any order."""
    for record_bytes, full in ((1 << 10, 4096), ((1 << 10) + 1, 4092), (1 << 22, 1), (1 << 23, 1)):
        assert Header(Kind.RELEASED, record_bytes, 9, CAMPAIGN, "a").full_block == full
    header = Header(Kind.RELEASED, 3 << 19, 5, CAMPAIGN, "a")
    assert header.full_block == 2
    content = b"".join(bytes([index]) * (3 << 19) for index in range(5))
    stream = io.BytesIO(file_of(header, content))
    read_header(stream, "name")
    for index in (2, 0, 1):
        block = read_block(stream, header, index)
        assert block is not None
        assert block[0] == 2 * index
        assert len(block) == (1 if index == 2 else 2) * (3 << 19)


def test_what_is_not_whole_records_is_refused() -> None:
    for record_bytes, records, length in ((3, 2, 5), (3, 2, 7), (3, 0, 1)):
        with pytest.raises(ValueError, match="records"):
            file_of(Header(Kind.RELEASED, record_bytes, records, CAMPAIGN, "a"), bytes(length))
    for header in (
        Header(Kind.RELEASED, 1, 1, CAMPAIGN, "a" * (ID_BYTES + 1)),
        Header(Kind.RELEASED, 1, 1, CAMPAIGN, "ü" * (ID_BYTES // 2 + 1)),
        Header(Kind.RELEASED, 1, 1, CAMPAIGN[1:], "a"),
        Header(Kind.RELEASED, 1 << 32, 1, CAMPAIGN, "a"),
        Header(Kind.RELEASED, -1, 1, CAMPAIGN, "a"),
    ):
        with pytest.raises(ValueError, match="must"):
            encode_header(header)


SMALL = file_of(Header(Kind.SEALED_REPORTS, 7, 30, CAMPAIGN, "small"), bytes(range(210)))
BIG = file_of(Header(Kind.SEALED_REPORTS, 1, 4096 + 5, CAMPAIGN, "two blocks"), bytes(4096) + b"abcde")


def test_no_flipped_byte_makes_wrong_records_without_a_sign(subtests: pytest.Subtests) -> None:
    """Every byte of the header and every 13th after it, three ways: an error, or a block that is missing."""
    for raw in [SMALL, BIG]:
        with subtests.test(length=len(raw)):
            _, whole = read_all(raw)
            changed = bytearray(raw)
            for place in [*range(HEADER_BYTES + 8), *range(HEADER_BYTES + 8, len(raw), 13), len(raw) - 1]:
                for flip in (1, 0x80, 0xFF):
                    changed[place] ^= flip
                    if place < HEADER_BYTES:
                        with pytest.raises(FormatError, match="name"):
                            read_all(bytes(changed))
                    else:
                        _, blocks = read_all(bytes(changed))
                        assert blocks.count(None) == 1
                        assert all(block in (None, right) for block, right in zip(blocks, whole, strict=True))
                    changed[place] ^= flip
            assert bytes(changed) == raw


def test_a_file_cut_anywhere_loses_only_the_blocks_that_are_cut() -> None:
    _, whole = read_all(BIG)
    first_end = HEADER_BYTES + 4 + 4096
    for length in [*range(HEADER_BYTES), *range(HEADER_BYTES, len(BIG), 97), first_end - 1, first_end, len(BIG) - 1]:
        if length < HEADER_BYTES:
            with pytest.raises(FormatError):
                read_all(BIG[:length])
        else:
            _, blocks = read_all(BIG[:length])
            assert blocks == [whole[0] if length >= first_end else None, None]


@given(st.binary(max_size=300))
@example(b"HUSHBLK1")
@example(b"HUSHBLK1" + bytes(200))
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
def test_random_bytes_are_a_format_error_and_nothing_else(raw: bytes) -> None:
    for content in (raw, b"HUSHBLK1" + raw):
        with pytest.raises(FormatError):
            read_all(content)


@given(
    kind=st.integers(0, 2**32 - 1),
    record_bytes=st.integers(0, 2**32 - 1),
    a_block=st.integers(0, 2**32 - 1),
    records=st.integers(0, 2**64 - 1),
    campaign=st.binary(min_size=32, max_size=32),
    name=st.binary(max_size=68),
)
@example(kind=3, record_bytes=0, a_block=4096, records=1, campaign=CAMPAIGN, name=b"")
@example(kind=3, record_bytes=5, a_block=4096, records=1, campaign=CAMPAIGN, name=b"\xff\xfe")
@example(kind=3, record_bytes=5, a_block=4095, records=1, campaign=CAMPAIGN, name=b"a")
@example(kind=7, record_bytes=5, a_block=4096, records=1, campaign=CAMPAIGN, name=b"a")
@settings(max_examples=100, deadline=None, derandomize=True, database=None)
def test_a_header_with_a_right_checksum_is_read_or_refused(
    kind: int, record_bytes: int, a_block: int, records: int, campaign: bytes, name: bytes
) -> None:
    """Whoever makes the checksum himself gets a FormatError, or a header whose blocks are then missing."""
    packed = struct.pack("<8sIIIQ32s68s", b"HUSHBLK1", kind, record_bytes, a_block, records, campaign, name)
    stream = io.BytesIO(packed + struct.pack("<I", zlib.crc32(packed)))
    try:
        header = read_header(stream, "name")
    except FormatError:
        return
    assert (int(header.kind), header.record_bytes, header.records) == (kind, record_bytes, records)
    assert header.full_block == a_block
    if 0 < record_bytes < 1 << 16 and records:
        assert read_block(stream, header, 0) is None


@given(st.integers(1, 40), st.integers(0, 60), st.data())
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
def test_round_trip_of_anything(record_bytes: int, records: int, data: st.DataObject) -> None:
    content = data.draw(st.binary(min_size=record_bytes * records, max_size=record_bytes * records))
    header = Header(Kind.DEAD_LETTER, record_bytes, records, CAMPAIGN, "any")
    again, blocks = read_all(file_of(header, content))
    assert again == header
    assert b"".join(block or b"" for block in blocks) == content
