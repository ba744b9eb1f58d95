"""Decisions of a log made by hand, and a deployment that holds nothing but a store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

from hushcount.campaigns.campaign import Stream
from hushcount.collection.manifests import SegmentPart
from hushcount.collection.windows import Window, window_at
from pipelines.deployment.settings import Deployment
from pipelines.handover.hops import HopName
from pipelines.handover.paths import Batch
from pipelines.log.entries import Closed, Decision, Finished, TakenManifest, Told
from pipelines.log.entry_files import Entry, read_entry, write_entry
from pipelines.log.fold import Fold
from pipelines.log.folding import Folding
from pipelines.outputs.counts import HopCounts, StreamCounts

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
START = datetime(2026, 11, 21, tzinfo=timezone.utc)
CAMPAIGN, FINGERPRINT = "words", "a" * 64
FILE = f"000001-{FINGERPRINT[:16]}"


def deployment_in(root: Path) -> Deployment:
    """Return a deployment of all parties without any campaign."""
    root.mkdir(parents=True, exist_ok=True)
    path = root / "deployment.toml"
    path.write_text('store = "store"\n[windows]\nlength = "1h"\ngrace = "2h"\n')
    return Deployment.read(path)


def hour(number: int) -> Window:
    """Return an hour, counted from START."""
    return window_at(START + number * HOUR, HOUR)


def told(name: str) -> Told:
    """Return a decision that depends on no other: something rose in the first hour."""
    return Told(window=hour(0).name, up={name: True})


def told_in(fold: Fold) -> list[str]:
    """Return the names of such decisions, in their order."""
    return [*fold.told.get(hour(0).name, {})]


def batch_of(number: int) -> str:
    """Return the name of the batch of an hour."""
    return Batch(CAMPAIGN, hour(number).name, 1, FINGERPRINT[:16]).name


def path_of(number: int, name: str = "one", stream: Stream = "reports") -> str:
    """Return the path of a segment of an hour."""
    return f"{CAMPAIGN}/{FILE}/{hour(number).name}/{stream}/{name}-000000.blocks"


def taken(
    number: int, records: Mapping[Stream, int] | None = None, collector: str = "one", seconds: int = 3600
) -> TakenManifest:
    """Return the manifest of an hour, with a segment of each stream of so many records."""
    window = hour(number)
    return TakenManifest(
        path=f"{CAMPAIGN}/{FILE}/{window.name}/{collector}.manifest.json", written=window.end + MINUTE, epoch=1,
        fingerprint=FINGERPRINT, collector=collector, window=window.name, seconds=seconds,
        authentication="client-token", refused={"wrong_length": 2}, damaged=0,
        segments={
            stream: (SegmentPart(name=f"{collector}-000000.blocks", records=size, bytes=100, digest="0" * 64),)
            for stream, size in ({"reports": 60} if records is None else records).items()
        },
    )  # fmt: skip


def closed(
    number: int,
    *manifests: TakenManifest,
    batch: Mapping[Stream, tuple[str, ...]] | None = None,
    aside: Mapping[str, str] | None = None,
    dropped: Mapping[str, str] | None = None,
) -> Closed:
    """Return the decision that closes an hour."""
    return Closed(
        window=hour(number).name, seconds=3600, manifests=manifests, batches={} if batch is None else {FILE: {**batch}},
        aside={**(aside or {})}, dropped={**(dropped or {})},
    )  # fmt: skip


def finished(number: int, hop: HopName, folder: str | None = "0" * 16, **accepted: int) -> Finished:
    """Return the decision that a hop of an hour's batch is done and accepted so many of each stream."""
    if folder is None:
        return Finished(batch=batch_of(number), hop=hop)
    streams: dict[Stream, StreamCounts] = {
        stream: StreamCounts(accepted[stream], accepted[stream], {})
        for stream in ("reports", "discovery")
        if stream in accepted
    }
    summary = HopCounts.of(hop, streams).data()
    return Finished(batch=batch_of(number), hop=hop, folder=folder, summary=summary)


def entries(*decisions: Decision, start: datetime = START) -> list[Entry]:
    """Return the entries of a log that begins with these decisions, one in each minute."""
    found: list[Entry] = []
    for number, decision in enumerate(decisions, 1):
        written = write_entry(number, found[-1].digest if found else None, start + number * MINUTE, decision)
        assert written.beside is None
        found.append(read_entry(written.data, f"{number}.json", {}.__getitem__))
    return found


def folded(*decisions: Decision) -> Fold:
    """Return what the shuffler's log of these decisions comes to."""
    folding = Folding("shuffler", CAMPAIGN)
    for entry in entries(*decisions):
        folding.add(entry)
    return folding.fold
