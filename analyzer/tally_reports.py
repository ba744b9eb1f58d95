"""Add reports up: a CombineFn over integer arrays, a large pool matrix in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import PCollection

from hushcount.fields import Reports
from hushcount.mechanism import Mechanism
from hushcount.randomness import UInt64Array
from hushcount.responders.base import Counts

_BLOCK_CELLS = 1 << 21

Accumulator = tuple[int, Counts]
"""How many reports, and int64[rows of the block, width]."""


def rows_per_block(mechanism: Mechanism, items: UInt64Array) -> int:
    """Return how many rows of the tally for these items one accumulator holds: at most 16 MiB, or one row."""
    rows, width = mechanism.encoder.tally_shape(items)
    return min(rows, max(1, _BLOCK_CELLS // width))


class SplitRows(beam.DoFn):
    """Arrays of reports in, (block of rows, reports with rows counted from the block's first) out."""

    def __init__(self, mechanism: Mechanism, items: UInt64Array) -> None:
        self._pool = mechanism.encoder.pool
        self._rows = rows_per_block(mechanism, items)

    def process(self, reports: Reports) -> Iterator[tuple[int, Reports]]:
        if self._pool is None or self._rows == self._pool:
            yield 0, reports
            return
        blocks = reports["row"] // self._rows
        for block in np.unique(blocks):
            members = reports[blocks == block]
            members["row"] -= np.uint32(block * self._rows)
            yield int(block), members


class TallyFn(beam.CombineFn):
    """Sums reports to (n, counts). Integers only: any sharding and any order give the identical tally."""

    def __init__(self, mechanism: Mechanism, items: UInt64Array) -> None:
        self._mechanism = mechanism
        self._items = items
        self._shape = (rows_per_block(mechanism, items), mechanism.encoder.tally_shape(items)[1])

    def create_accumulator(self) -> Accumulator:
        return 0, np.zeros(self._shape, dtype=np.int64)

    def add_input(self, accumulator: Accumulator, reports: Reports) -> Accumulator:
        added, counts = accumulator
        self._mechanism.accumulate(counts, reports, self._items)
        return added + len(reports), counts

    def merge_accumulators(self, accumulators: Iterable[Accumulator]) -> Accumulator:
        total, counts = self.create_accumulator()
        for added, part in accumulators:
            total += added
            counts += part
        return total, counts

    def extract_output(self, accumulator: Accumulator) -> Accumulator:
        return accumulator


class TallyReports(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """Arrays of well-formed reports in, (block of rows, (number of reports, counts)) out; nothing is dropped.

    Args:
        mechanism: the campaign's.
        items: what the tally has columns for, `domain.tally_items`.
    """

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
