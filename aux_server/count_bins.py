"""Count equal pairs over all reports, copies of a report once: the CombineFn around `boxes`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam

from aux_server.bins import Bins
from aux_server.boxes import Boxes, boxes_of, unite

Accumulator = list[Boxes]
"""Boxes in parts, each larger than the next: what was added is united with what has about its size, as often as a
logarithm, instead of with all that there is."""


class CountBins(beam.CombineFn):
    """(partition, blocks of marked pairs) to Bins; memory is a pair a bin and 20 bytes a report.

    Copies of a report lie in one partition, because they hold one pair.

    Args:
        pair_bytes: length of a pair, hash and sealed value.
    """

    def __init__(self, pair_bytes: int) -> None:
        self._pair_bytes = pair_bytes

    def create_accumulator(self) -> Accumulator:
        return []

    def add_input(self, accumulator: Accumulator, marked: bytes) -> Accumulator:
        return _added(accumulator, boxes_of(marked, self._pair_bytes))

    def merge_accumulators(self, accumulators: Iterable[Accumulator]) -> Accumulator:
        total = self.create_accumulator()
        for accumulator in accumulators:
            for part in accumulator:
                total = _added(total, part)
        return total

    def extract_output(self, accumulator: Accumulator) -> Bins:
        total = boxes_of(b"", self._pair_bytes)
        for part in reversed(accumulator):
            total = unite(part, total)
        return total.bins


class CountCopies(beam.DoFn):
    """(partition, Bins) in, counts out: copies are no longer accepted, as which they were opened, but duplicates."""

    def process(self, element: tuple[int, Bins]) -> Iterator[tuple[str, int]]:
        copies = element[1].copies
        if copies:
            yield "accepted", -copies
            yield "duplicate", copies


def _added(accumulator: Accumulator, part: Boxes) -> Accumulator:
    """Return the accumulator with one part more, united with those before it that are no larger."""
    accumulator = list(accumulator)
    while accumulator and len(accumulator[-1].marks) <= len(part.marks):
        part = unite(accumulator.pop(), part)
    return [*accumulator, part]
