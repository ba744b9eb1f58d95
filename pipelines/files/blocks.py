"""Block files in and out of Beam: spans of blocks are read, shards of records are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import PCollection, TaggedOutput
from apache_beam.typehints import with_input_types, with_output_types

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import HushcountError
from hushcount.reasons import Reason, rejected
from hushcount.wire.blocks import Header, Kind, read_block
from pipelines.files import storage
from pipelines.files.block_files import SUFFIX, BlockFile, write_file
from pipelines.files.orders import Folder

_SPAN_BLOCKS = 8


class ReadFiles(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """Block files to blocks of whole records, as bytes; many workers read them in spans.

    Out: a dict of `blocks`, `counts` and `dead`.

    Dropped, counted in `counts`: wrong_campaign and wrong_length, whole files whose header says so (to `dead`, without
    the first `strip` bytes of each record, which are metadata); corrupt_block and truncated, records lost by a failed
    checksum or a cut file.

    Args:
        campaign: fingerprint that the files must have.
        record_bytes: length that the records must have.
        strip: how many leading bytes of a record never go to the dead letter.
        leaves_out: whether a file that cannot be read is left out, and not counted as received, so that its batch is
            refused and no other; else the graph fails.
    """

    def __init__(self, campaign: bytes, record_bytes: int, strip: int, leaves_out: bool = False) -> None:
        super().__init__()
        self._read = _ReadSpan(campaign, record_bytes, strip, leaves_out)

    def expand(self, files: PCollection) -> dict[str, PCollection]:
        spans = files | "spans" >> beam.ParDo(_Spans()).with_outputs("counts", main="spans")
        read = (
            spans.spans
            | "spread" >> beam.Reshuffle()
            | "read" >> beam.ParDo(self._read).with_outputs("counts", "dead", main="blocks")
        )
        counts = (read.counts, spans.counts) | "read counts" >> beam.Flatten()
        return {"blocks": read.blocks, "counts": counts, "dead": read.dead}


@with_input_types(BlockFile)
@with_output_types(tuple[BlockFile, int, int], counts=tuple[str, int])
class _Spans(beam.DoFn):
    def process(self, file: BlockFile) -> Iterator[Any]:
        for start in range(0, file.whole_blocks, _SPAN_BLOCKS):
            yield file, start, min(start + _SPAN_BLOCKS, file.whole_blocks)
        if file.missing:
            yield TaggedOutput("counts", ("received", file.missing))
            yield TaggedOutput("counts", rejected("truncated", file.missing))


@with_input_types(tuple[BlockFile, int, int])
@with_output_types(bytes, counts=tuple[str, int], dead=tuple[str, bytes, int])
class _ReadSpan(beam.DoFn):
    def __init__(self, campaign: bytes, record_bytes: int, strip: int, leaves_out: bool) -> None:
        self._campaign = campaign
        self._record_bytes = record_bytes
        self._strip = strip
        self._leaves_out = leaves_out

    def process(self, span: tuple[BlockFile, int, int]) -> Iterator[Any]:
        try:
            yield from self._blocks(span)
        except (HushcountError, OSError):
            if not self._leaves_out:
                raise

    def _blocks(self, span: tuple[BlockFile, int, int]) -> Iterator[Any]:
        file, start, stop = span
        header = file.header
        reason = self._refusal(header)
        # One element for a whole span: later steps work on thousands of records at a time.
        whole = []
        with storage.open_read(file.path) as stream:
            for index in range(start, stop):
                records = header.block_records(index)
                block = read_block(stream, header, index)
                # Not before: what cannot be read was not received.
                yield TaggedOutput("counts", ("received", records))
                if block is None:
                    yield TaggedOutput("counts", rejected("corrupt_block", records))
                elif reason is None:
                    whole.append(block)
                else:
                    yield TaggedOutput("counts", rejected(reason, records))
                    rows = np.frombuffer(block, np.uint8).reshape(records, header.record_bytes)[:, self._strip :]
                    # Of a record no longer than the metadata nothing can be kept.
                    if rows.shape[1]:
                        yield TaggedOutput("dead", (reason, rows.tobytes(), rows.shape[1]))
        if whole:
            yield b"".join(whole)

    def _refusal(self, header: Header) -> Reason | None:
        if header.campaign != self._campaign:
            return "wrong_campaign"
        return None if header.record_bytes == self._record_bytes else "wrong_length"


class WriteShards(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """((number of the order, shard), records) to one whole file for each shard, and (number, its records) out.

    A retry replaces a first try.

    Args:
        folder: of each order.
        shards: how many there are, for the names.
        allowed: a side input; nothing is written unless it is true. None: always.
    """

    def __init__(
        self,
        folder: Folder,
        kind: Kind,
        campaign: Campaign,
        record_bytes: int,
        shards: int,
        allowed: Any | None = None,
    ) -> None:
        super().__init__()
        self._write = _WriteShard(folder, shards, (kind, record_bytes), (campaign.fingerprint, campaign.id))
        self._allowed = True if allowed is None else allowed

    def expand(self, shards: PCollection) -> PCollection:
        return shards | "write" >> beam.ParDo(self._write, self._allowed)


@with_input_types(tuple[tuple[int, int], bytes], bool)
@with_output_types(tuple[int, int])
class _WriteShard(beam.DoFn):
    def __init__(self, folder: Folder, shards: int, kind: tuple[Kind, int], campaign: tuple[bytes, str]) -> None:
        self._folder = folder
        self._shards = shards
        self._kind = kind
        self._campaign = campaign

    def process(self, element: tuple[tuple[int, int], bytes], allowed: bool) -> Iterator[tuple[int, int]]:
        (number, shard), records = element
        if allowed and records and (folder := self._folder(number)) is not None:
            kind, record_bytes = self._kind
            name = f"part-{shard:05d}-of-{self._shards:05d}{SUFFIX}"
            write_file(storage.join(folder, name), kind, record_bytes, records, *self._campaign)
            yield number, len(records) // record_bytes
