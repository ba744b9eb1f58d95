"""Counts as data: every hop counts its records in the graph, not in metrics, so that a retry never counts twice."""

from __future__ import annotations

import json

import apache_beam as beam
from apache_beam.pvalue import PCollection

from pipelines import storage


class WriteCounts(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """(name, number) to one JSON file of sums."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def expand(self, counts: PCollection) -> PCollection:
        return (
            counts
            | "sum" >> beam.CombinePerKey(sum)
            | "gather" >> beam.combiners.ToDict()
            | "write counts" >> beam.ParDo(_WriteCounts(self._path))
        )


class _WriteCounts(beam.DoFn):
    def __init__(self, path: str) -> None:
        self._path = path

    def process(self, sums: dict[str, int]) -> None:
        storage.write_whole(self._path, [json.dumps(sums).encode()])
