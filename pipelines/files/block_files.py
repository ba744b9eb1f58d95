"""Find, read and write block files, which jobs pass to each other (format: hushcount/wire/blocks.py, docs/adr/0002)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hushcount.errors import FormatError, UsageError
from hushcount.wire.blocks import Header, Kind, encode_blocks, read_block, read_header
from pipelines.files import storage

SUFFIX = ".blocks"


@dataclass(frozen=True)
class BlockFile:
    """A block file whose header was read and checked.

    Attributes:
        whole_blocks: number of blocks that the file is long enough to hold; fewer than the header states if the file
            was cut.
    """

    path: str
    header: Header
    whole_blocks: int

    @property
    def missing(self) -> int:
        """Number of records that the header states, but that lie beyond the end of the file."""
        return self.header.records - min(self.header.records, self.whole_blocks * self.header.full_block)


def find_files(directory: str, kind: Kind) -> list[BlockFile]:
    """Return the block files of a directory.

    Raises:
        UsageError: a file has a damaged header, more bytes than its header states, or another kind; the message names
            the file.
    """
    return [block_file(path, size, kind) for path, size in storage.list_files(directory, SUFFIX)]


def header_of(path: str) -> Header:
    """Return the header of a block file; raises as `storage.open_read`, and FormatError if the header is damaged."""
    with storage.open_read(path) as stream:
        return read_header(stream, path)


def block_file(path: str, size: int, kind: Kind) -> BlockFile:
    """Return one block file of `size` bytes; raises as `find_files`."""
    header = header_of(path)
    if size > header.file_bytes:
        raise FormatError(f"{path} has {size} bytes, its header says {header.file_bytes}: restore the file")
    if header.kind != kind:
        raise UsageError(f"{path} holds {header.kind.name.lower()}, this job reads {kind.name.lower()}")
    return BlockFile(path, header, header.whole_blocks(size))


def total_records(files: Iterable[BlockFile]) -> int:
    """Return how many records the headers of the files state."""
    return sum(file.header.records for file in files)


def read_records(file: BlockFile) -> bytes:
    """Return all records of a block file; UsageError if a block is missing or damaged."""
    with storage.open_read(file.path) as stream:
        blocks = [read_block(stream, file.header, index) for index in range(file.header.blocks)]
    if None in blocks:
        raise UsageError(f"{file.path} is damaged: restore it")
    return b"".join(block for block in blocks if block is not None)


def write_file(path: str, kind: Kind, record_bytes: int, records: bytes, campaign: bytes, campaign_id: str) -> None:
    """Write one whole block file."""
    header = Header(kind, record_bytes, len(records) // record_bytes, campaign, campaign_id)
    storage.write_whole(path, encode_blocks(header, records))
