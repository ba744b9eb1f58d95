"""Adds reports up with a CombineFn over integer arrays; the large matrix of a pool is split into blocks of rows."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import IO, Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.pvalue import PCollection
from apache_beam.typehints import with_input_types, with_output_types

from hushcount.arrays import Counts, Reports, UInt64Array
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.repeats import BUCKETS, add_repeats, new_repeats
from hushcount.oracles.tally import narrowed, read_array
from hushcount.randomness import SystemWords

_BLOCK_CELLS = 1 << 21
_WAITING_BYTES = 1 << 23
_REPORTS = struct.Struct("<q")


@dataclass(eq=False)
class Sums:
    """An accumulator, which is changed in place and takes at most 24 MiB for up to a million items.

    Attributes:
        reports: number of reports that were added.
        counts: int64[rows of the block, width].
        repeats: int64[b], how often equal reports came: `add_repeats`; empty as long as all reports wait.
        waiting: reports that are not yet in `counts`, because it costs less to decode many reports together, and not
            yet in `repeats`, because these take 8 MiB for each atom.
    """

    reports: int
    counts: Counts
    repeats: Counts
    waiting: list[Reports] = field(default_factory=list)

    def __reduce__(self) -> tuple[Callable[..., Sums], tuple[Any, ...]]:
        """Pickle counts as narrow integers, because most counts of a large sketch are small."""
        return _widened, (self.reports, narrowed(self.counts), narrowed(self.repeats), self.waiting)

    def part_bytes(self) -> bytes:
        """Return a tally part: the number of reports, then the counts and the repeats as .npy files."""
        buffer = io.BytesIO()
        buffer.write(_REPORTS.pack(self.reports))
        for counts in (self.counts, self.repeats):
            np.lib.format.write_array(buffer, narrowed(counts), allow_pickle=False)
        return buffer.getvalue()


def _widened(
    reports: int,
    counts: npt.NDArray[np.signedinteger[Any]],
    repeats: npt.NDArray[np.signedinteger[Any]],
    waiting: list[Reports],
) -> Sums:
    return Sums(reports, counts.astype(np.int64, copy=False), repeats.astype(np.int64, copy=False), waiting)


def read_part(stream: IO[bytes], cells: int) -> Sums:
    """Read a tally part from a stream's position: number of reports, counts, int64[rows, width], and repeats.

    Raises:
        ValueError: an array has another dtype or too many counts (`cells` for the reports), or the part is cut short.
    """
    reports = _REPORTS.unpack(stream.read(_REPORTS.size))[0]
    return Sums(reports, read_array(stream, "i", cells), read_array(stream, "i", BUCKETS))


def rows_per_block(mechanism: Mechanism, items: UInt64Array) -> int:
    """Return how many rows of the tally for these items are in one accumulator: at most 16 MiB, or one row."""
    rows, width = mechanism.encoder.tally_shape(items)
    return min(rows, max(1, _BLOCK_CELLS // max(1, width)))


Place = tuple[int, int]
"""An atom of reports, and a block of rows of its tally."""


@with_input_types(tuple[int, np.ndarray])
@with_output_types(tuple[Place, np.ndarray])
class SplitRows(beam.DoFn):
    """Takes (atom, array of reports); yields ((atom, number of a block of rows), reports of the block)."""

    def __init__(self, mechanism: Mechanism, items: UInt64Array) -> None:
        self._rows = rows_per_block(mechanism, items)
        self._whole = self._rows == mechanism.encoder.tally_shape(items)[0]

    def process(self, element: tuple[int, Reports]) -> Iterator[tuple[Place, Reports]]:
        atom, reports = element
        if self._whole:
            yield (atom, 0), reports
            return
        blocks = reports["row"] // np.uint32(self._rows)
        order = np.argsort(blocks, kind="stable")
        ordered = np.take(reports, order)
        present, starts = np.unique(blocks[order], return_index=True)
        for block, part in zip(present.tolist(), np.split(ordered, starts[1:]), strict=True):
            yield (atom, block), part


@with_input_types(np.ndarray)
@with_output_types(Sums)
class TallyFn(beam.CombineFn):
    """Sums reports.

    The sums are of integers only, so any sharding and any order of the reports give the identical tally.

    `items`, uint64[c], are the items of the columns; None: the mechanism's whole domain.
    """

    def __init__(self, mechanism: Mechanism, items: UInt64Array | None) -> None:
        self._mechanism = mechanism
        self._items = _whole_domain(mechanism) if items is None else items
        rows, width = mechanism.encoder.tally_shape(self._items)
        self._shape = (rows_per_block(mechanism, self._items), width)
        self._whole = self._shape[0] == rows

    def __reduce__(self) -> tuple[type[TallyFn], tuple[Mechanism, UInt64Array | None]]:
        """Pickle without the items of a whole domain: Beam pickles and compresses each step a dozen times."""
        whole = np.array_equal(self._items, _whole_domain(self._mechanism))
        return TallyFn, (self._mechanism, None if whole else self._items)

    def setup(self) -> None:
        """Load the compiled loops, which takes a second of Python, while other cores open the first reports."""
        if self._mechanism.encoder.by_item:
            # The thread is no daemon, so that the process waits for it: a process may crash if it ends during a
            # compilation.
            Thread(target=self._count_one).start()

    def _count_one(self) -> None:
        # An error here is ignored: it occurs again when reports are added up, and is raised there.
        with suppress(Exception):
            one = self._items[:1]
            report = self._mechanism.encode(one, SystemWords())
            self._mechanism.accumulate(self._mechanism.new_tally(one), report, one)

    def create_accumulator(self) -> Sums:
        return Sums(0, np.zeros(self._shape, dtype=np.int64), np.zeros(0, dtype=np.int64))

    def add_input(self, sums: Sums, reports: Reports) -> Sums:
        sums.reports += len(reports)
        if self._mechanism.encoder.by_item:
            sums.waiting.append(reports)
            return self._without_waiting(sums, _WAITING_BYTES)
        self._add(sums, reports)
        return sums

    def merge_accumulators(self, accumulators: Iterable[Sums]) -> Sums:
        total = self.create_accumulator()
        for sums in accumulators:
            total.reports += sums.reports
            total.counts += sums.counts
            if len(sums.repeats):
                self._require_repeats(total)
                total.repeats += sums.repeats
            total.waiting += sums.waiting
            self._without_waiting(total, _WAITING_BYTES)
        return total

    def compact(self, sums: Sums) -> Sums:
        """Add up, before an accumulator travels, the reports that wait; not if they are smaller than their sums."""
        return self._without_waiting(sums, sums.counts.size + BUCKETS)

    def extract_output(self, sums: Sums) -> Sums:
        return self._without_waiting(sums, 0)

    def _add(self, sums: Sums, reports: Reports) -> None:
        self._require_repeats(sums)
        add_repeats(sums.repeats, self._mechanism, reports)
        if not self._whole:
            # Rows within the block. The reports are copied, because Beam forbids to change an input.
            reports = reports.copy()
            reports["row"] %= np.uint32(self._shape[0])
        self._mechanism.accumulate(sums.counts, reports, self._items)

    def _require_repeats(self, sums: Sums) -> None:
        if not len(sums.repeats):
            sums.repeats = new_repeats(self._mechanism)

    def _without_waiting(self, sums: Sums, least_bytes: int) -> Sums:
        if sums.waiting and sum(reports.nbytes for reports in sums.waiting) >= least_bytes:
            self._add(sums, np.concatenate(sums.waiting))
            sums.waiting.clear()
        return sums


def _whole_domain(mechanism: Mechanism) -> UInt64Array:
    return np.arange(mechanism.encoder.domain or 0, dtype=np.uint64)


class TallyReports(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """Takes (atom, array of well-formed reports); gives (place, Sums) with columns for `items`; drops nothing."""

    def __init__(self, mechanism: Mechanism, items: UInt64Array) -> None:
        super().__init__()
        self._mechanism = mechanism
        self._items = items

    def expand(self, reports: PCollection) -> PCollection:
        return (
            reports
            | "by block of rows" >> beam.ParDo(SplitRows(self._mechanism, self._items))
            | "add up" >> beam.CombinePerKey(TallyFn(self._mechanism, self._items))
        )
