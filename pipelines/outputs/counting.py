"""Counts are elements of the graph, not Beam metrics, so that nothing is counted twice if Beam repeats a bundle."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

import apache_beam as beam
from apache_beam.pvalue import PCollection
from apache_beam.typehints import with_input_types, with_output_types

from hushcount.errors import HushcountError
from hushcount.reasons import DAMAGE
from pipelines.files import storage
from pipelines.files.orders import Folder

COUNTS = ".counts.json"
"""The file with the counts of an order is written last, so if it exists, the order is complete."""


class WriteCounts(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """(number of the order, (name, number)) in; a file of sums by name is written to each order's directory."""

    def __init__(self, folder: Folder) -> None:
        super().__init__()
        self._folder = folder

    def expand(self, counts: PCollection) -> PCollection:
        return counts | "sums" >> beam.CombinePerKey(Sums()) | "write counts" >> beam.ParDo(_WriteCounts(self._folder))


@with_input_types(tuple[str, int])
@with_output_types(dict[str, int])
class Sums(beam.CombineFn):
    """(name, number) in, a dict with the sum of each name out."""

    def create_accumulator(self) -> Counter[str]:
        return Counter()

    def add_input(self, sums: Counter[str], count: tuple[str, int]) -> Counter[str]:
        name, number = count
        sums[name] += number
        return sums

    def merge_accumulators(self, parts: Iterable[Counter[str]]) -> Counter[str]:
        total: Counter[str] = Counter()
        for part in parts:
            total.update(part)
        return total

    def extract_output(self, sums: Counter[str]) -> dict[str, int]:
        return dict(sums)


@with_input_types(tuple[int, dict[str, int]])
class _WriteCounts(beam.DoFn):
    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def process(self, element: tuple[int, dict[str, int]]) -> None:
        number, sums = element
        if (folder := self._folder(number)) is not None:
            storage.write_whole(storage.join(folder, COUNTS), [json.dumps(sums).encode()])


def take_counts(directory: str) -> dict[str, int]:
    """Return the sums that a job wrote to its directory, and remove their file; {} if the job wrote no such file."""
    path = storage.join(directory, COUNTS)
    if not storage.exists(path):
        return {}
    sums: dict[str, int] = storage.read_json(path)
    storage.remove(path)
    return sums


def require_undamaged(directory: str, rejected: Mapping[str, int]) -> None:
    """Raise HushcountError if files that a party wrote have blocks with a wrong checksum, or were cut.

    Files of collectors are not checked in this way, because records lost by damage to such files are only counted.
    """
    if lost := ", ".join(f"{reason} {rejected[reason]:,}" for reason in DAMAGE if rejected.get(reason)):
        raise HushcountError(
            f"files of {directory}, which a party of this system wrote, are damaged ({lost} records) and nothing was "
            "released: restore the files, and check whether another program writes there"
        )


def require_read_once(what: str, received: int, present: int) -> None:
    """Raise HushcountError if an engine lost records of a job's files, or read some of these records twice."""
    if received != present:
        raise HushcountError(
            f"{what}: the engine read {received} records but the files hold {present}: it lost records or read some "
            "twice; nothing was released and the input is untouched: run again"
        )
