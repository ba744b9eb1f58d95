"""The analyzer's half of hushcount discover: open what the auxiliary server released, and believe what is honest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import apache_beam as beam

from analyzer.reveal import Reveal
from analyzer.verify import verify
from hushcount.campaigns.campaign import Stream
from hushcount.discovery.count_laws import CountLaw
from hushcount.discovery.pairs import DiscoveryFormat
from hushcount.discovery.released import split_released
from hushcount.errors import UsageError
from pipelines.files import storage
from pipelines.files.blocks import ReadBlocks
from pipelines.handover.evaluator import Evaluator, public_key
from pipelines.jobs.found import count_law_of, facts_of, write_found
from pipelines.jobs.job import Finished, Place
from pipelines.jobs.opening import OpeningJob
from pipelines.ledger.charging import Charging
from pipelines.outputs.account import Hop
from pipelines.outputs.counting import WriteCounts, require_read_once, require_undamaged
from pipelines.outputs.counts import BinCounts, StreamCounts, counts_of, label
from pipelines.outputs.summary import make_summary

BINS = "bins"
"""The folder of what was released, in the auxiliary server's output."""
_OPENED = ".opened"


@dataclass(frozen=True, kw_only=True)
class RevealJob(OpeningJob):
    """The analyzer's: open the released records, and verify them with the evaluator of an oblivious campaign."""

    name: ClassVar[str] = "discover"
    hop: ClassVar[str] = "discover"
    charges: ClassVar[Hop] = "discover"
    stream: ClassVar[Stream] = "discovery"
    evaluator: Evaluator | None

    def __post_init__(self) -> None:
        if self.records != self.upstream.released:
            raise UsageError(
                f"the released files hold {self.records} records, hushcount discover --party aux-server wrote "
                f"{self.upstream.released}: a file is missing or was added"
            )

    @cached_property
    def law(self) -> CountLaw | None:
        """Of the noise in the counts; None: there are none."""
        return count_law_of(self.campaign, self.upstream.senders)

    def graph(self, pipeline: beam.Pipeline, place: Place) -> None:
        form, directory, length = self.campaign.discovery_format, place.directory, self.campaign.released_bytes
        reveal = Reveal(self.key, form, self.law, self.upstream.accepted_of("discovery"))
        read = pipeline | "read" >> ReadBlocks(self.files, self.campaign.fingerprint, length, 0, None)
        opened = (
            read["blocks"]
            | "records" >> beam.FlatMap(_records, length)
            | "reveal" >> beam.ParDo(reveal).with_outputs("counts", "unnamed", main="found")
        )
        if self.evaluator is None:
            gathered = opened.found | "gather" >> beam.combiners.ToList()
            gathered | "write found" >> beam.Map(_write_found, directory, form, self.law)
        else:
            gathered = opened.unnamed | "gather" >> beam.combiners.ToList()
            gathered | "write opened" >> beam.Map(_write_opened, storage.join(directory, _OPENED), form)
        counts = (read["counts"], opened.counts) | "all counts" >> beam.Flatten()
        counts | "label" >> beam.Map(label, "discovery") | "counts" >> WriteCounts(directory)

    def finish(self, place: Place, sums: Mapping[str, int], charge: Charging) -> Finished:
        if self.evaluator is not None:
            sums = self._verified(place, sums, self.evaluator)
        bins = counts_of(sums, ("discovery",))["discovery"]
        require_read_once("released records", bins.received, self.records)
        require_undamaged(self.folder, bins.rejected)
        if self.folder == storage.join(place.directory, BINS):
            storage.remove_directory(self.folder)
        pairs: dict[Stream, StreamCounts] = {"discovery": self.upstream.streams["discovery"]}
        summary = make_summary("discover", self.campaign, pairs, None, self.upstream)
        facts = facts_of(self.campaign, self.upstream.senders)
        kept = BinCounts(bins.received, bins.accepted, bins.rejected)
        return Finished(replace(summary, bins=kept, counts_of_values=facts))

    def _verified(self, place: Place, sums: Mapping[str, int], evaluator: Evaluator) -> Mapping[str, int]:
        """Believe or refuse what was opened, by asking once for all of it, and return the counts with these."""
        campaign, path, form = self.campaign, storage.join(place.directory, _OPENED), self.campaign.discovery_format
        length, padded = campaign.released_bytes, len(form.pad(None))
        rows = _records(storage.read_bytes(path, self.records * (length + padded)), length + padded)
        opened = [(row[:length], form.unpad(row[length:]) or "") for row in rows]
        (analyzer,) = campaign.keys.analyzer
        ask, key = evaluator.ask(campaign), public_key(campaign)
        found, counts = verify(form, bytes.fromhex(analyzer.key), opened, ask, key)
        _write_found(found, place.directory, form, self.law)
        storage.remove(path)
        return Counter(sums) + Counter(dict(label((reason, number), "discovery") for reason, number in counts.items()))


def _write_found(found: list[tuple[bytes, str]], directory: str, form: DiscoveryFormat, law: CountLaw | None) -> None:
    """Write found.csv of the released records that are believed, each with its value."""
    counted = law is not None
    write_found([(value, split_released(record, form, counted)[1]) for record, value in found], directory, law)


def _write_opened(opened: list[tuple[bytes, str]], path: str, form: DiscoveryFormat) -> None:
    storage.write_whole(path, [b"".join(record + form.pad(value) for record, value in opened)])


def _records(block: bytes, record_bytes: int) -> list[bytes]:
    return [block[start : start + record_bytes] for start in range(0, len(block), record_bytes)]
