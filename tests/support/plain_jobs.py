"""Jobs without an engine, for tests of what a run remembers: they count segments and note what was released."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.epochs import epoch_folder
from hushcount.collection.manifests import Manifest, SegmentPart
from hushcount.errors import NotYet
from hushcount.results import TABLE
from pipelines.files import storage
from pipelines.files.block_files import BlockFile, write_file
from pipelines.handover.batch_file import BatchFile, collected
from pipelines.handover.parties import hand_on
from pipelines.handover.upstream import read_upstream
from pipelines.jobs.together import BatchJob, Outcome
from pipelines.outputs.counts import SEALED, BinCounts, StreamCounts
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.staging import Output, Writer, staged
from pipelines.outputs.summary import HopSummary, make_summary
from tests.support.collecting import window_name

COPIES = "copies"
"""The collector of which the shuffler forwards nothing."""
_LISTED = "listed.json"


def leave(store: Path, path: Path, day: int, records: Mapping[Stream, int], collector: str = "one") -> list[str]:
    """Leave segments of so many records that no shuffler could open, and their manifest; return their paths."""
    campaign = Campaign.read(path)
    folder = f"{campaign.id}/{epoch_folder(campaign)}/{window_name(day)}"
    parts = {}
    for stream, number in records.items():
        record = f"{collector} {day} {stream}".encode()
        file = store / "segments" / folder / stream / f"{collector}-000000.blocks"
        write_file(str(file), ENVELOPES[stream], len(record), record * number, campaign.fingerprint, campaign.id)
        data = file.read_bytes()
        digest = hashlib.blake2b(data, digest_size=32).hexdigest()
        name = f"{collector}-000000.blocks"
        parts[stream] = (SegmentPart(name=name, records=number, bytes=len(data), digest=digest),)
    manifest = Manifest(
        collector=collector, campaign=campaign.id, epoch=campaign.epoch, fingerprint=campaign.fingerprint.hex(),
        window=window_name(day), seconds=86_400, authentication="client-token", segments=parts,
    )  # fmt: skip
    text = json.dumps(manifest.model_dump(mode="json"))
    (store / "segments" / folder / f"{collector}.manifest.json").write_text(text)
    return [f"{folder}/{stream}/{collector}-000000.blocks" for stream in records]


class PlainJob(BatchJob):
    """A job without a graph: all that are alike share none."""

    def __init__(self, work: Callable[..., HopSummary], *given: Any, **named: Any) -> None:
        object.__setattr__(self, "work", partial(work, *given, **named))
        out = given[3] if len(given) > 3 else given[2]
        object.__setattr__(self, "to", Output(out, writer=named["writer"]))

    work: Callable[[], HopSummary]
    alike = "plain"
    inputs: Mapping[str, list[BlockFile]] = {}

    def finish(self, *_: object) -> Any:
        raise NotImplementedError


def _together(jobs: Sequence[PlainJob], *_: object) -> Generator[Outcome, None, None]:
    for job in jobs:
        try:
            yield Outcome(job.work())
        except NotYet as error:
            yield Outcome(error)


class PlainJobs:
    """Stands for the four jobs.

    Attributes:
        released: the segments of each release, by its stream and its input's digest: the same input again is, for
            the ledger, the same release.
        ran: hop and name of the batch of each job.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.released: dict[tuple[str, str], list[str]] = {}
        self.ran: list[tuple[str, str]] = []
        patch.setattr("pipelines.jobs.shuffle.plan_shuffle", self.plan_shuffle)
        patch.setattr("pipelines.jobs.discover.plan_discover", partial(PlainJob, self.discover))
        patch.setattr("pipelines.jobs.analyze.plan_analyze", partial(PlainJob, self.analyze))
        patch.setattr("pipelines.schedule.attempts.run_together", _together)

    def plan_shuffle(self, path: Path, batch: BatchFile, out: str, **named: Any) -> PlainJob:
        for name in batch.earlier:
            # Its reports would be compared with this batch's.
            read_upstream(storage.join(batch.shuffled_folder, name), "shuffle", Campaign.read(path))
        return PlainJob(self.shuffle, path, batch, out, **named)

    def shuffle(self, path: Path, batch: BatchFile, out: str, *, writer: Writer, **_: object) -> HopSummary:
        campaign = Campaign.read(path)
        counts: dict[Stream, StreamCounts] = {}
        listed: dict[str, list[str]] = {}
        for stream, segments in batch.segments.items():
            copies = sum(segment.records for segment in segments if f"/{COPIES}-" in segment.path)
            number = sum(segment.records for segment in segments)
            if number - copies >= campaign.shuffle.minimum_batch:
                counts[stream] = StreamCounts(number, number - copies, {"duplicate": copies} if copies else {})
                listed[stream] = [segment.path for segment in segments]
        if not counts:
            raise NotYet("too few", tuple(batch.segments))
        self.ran.append(("shuffle", batch.window))
        with staged(out, False, writer) as directory:
            for stream, counted in counts.items():
                length = campaign.sealed_bytes(stream)
                file = storage.join(directory, stream, "part-00000-of-00001.blocks")
                data = bytes(length * counted.accepted)
                write_file(file, SEALED[stream], length, data, campaign.fingerprint, campaign.id)
            (Path(directory) / _LISTED).write_text(json.dumps(listed))
            summary = make_summary("shuffle", campaign, counts, None, collected(batch))
            return hand_on(directory, Output(out, writer=writer), tuple(counts), summary)

    def discover(
        self, path: Path, source: str, _: object, out: str, *, party: str, writer: Writer, **__: object
    ) -> HopSummary:
        campaign = Campaign.read(path)
        hop, before = ("release", "shuffle") if party == "aux-server" else ("discover", "release")
        upstream = read_upstream(source, before, campaign)
        self.ran.append((hop, writer.batch.partition("-")[0]))
        if hop == "release":
            self._release(source, "discovery", upstream)
        counts = upstream.streams["discovery"]
        if hop == "release":
            counts = StreamCounts(counts.accepted, counts.accepted, {})
        summary = make_summary(hop, campaign, {"discovery": counts}, None, upstream)
        summary = replace(summary, released=0) if hop == "release" else replace(summary, bins=BinCounts(0, 0, {}))
        with staged(out, False, writer) as directory:
            return hand_on(directory, Output(out, writer=writer), (), summary)

    def analyze(self, path: Path, source: str, _: object, out: str, *, writer: Writer, **__: object) -> HopSummary:
        campaign = Campaign.read(path)
        upstream = read_upstream(source, "shuffle", campaign)
        self.ran.append(("analyze", writer.batch.partition("-")[0]))
        self._release(source, "reports", upstream)
        number = upstream.accepted_of("reports")
        summary = make_summary("analyze", campaign, {"reports": StreamCounts(number, number, {})}, None, upstream)
        with staged(out, False, writer) as directory:
            storage.write_whole(storage.join(directory, TABLE), [writer.batch.encode()])
            return hand_on(directory, Output(out, writer=writer), (), summary)

    def _release(self, source: str, stream: str, upstream: HopSummary) -> None:
        listed: dict[str, Any] = json.loads((Path(folder_of(source, upstream)) / _LISTED).read_text())
        self.released[stream, upstream.digest()] = listed[stream]
