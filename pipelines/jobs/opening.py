"""What the jobs that open sealed reports have in common: counts, dead letters and the minimum batch."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import apache_beam as beam
from apache_beam.pvalue import PCollection

from hushcount.campaigns.campaign import Stream
from keys.store import KeyReference
from pipelines.files import storage
from pipelines.files.block_files import BlockFile, total_records
from pipelines.files.blocks import ReadBlocks
from pipelines.jobs.job import Job, Place
from pipelines.ledger.charging import Charging, charging
from pipelines.outputs.account import Hop
from pipelines.outputs.counting import WriteCounts, require_read_once, require_undamaged
from pipelines.outputs.counts import OPENING, Opening, StreamCounts, counts_of, label, opening_of
from pipelines.outputs.dead_letter_files import WriteDeadLetter, of_stream, of_stream_and_length
from pipelines.outputs.minimum_batch import enough, require_minimum
from pipelines.outputs.summary import HopSummary


@dataclass(frozen=True, kw_only=True)
class OpeningJob(Job):
    """A job of the party with `key`, on the files of one stream in a folder that the hop before wrote.

    Attributes:
        hop: of the summary.
        drawn: whether the job draws its release at random.
        ledger, known: as of `charging`.
    """

    hop: ClassVar[str]
    charges: ClassVar[Hop]
    stream: ClassVar[Stream]
    drawn: ClassVar[bool] = False
    key: KeyReference
    upstream: HopSummary
    folder: str
    files: list[BlockFile]
    ledger: Path | None = None
    known: datetime | None = None

    @property
    def records(self) -> int:
        return total_records(self.files)

    def reserve(self) -> AbstractContextManager[Charging]:
        campaign, folder = self.campaign, self.folder
        return charging(self.ledger, campaign, self.charges, self.upstream, folder, drawn=self.drawn, known=self.known)

    def opened(self, pipeline: beam.Pipeline, place: Place, opens: beam.DoFn) -> tuple[dict[str, PCollection], Any]:
        """Return the outputs of `ReadBlocks`, and those of the DoFn that opens: accepted, counts, opening, dead."""
        length, fingerprint = self.campaign.sealed_bytes(self.stream), self.campaign.fingerprint
        read = pipeline | "read" >> ReadBlocks(self.files, fingerprint, length, 0, place.progress)
        opened = beam.ParDo(opens).with_outputs("counts", "opening", "dead", main="accepted")
        return read, read["blocks"] | "open" >> opened

    def count(self, place: Place, read: dict[str, PCollection], opened: Any, *further: PCollection) -> Any:
        """Write the counts and the dead letters.

        Returns:
            A side input, whether results may be written; None: always. A local directory appears by its renaming, but
            in a store each object is visible once it is written.
        """
        campaign, stream, directory = self.campaign, self.stream, place.directory
        counts = (read["counts"], opened.counts, *further) | "all counts" >> beam.Flatten()
        labelled = counts | "label" >> beam.Map(label, stream)
        opening = opened.opening | "label opening" >> beam.Map(label, OPENING)
        (labelled, opening) | "all labelled" >> beam.Flatten() | "counts" >> WriteCounts(directory)
        allowed = enough(labelled, stream, campaign) if storage.is_remote(directory) else None
        length = campaign.sealed_bytes(stream)
        dead = (
            read["dead"] | "stream of dead" >> beam.Map(of_stream, stream),
            opened.dead | "length of dead" >> beam.Map(of_stream_and_length, stream, length),
        )
        dead | "dead letter" >> WriteDeadLetter(directory, campaign, allowed)
        return allowed

    def counted(self, sums: Mapping[str, int]) -> tuple[dict[Stream, StreamCounts], Opening]:
        """Return the counts, and those of opening.

        Every record was read once, undamaged, and enough were accepted for a result.

        Raises:
            HushcountError: the engine lost records, or read some twice, or counts disagree, or files are damaged.
            Withheld: fewer reports were accepted than the minimum batch.
        """
        counts = counts_of(sums, (self.stream,))
        mine = counts[self.stream]
        require_read_once(self.stream, mine.received, self.records)
        require_undamaged(self.folder, mine.rejected)
        opening = opening_of(sums, mine)
        require_minimum(self.hop, self.campaign, self.stream, mine, self.upstream, opening)
        return counts, opening
