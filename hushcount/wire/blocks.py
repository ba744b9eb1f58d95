"""The file format between jobs: fixed-length records in blocks, each with a checksum (docs/adr/0002).

    header  magic "HUSHBLK1", kind, record length, records a block, record count, campaign fingerprint and id, CRC-32
    block   CRC-32 of the payload, then the records; every block but the last is full

The positions of blocks follow from the header, so many workers can read blocks in any order. A damaged or missing block
loses only its own records, and is counted.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import IO

from hushcount.errors import FormatError

_MAGIC = b"HUSHBLK1"
_HEADER = struct.Struct("<8sIIIQ32s68s")
_CRC = struct.Struct("<I")
HEADER_BYTES = _HEADER.size + _CRC.size
_BLOCK_RECORDS = 4096
_BLOCK_BYTES = 1 << 22
ID_BYTES = 68


class Kind(IntEnum):
    """The kind of records in a file, so that no hop reads a file of another hop or of the other stream."""

    REPORT_ENVELOPES = 1
    DISCOVERY_ENVELOPES = 2
    SEALED_REPORTS = 3
    SEALED_DISCOVERY = 4
    RELEASED = 5
    DEAD_LETTER = 6


@dataclass(frozen=True)
class Header:
    """A file's kind, record length, record count and campaign: programs check the fingerprint, people read the id."""

    kind: Kind
    record_bytes: int
    records: int
    campaign: bytes
    campaign_id: str

    @property
    def full_block(self) -> int:
        """Number of records in a full block: 4096, or fewer if records are long."""
        return max(1, min(_BLOCK_RECORDS, _BLOCK_BYTES // self.record_bytes))

    @property
    def blocks(self) -> int:
        return -(-self.records // self.full_block)

    def block_records(self, index: int) -> int:
        return min(self.full_block, self.records - index * self.full_block)

    def whole_blocks(self, size: int) -> int:
        """Return how many complete blocks are in a file of `size` bytes."""
        if size >= self.file_bytes:
            return self.blocks
        return max(0, size - HEADER_BYTES) // (_CRC.size + self.full_block * self.record_bytes)

    @property
    def file_bytes(self) -> int:
        return HEADER_BYTES + self.blocks * _CRC.size + self.records * self.record_bytes


def encode_header(header: Header) -> bytes:
    """Return the HEADER_BYTES bytes of a header."""
    if not 1 <= header.record_bytes < 1 << 32:
        raise ValueError(f"record_bytes is {header.record_bytes}, must be in 1..2**32-1")
    name = header.campaign_id.encode()
    if len(name) > ID_BYTES or len(header.campaign) != 32:
        raise ValueError(f"campaign_id has {len(name)} bytes, must have at most {ID_BYTES}; the fingerprint 32")
    packed = _HEADER.pack(
        _MAGIC, header.kind, header.record_bytes, header.full_block, header.records, header.campaign, name
    )
    return packed + _CRC.pack(zlib.crc32(packed))


def read_header(stream: IO[bytes], name: str) -> Header:
    """Read the header at the start of a stream; FormatError names the file."""
    raw = stream.read(HEADER_BYTES)
    if raw[: len(_MAGIC)] != _MAGIC:
        raise FormatError(f"{name} is not a Hushcount block file of version 1")
    if len(raw) < HEADER_BYTES or _CRC.unpack(raw[-_CRC.size :])[0] != zlib.crc32(raw[: -_CRC.size]):
        raise FormatError(f"{name} has a damaged header: fetch the file again from its source")
    _, kind, record_bytes, block_records, records, campaign, campaign_id = _HEADER.unpack(raw[: -_CRC.size])
    if kind not in list(Kind) or record_bytes < 1:
        raise FormatError(f"{name} has kind {kind} and records of {record_bytes} bytes, unknown to this version")
    header = Header(Kind(kind), record_bytes, records, campaign, campaign_id.rstrip(b"\0").decode("utf-8", "replace"))
    if block_records != header.full_block:
        raise FormatError(f"{name} has {block_records} records a block, unknown to this version")
    return header


def encode_blocks(header: Header, records: bytes) -> Iterator[bytes]:
    """Yield the bytes of a whole file: header, then block after block."""
    if len(records) != header.records * header.record_bytes:
        raise ValueError(f"records has {len(records)} bytes, must have {header.records} x {header.record_bytes}")
    yield encode_header(header)
    view, step = memoryview(records), header.full_block * header.record_bytes
    for start in range(0, len(records), step):
        yield _CRC.pack(zlib.crc32(view[start : start + step]))
        yield bytes(view[start : start + step])


def read_block(stream: IO[bytes], header: Header, index: int) -> bytes | None:
    """Return the records of block `index`, or None if the block is cut off or fails its checksum."""
    stream.seek(HEADER_BYTES + index * (_CRC.size + header.full_block * header.record_bytes))
    length = header.block_records(index) * header.record_bytes
    checksum = stream.read(_CRC.size)
    records = stream.read(length)
    if len(checksum) + len(records) != _CRC.size + length or _CRC.unpack(checksum)[0] != zlib.crc32(records):
        return None
    return records
