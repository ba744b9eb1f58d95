"""The analyzer's part of hushcount job discover: open the released records, and accept the records that are valid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import apache_beam as beam
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import BoundedWindow

from analyzer.reveal import Reveal, verify
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.discovery.pairs import DiscoveryFormat, split_released
from hushcount.errors import UsageError
from hushcount.maths.count_laws import CountLaw
from hushcount.senders import Senders
from keys.directories import KeyReference
from pipelines.files import storage
from pipelines.files.orders import Folder, OfOrder, Order, Orders, number_of
from pipelines.handover.evaluator_address import Evaluator, public_key
from pipelines.jobs.found import count_law_of, facts_of, write_found
from pipelines.jobs.job import Finished, Place
from pipelines.jobs.opening import OpeningJob, OpeningSteps
from pipelines.jobs.together import Where
from pipelines.ledger.charging import Charging
from pipelines.outputs.account import Hop
from pipelines.outputs.counting import require_read_once, require_undamaged
from pipelines.outputs.counts import BinCounts, StreamCounts, counts_of, label
from pipelines.outputs.summary import make_summary

BINS = "bins"
"""The folder of released records, in the auxiliary server's output."""
_OPENED = ".opened"
"""The file of opened records; each record is followed by its value, and all values are padded to one length."""


@dataclass(frozen=True, kw_only=True)
class RevealSteps(OpeningSteps):
    """Open the released records.

    Attributes:
        law: law of the noise in the counts; None: the campaign has no counts.
    """

    stream: ClassVar[Stream] = "discovery"
    law: CountLaw | None

    @property
    def follows_from(self) -> tuple[bytes, ...]:
        return self.key.id.encode(), repr(self.law).encode()

    def add(self, files: Mapping[str, PCollection], where: Where) -> PCollection:
        form, length = self.campaign.discovery_format, self.campaign.released_bytes
        reveal = Reveal(self.key, form, self.law, _ReportsOf(where.orders))
        read = files["discovery"] | "read" >> where.read(self.campaign, length)
        opened = (
            read["blocks"]
            | "records" >> beam.FlatMap(_records, length)
            | "reveal" >> beam.ParDo(reveal).with_outputs("counts", "unnamed", main="found")
        )
        written = (
            (opened.unnamed if self.campaign.is_oblivious else opened.found)
            | "of its order" >> beam.ParDo(OfOrder())
            | "gather" >> beam.GroupByKey()
            | "write opened" >> beam.Map(_write_opened, where.folder(_OPENED), form)
        )
        counts = (read["counts"], opened.counts) | "all counts" >> beam.Flatten()
        known = where.counted(counts, "discovery"), where.written(written, "found")
        return known | "all that is known" >> beam.Flatten()


def reveal_steps(campaign: Campaign, key: KeyReference, senders: Senders) -> RevealSteps:
    """Return the steps that open a release of reports told apart as `senders` says; raises as `count_law_of`."""
    return RevealSteps(campaign=campaign, key=key, law=count_law_of(campaign, senders))


@dataclass(frozen=True, kw_only=True)
class RevealJob(OpeningJob):
    """The analyzer's job: open the released records and, in an oblivious campaign, verify them with the evaluator."""

    name: ClassVar[str] = "discover"
    hop: ClassVar[str] = "discover"
    charges: ClassVar[Hop] = "discover"
    steps: RevealSteps
    evaluator: Evaluator | None

    def __post_init__(self) -> None:
        if self.records != self.upstream.released:
            raise UsageError(
                f"the released files hold {self.records} records, but hushcount job discover --party aux-server wrote "
                f"{self.upstream.released}: a file is missing or was added; fetch the output again"
            )

    def order(self, directory: str) -> Order:
        return Order(directory, reports=self.upstream.accepted_of("discovery"))

    def finish(self, place: Place, sums: Mapping[str, int], charge: Charging) -> Finished:
        require_read_once("released records", sums.get("discovery:received", 0), self.records)
        path, form = storage.join(place.directory, _OPENED), self.campaign.discovery_format
        found = self._opened(path, form)
        if self.evaluator is not None:
            found, counts = self._verified(found, form, self.evaluator)
            sums = Counter(sums) + Counter(dict(label(count, "discovery") for count in counts.items()))
        shown = [(value, split_released(record, form, self.steps.law is not None)[1]) for record, value in found]
        write_found(shown, place.directory, self.steps.law)
        bins = counts_of(sums, ("discovery",))["discovery"]
        require_undamaged(self.folder, bins.rejected)
        if self.folder == storage.join(place.directory, BINS):
            storage.remove_directory(self.folder)
        pairs: dict[Stream, StreamCounts] = {"discovery": self.upstream.streams["discovery"]}
        summary = make_summary("discover", self.campaign, pairs, None, self.upstream)
        facts = facts_of(self.campaign, self.upstream.senders)
        kept = BinCounts(bins.received, bins.accepted, bins.rejected)
        return Finished(replace(summary, bins=kept, counts_of_values=facts))

    def _opened(self, path: str, form: DiscoveryFormat) -> list[tuple[bytes, str]]:
        """Return the opened records, each with its value, and remove the file of opened records if it exists."""
        if not storage.exists(path):
            return []
        length, padded = self.campaign.released_bytes, len(form.pad(None))
        rows = _records(storage.read_bytes(path, self.records * (length + padded)), length + padded)
        storage.remove(path)
        return [(row[:length], form.unpad(row[length:]) or "") for row in rows]

    def _verified(
        self, opened: list[tuple[bytes, str]], form: DiscoveryFormat, evaluator: Evaluator
    ) -> tuple[list[tuple[bytes, str]], Mapping[str, int]]:
        """Verify all opened records with the evaluator; return the accepted records, and the counts by outcome."""
        campaign = self.campaign
        (analyzer,) = campaign.keys.analyzer
        found, counts = verify(form, bytes.fromhex(analyzer.key), opened, evaluator.ask(campaign), public_key(campaign))
        return found, dict(counts.items())


@dataclass(frozen=True)
class _ReportsOf:
    """Returns, for the order in a window, the number of reports that the auxiliary server accepted."""

    orders: Orders

    def __call__(self, window: BoundedWindow) -> int:
        order = self.orders(number_of(window))
        return 0 if order is None else order.reports


def _write_opened(
    element: tuple[int, Iterable[tuple[bytes, str]]], folder: Folder, form: DiscoveryFormat
) -> tuple[int, int]:
    number, opened = element[0], [record + form.pad(value) for record, value in element[1]]
    if (path := folder(number)) is not None:
        storage.write_whole(path, [b"".join(opened)])
    return number, len(opened)


def _records(block: bytes, record_bytes: int) -> list[bytes]:
    return [block[start : start + record_bytes] for start in range(0, len(block), record_bytes)]
