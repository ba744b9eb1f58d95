"""Count by hash over all reports: the CombineFn around `bins`."""

from __future__ import annotations

from collections.abc import Iterable

import apache_beam as beam

from aux_server.bins import Bins, bins_of, merge, no_bins
from hushcount.randomness import SystemWords


class CountBins(beam.CombineFn):
    """(partition, blocks of pairs) to Bins; memory is constant a bin, whatever its count.

    Args:
        sealed_value_bytes: length of a value sealed to the analyzer.
        values_per_bin: v, how many are drawn of each bin.

    Randomness: priorities from the operating system's cryptographic generator.
    """

    def __init__(self, sealed_value_bytes: int, values_per_bin: int) -> None:
        self._sealed_value_bytes = sealed_value_bytes
        self._values_per_bin = values_per_bin

    def create_accumulator(self) -> Bins:
        return no_bins(self._sealed_value_bytes)

    def add_input(self, accumulator: Bins, pairs: bytes) -> Bins:
        fresh = bins_of(pairs, self._sealed_value_bytes, self._values_per_bin, SystemWords())
        return merge(accumulator, fresh, self._values_per_bin)

    def merge_accumulators(self, accumulators: Iterable[Bins]) -> Bins:
        total = self.create_accumulator()
        for part in accumulators:
            total = merge(total, part, self._values_per_bin)
        return total

    def extract_output(self, accumulator: Bins) -> Bins:
        return accumulator
