"""Counts as data: every hop counts its records in the graph, not in metrics, so that a retry never counts twice."""

from __future__ import annotations

import json
from collections.abc import Mapping

import apache_beam as beam
from apache_beam.pvalue import PCollection

from hushcount.errors import HushcountError
from hushcount.reasons import DAMAGE
from pipelines.files import storage

_FILE = ".counts.json"


class WriteCounts(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """(name, number) to one file of sums in a job's directory, for `take_counts`."""

    def __init__(self, directory: str) -> None:
        super().__init__()
        self._path = storage.join(directory, _FILE)

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


def take_counts(directory: str) -> dict[str, int]:
    """Return the sums that a job wrote to its directory, and remove their file."""
    path = storage.join(directory, _FILE)
    sums: dict[str, int] = storage.read_json(path)
    storage.remove(path)
    return sums


def require_undamaged(directory: str, rejected: Mapping[str, int]) -> None:
    """Check that a job lost nothing of what a party of ours wrote; what clients and collectors send may be damaged.

    Args:
        directory: whose files were read.
        rejected: number by reason.

    Raises:
        HushcountError: blocks failed their checksum, or files were cut.
    """
    if lost := ", ".join(f"{reason} {rejected[reason]:,}" for reason in DAMAGE if rejected.get(reason)):
        raise HushcountError(
            f"the files of {directory} are damaged, though a party of this system wrote them ({lost} records); nothing "
            "was released: restore them, and see whether something else writes there"
        )


def require_read_once(what: str, received: int, held: int) -> None:
    """Check that an engine read every record of the files, and none twice, whichever steps it ran again.

    Args:
        what: the records, for the message.
        received: how many a job counted as it read.
        held: how many the headers of its files promise.

    Raises:
        HushcountError: another number was read.
    """
    if received != held:
        raise HushcountError(
            f"{what}: {received} were read where the files hold {held}, so that the engine lost some or read some "
            "twice; nothing was released and the input is untouched: run again"
        )
