"""Beam steps that read spans of blocks from block files, and write shards of records to block files."""

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
    """Block files in, blocks of whole records out, as bytes; many workers each read a span of a file.

    The output is a dict of the collections `blocks`, `counts` and `dead`.

    If a file's header has another campaign (wrong_campaign) or record length (wrong_length), all the file's records are
    dropped, and go to `dead` without their first `strip` bytes, which are metadata. Records are also lost if a block's
    checksum is wrong (corrupt_block) or the file was cut (truncated). `counts` has the number of received records, and
    of lost or dropped records by reason.

    Args:
        campaign: fingerprint that the files must have.
        record_bytes: length that the records must have.
        strip: number of leading bytes of a record that never go to the dead letter.
        leaves_out: whether records that cannot be read are left out and not counted as received, so that only the
            file's batch is refused; if false, the graph fails.
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
        # Join the blocks of a span to one element, so that one call of a later step works on thousands of records.
        whole = []
        with storage.open_read(file.path) as stream:
            for index in range(start, stop):
                records = header.block_records(index)
                block = read_block(stream, header, index)
                # Count after the read, because records that cannot be read are not counted as received.
                yield TaggedOutput("counts", ("received", records))
                if block is None:
                    yield TaggedOutput("counts", rejected("corrupt_block", records))
                elif reason is None:
                    whole.append(block)
                else:
                    yield TaggedOutput("counts", rejected(reason, records))
                    rows = np.frombuffer(block, np.uint8).reshape(records, header.record_bytes)[:, self._strip :]
                    # A record that is no longer than its metadata is not kept, because nothing is left after the
                    # metadata.
                    if rows.shape[1]:
                        yield TaggedOutput("dead", (reason, rows.tobytes(), rows.shape[1]))
        if whole:
            yield b"".join(whole)

    def _refusal(self, header: Header) -> Reason | None:
        if header.campaign != self._campaign:
            return "wrong_campaign"
        return None if header.record_bytes == self._record_bytes else "wrong_length"


class WriteShards(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """((number of the order, shard), records) in, one whole file written per shard, (order, number of records) out.

    If Beam repeats a bundle, the new file replaces the file of the earlier try.

    Args:
        folder: returns the folder to write to for an order.
        shards: number of shards, for the names of files.
        allowed: a side input; files are written only if its value is true; None: files are always written.
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
