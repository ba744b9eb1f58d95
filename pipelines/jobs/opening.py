"""The common part of the jobs that open sealed reports: counts, dead letters and the minimum batch."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import apache_beam as beam
from apache_beam.pvalue import PCollection

from hushcount.campaigns.campaign import Stream
from keys.directories import KeyReference
from pipelines.files.block_files import BlockFile
from pipelines.jobs.together import BatchJob, Steps, Where
from pipelines.ledger.charging import Charging, charging
from pipelines.ledger.own_time import ALONE, LedgerClock
from pipelines.outputs.account import Hop
from pipelines.outputs.counting import require_read_once, require_undamaged
from pipelines.outputs.counts import OPENING, Opening, StreamCounts, counts_of, opening_of
from pipelines.outputs.dead_letter_files import Dead, WriteDeadLetter, of_stream, of_stream_and_length
from pipelines.outputs.summary import HopSummary
from pipelines.outputs.withheld import enough, require_minimum


@dataclass(frozen=True, kw_only=True)
class OpeningSteps(Steps):
    """The steps that the party with the private key `key` runs on one stream."""

    stream: ClassVar[Stream]
    key: KeyReference

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.stream,)

    @property
    def record_bytes(self) -> int:
        """The length of each record that this party reads."""
        return self.campaign.sealed_bytes(self.stream)

    def opened(
        self, files: Mapping[str, PCollection], where: Where, opens: beam.DoFn
    ) -> tuple[dict[str, PCollection], Any]:
        """Return the outputs of `ReadFiles`, and the outputs of the step `opens`: accepted, counts, opening, dead."""
        length = self.record_bytes
        read = files[self.stream] | "read" >> where.read(self.campaign, length)
        opened = beam.ParDo(opens).with_outputs("counts", "opening", "dead", main="accepted")
        return read, read["blocks"] | "open" >> opened

    def count(
        self, where: Where, read: dict[str, PCollection], opened: Any, *further: PCollection
    ) -> tuple[PCollection, Any]:
        """Add the steps that count reports and write the dead letters.

        Returns:
            The counts, each as (number of the order, (name, number)), and a side input, which is true if results may be
            written. If the side input is None, results may always be written.
        """
        campaign, stream = self.campaign, self.stream
        counts = (read["counts"], opened.counts, *further) | "all counts" >> beam.Flatten()
        labelled = where.counted(counts, stream)
        allowed = enough(labelled, stream, campaign) if where.open else None
        length = self.record_bytes
        dead = (
            read["dead"] | "stream of dead" >> beam.Map(of_stream, stream).with_output_types(Dead),
            opened.dead | "length of dead" >> beam.Map(of_stream_and_length, stream, length).with_output_types(Dead),
        )
        letter = dead | "dead letter" >> WriteDeadLetter(where.folder(), campaign, allowed)
        known = labelled, where.counted(opened.opening, OPENING), where.written(letter, "dead")
        return known | "all known" >> beam.Flatten(), allowed


@dataclass(frozen=True, kw_only=True)
class OpeningJob(BatchJob):
    """A job of a party that opens reports.

    The job reads the files of one stream, in a folder that the hop before wrote.

    Attributes:
        hop: the name of the hop in the job's summary.
        drawn: whether the bins of the job's release are drawn at random.
        ledger, clock: as the arguments of `charging`.
    """

    hop: ClassVar[str]
    charges: ClassVar[Hop]
    drawn: ClassVar[bool] = False
    steps: OpeningSteps
    upstream: HopSummary
    folder: str
    files: list[BlockFile]
    ledger: Path | None = None
    clock: LedgerClock = ALONE

    @property
    def stream(self) -> Stream:
        return self.steps.stream

    def reserve(self) -> AbstractContextManager[Charging]:
        campaign, folder = self.campaign, self.folder
        return charging(self.ledger, campaign, self.charges, self.upstream, folder, drawn=self.drawn, clock=self.clock)

    @property
    def inputs(self) -> Mapping[str, list[BlockFile]]:
        return {self.stream: self.files}

    def counted(self, sums: Mapping[str, int]) -> tuple[dict[Stream, StreamCounts], Opening]:
        """Check the counts, and return the counts of the stream, without dummies, and of the opened boxes.

        If this call raises no error, every record was read once and undamaged, and enough reports were accepted for a
        result.

        Raises:
            HushcountError: the engine lost records or read some twice, counts do not add up, or files are damaged.
            Withheld: fewer reports were accepted than the minimum batch.
        """
        counts = counts_of(sums, (self.stream,))
        mine = counts[self.stream]
        require_read_once(self.stream, mine.received, self.records)
        require_undamaged(self.folder, mine.rejected)
        opening = opening_of(sums, mine)
        if self.stream == "reports" and (dummies := self.upstream.dummies):
            mine = counts[self.stream] = mine.without(dummies)
        require_minimum(self.hop, self.campaign, self.stream, mine, self.upstream, opening)
        return counts, opening
