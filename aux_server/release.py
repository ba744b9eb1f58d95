"""Release kept bins: drawn once, in random order, in one block."""

from __future__ import annotations

from collections.abc import Iterable

import apache_beam as beam
from apache_beam.pvalue import PCollection

from aux_server.keep import Keep
from hushcount.discovery.keep_rules import KeepRule
from hushcount.randomness import SystemWords, permutation


class Release(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """Bins in; (0, block of the kept bins' pairs) out.

    Dropped: bins that are not kept (`aux_server/keep.py`); neither they nor their number leave.

    Privacy: the order of the pairs says nothing about the reports: it is a fresh permutation.
    Randomness: the operating system's cryptographic generator.
    """

    def __init__(self, rule: KeepRule) -> None:
        super().__init__()
        self._rule = rule

    def expand(self, bins: PCollection) -> PCollection:
        return (
            bins
            | "keep" >> beam.ParDo(Keep(self._rule))
            # The draw is made once: what comes after may be retried, the draw before this checkpoint may not.
            | "drawn once" >> beam.Reshuffle()
            | "one place" >> beam.Map(_one_place)
            | "released records meet" >> beam.GroupByKey()
            | "in random order" >> beam.Map(_in_random_order)
        )


def _one_place(record: bytes) -> tuple[int, bytes]:
    return 0, record


def _in_random_order(element: tuple[int, Iterable[bytes]]) -> tuple[int, bytes]:
    records = list(element[1])
    return element[0], b"".join(records[index] for index in permutation(len(records), SystemWords()))
