"""Count equal pairs over all reports: the CombineFn around `bins`."""

from __future__ import annotations

from collections.abc import Iterable

import apache_beam as beam

from aux_server.bins import Bins, bins_of, merge


class CountBins(beam.CombineFn):
    """(partition, blocks of pairs) to Bins; memory is constant a bin, whatever its count.

    Args:
        pair_bytes: length of a pair, hash and sealed value.
    """

    def __init__(self, pair_bytes: int) -> None:
        self._pair_bytes = pair_bytes

    def create_accumulator(self) -> Bins:
        return bins_of(b"", self._pair_bytes)

    def add_input(self, accumulator: Bins, pairs: bytes) -> Bins:
        return merge(accumulator, bins_of(pairs, self._pair_bytes))

    def merge_accumulators(self, accumulators: Iterable[Bins]) -> Bins:
        total = self.create_accumulator()
        for part in accumulators:
            total = merge(total, part)
        return total

    def extract_output(self, accumulator: Bins) -> Bins:
        return accumulator
