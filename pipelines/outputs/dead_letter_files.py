"""The steps that write dead letters: the sealed reports that a hop did not pass on, up to a limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import BoundedWindow
from apache_beam.typehints import with_input_types, with_output_types

from hushcount.campaigns.campaign import Campaign
from hushcount.randomness import SystemWords, permutation
from hushcount.wire.blocks import Kind
from pipelines.files import storage
from pipelines.files.block_files import SUFFIX, write_file
from pipelines.files.orders import Folder, number_of

MOST_DEAD_BYTES = 1 << 22
"""Most bytes of a file of dead letters.

A file of this size is enough to find a fault, and the job's input still has all reports.
"""


Dead = tuple[str, str, bytes, int]
"""A dead letter: stream, reason, sealed records, length of a record."""


class WriteDeadLetter(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """(stream, reason, sealed records, length of a record) in; one file for each stream, reason and length is written.

    The output is (number of the order, number of records in a file). A file has at most MOST_DEAD_BYTES, and no step
    keeps more than this for a file in memory, so a sender of useless records cannot fill disk or memory. The order of
    the records is random, as in a release. The files are in `dead_letter/`, which only the writer keeps; the next party
    gets only the folders of streams.

    Args:
        folder: returns the directory of the job's output for an order.
        campaign: the campaign of the reports.
        allowed: a side input; files are written only if its value is true; None: files are always written.
    """

    def __init__(self, folder: Folder, campaign: Campaign, allowed: Any | None = None) -> None:
        super().__init__()
        self._write = _WriteDead(folder, campaign.fingerprint, campaign.id)
        self._allowed = allowed

    def expand(self, dead: PCollection | Sequence[PCollection]) -> PCollection:
        allowed = True if self._allowed is None else self._allowed
        # Limit the records of each collection before they are grouped, because an engine keeps grouped data in memory.
        parts = [dead] if isinstance(dead, PCollection) else dead
        bounded = [part | f"as many as are kept {place}" >> beam.ParDo(_Bound()) for place, part in enumerate(parts)]
        together = bounded[0] if len(bounded) == 1 else bounded | "all dead" >> beam.Flatten()
        return together | "group by file" >> beam.GroupByKey() | "write dead" >> beam.ParDo(self._write, allowed)


def of_stream(element: tuple[str, bytes, int], stream: str) -> Dead:
    """Add the stream to a dead letter of `ReadFiles`."""
    return (stream, *element)


def of_stream_and_length(element: tuple[str, bytes], stream: str, length: int) -> Dead:
    """Add the stream and the record length to a dead letter of a party's transform."""
    return (stream, *element, length)


@with_input_types(Dead)
@with_output_types(tuple[tuple[str, str, int], bytes])
class _Bound(beam.DoFn):
    """For each file of each order, pass on the first records of a bundle, up to MOST_DEAD_BYTES."""

    def start_bundle(self) -> None:
        self._taken: dict[tuple[int, str, str, int], int] = {}

    def process(
        self, element: Dead, window: BoundedWindow = beam.DoFn.WindowParam
    ) -> Iterator[tuple[tuple[str, str, int], bytes]]:
        stream, reason, records, length = element
        file = (number_of(window), stream, reason, length)
        kept = _first(records, length, MOST_DEAD_BYTES - self._taken.get(file, 0))
        if kept:
            self._taken[file] = self._taken.get(file, 0) + len(kept)
            yield file[1:], kept


def _first(records: bytes, length: int, most: int) -> bytes:
    """Return the first whole records that fit into `most` bytes."""
    return records[: most // length * length]


@with_input_types(tuple[tuple[str, str, int], Iterable[bytes]], bool)
@with_output_types(tuple[int, int])
class _WriteDead(beam.DoFn):
    def __init__(self, folder: Folder, campaign: bytes, campaign_id: str) -> None:
        self._folder, self._campaign, self._campaign_id = folder, campaign, campaign_id

    def process(
        self,
        element: tuple[tuple[str, str, int], Iterable[bytes]],
        allowed: bool,
        window: BoundedWindow = beam.DoFn.WindowParam,
    ) -> Iterator[tuple[int, int]]:
        (stream, reason, length), blocks = element
        number = number_of(window)
        if not allowed or (folder := self._folder(number)) is None:
            return
        kept = bytearray()
        for block in blocks:
            kept += _first(block, length, MOST_DEAD_BYTES - len(kept))
        rows = np.frombuffer(kept, dtype=np.uint8).reshape(-1, length)
        mixed = rows[permutation(len(rows), SystemWords())].tobytes()
        path = storage.join(folder, "dead_letter", stream, f"{reason}-{length}{SUFFIX}")
        write_file(path, Kind.DEAD_LETTER, length, mixed, self._campaign, self._campaign_id)
        yield number, len(rows)
