"""Group the blocks of each place through files, if all workers can reach the files, or else through the engine.

Beam's embedded runner keeps several copies of grouped data in memory, and Flink sorts records in small buffers. If the
output is a local directory, blocks are written to files in the job's hidden directory. Only the position of each block
in its file goes through the engine, so memory does not grow with the number of reports. If the output is in a store,
the embedded runner uses files in a temporary directory, and any other engine groups the blocks themselves.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import IO, Any

import apache_beam as beam
from apache_beam.pvalue import PCollection
from apache_beam.typehints import with_input_types, with_output_types

from hushcount.wire.tags import MOST_PLACES

THROUGH_ENGINE_RECORDS = 1 << 13
"""The most records of a place, on average, if blocks go through the engine.

Before Flink sorts, it joins all blocks that a task has of one place into one record, even if each block is small.
"""
_BUFFER = 1 << 20


def places(records: int, each: int, spill: str | None) -> int:
    """Return the number of places to spread records over, so that a place has at most `each` records on average.

    Args:
        records: number of records. If the records are so many that MOST_PLACES limits the number of places, a place has
            more than `each` records.
        each: the most records of a place, on average; at most THROUGH_ENGINE_RECORDS if blocks go through the engine.
        spill: as for `GroupThroughFiles`.
    """
    each = each if spill is not None else min(each, THROUGH_ENGINE_RECORDS)
    return min(MOST_PLACES, max(1, -(-records // each)))


Extent = tuple[str, int, int]
"""The position of a block in a file: path, first byte, length."""


class GroupThroughFiles(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """(place, block) in, (place, iterable of the place's blocks) out.

    The next step must read each iterable exactly once. If the input is a dict of collections of (place, block), the
    output is (place, dict of iterables), as from `beam.CoGroupByKey`.

    Args:
        spill: existing local directory for the blocks, which the caller removes later; None: the blocks go through the
            engine.
    """

    def __init__(self, spill: str | None) -> None:
        super().__init__()
        self._spill = spill

    def expand(self, blocks: PCollection | dict[str, PCollection]) -> PCollection:
        grouping = beam.CoGroupByKey() if isinstance(blocks, dict) else beam.GroupByKey()
        if self._spill is None:
            return blocks | "group" >> grouping
        spill: Any
        if isinstance(blocks, dict):
            spill = {name: part | f"{name} to files" >> beam.ParDo(Spill(self._spill)) for name, part in blocks.items()}
        else:
            spill = blocks | "to files" >> beam.ParDo(Spill(self._spill))
        return spill | "group" >> grouping | "from files" >> beam.Map(_with_blocks)


@with_input_types(tuple[int, bytes])
@with_output_types(tuple[int, Extent])
class Spill(beam.DoFn):
    """(place, block) in, (place, extent of the block in a file) out. Each bundle writes one file and closes it."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def start_bundle(self) -> None:
        self._path = os.path.join(self._directory, uuid.uuid4().hex)
        self._stream: IO[bytes] = open(self._path, "xb", buffering=_BUFFER)  # noqa: SIM115  # finish_bundle closes it
        self._length = 0

    def process(self, element: tuple[int, bytes]) -> Iterator[tuple[int, Extent]]:
        place, block = element
        self._stream.write(block)
        yield place, (self._path, self._length, len(block))
        self._length += len(block)

    def finish_bundle(self) -> None:
        self._stream.close()

    def teardown(self) -> None:
        # Beam does not call `finish_bundle` for a failed bundle, and a file that stays open keeps its space on a full
        # disk.
        stream: IO[bytes] | None = getattr(self, "_stream", None)
        if stream is not None:
            with suppress(OSError):
                stream.close()


@dataclass(frozen=True)
class Spilled:
    """The blocks of a place; each block is read from its file during iteration."""

    extents: tuple[Extent, ...]

    def __iter__(self) -> Iterator[bytes]:
        for path, extents in groupby(sorted(self.extents), key=itemgetter(0)):
            with open(path, "rb", buffering=0) as stream:
                for _, first, length in extents:
                    stream.seek(first)
                    block = stream.read(length)
                    if len(block) != length:
                        raise OSError(f"{path} was cut: {len(block)} of {length} bytes at byte {first}; run again")
                    yield block


def _with_blocks(element: tuple[int, Any]) -> tuple[int, Any]:
    place, extents = element
    if isinstance(extents, dict):
        return place, {name: Spilled(tuple(part)) for name, part in extents.items()}
    return place, Spilled(tuple(extents))
