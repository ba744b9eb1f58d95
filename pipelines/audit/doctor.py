"""hushcount doctor: look at a deployment before it fails, and say what to do."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, and_, func, select

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.signatures import signature_path
from hushcount.collection.epochs import EpochPart, epoch_folder
from hushcount.errors import HushcountError
from hushcount.formats.reading import parse_object
from hushcount.senders import as_way
from pipelines.audit.checks import Check, Verdict, named_checks, told_apart
from pipelines.audit.clock_checks import clock_check, collector_clocks
from pipelines.audit.foresight import budget, next_epoch, year
from pipelines.audit.orphans import orphans
from pipelines.audit.reconcile import account_of
from pipelines.batches.rows import known_windows
from pipelines.batches.state import HOPS, MANIFESTS, SEGMENTS, opened, snapshot
from pipelines.batches.unclaimed import unclaimed
from pipelines.batches.waiting import waiting_of
from pipelines.deployment.campaigns import Epochs, read_epochs
from pipelines.deployment.settings import Deployment, Party, WindowsPart
from pipelines.files import storage
from pipelines.files.storage_errors import cause, told

_SOON = timedelta(days=14)
_WINDOWS = 7
_LONG = timedelta(days=90)
_ROOM = 3.0
_ROLE: dict[Party, Literal["analyzer", "aux_server"]] = {"analyzer": "analyzer", "aux-server": "aux_server"}
_WRITES: dict[Party, tuple[str, ...]] = {
    "shuffler": ("batches", "shuffled"),
    "aux-server": ("released",),
    "analyzer": ("found", "results"),
}


def examine(deployment: Deployment, now: datetime | None = None) -> list[Check]:
    """Return what was found, check by check; one that cannot be made is bad itself."""
    moment = now or datetime.now(timezone.utc)
    checks = [*_tried("campaigns", lambda: _campaigns(deployment, moment))]
    for name, check in named_checks(deployment).items():
        checks += _tried(name, check)
    checks += _tried("store", lambda: _store(deployment))
    checks += _tried("disk", lambda: _disk(deployment))
    checks += _tried("state", lambda: _state(deployment, moment))
    return checks


def _tried(name: str, check: Callable[[], Iterator[Check]]) -> list[Check]:
    try:
        return list(check())
    except (HushcountError, OSError) as error:
        return [Check(name, "bad", told(error))]


def _campaigns(deployment: Deployment, now: datetime) -> Iterator[Check]:
    campaigns, faults = read_epochs(deployment.campaigns)
    for name, fault in faults.items():
        yield Check(f"campaign {name}", "bad", fault)
    for epochs in campaigns:
        current = epochs.collection.current(now)
        if current is None:
            yield Check(
                f"epoch of {epochs.campaign}",
                "bad",
                f"none is current: hushcount epoch publish --config {deployment.path}",
            )
        else:
            yield Check(f"epoch of {epochs.campaign}", "good", f"{current.epoch} since {current.begins.isoformat()}")
        for (_, campaign), part in _accepted(epochs, now):
            yield from _keys(deployment, campaign, part, part == current, now)
        yield from _signatures(epochs)
        yield from _tried(f"next epoch of {epochs.campaign}", partial(next_epoch, deployment, epochs, now))
        yield from _tried(f"epochs of {epochs.campaign} a year", partial(year, deployment, epochs))


def _signatures(epochs: Epochs) -> Iterator[Check]:
    """Whether clients that verify campaign files can take the newest."""
    parts = epochs.collection.epochs
    signed = [signature_path(epochs.directory / part.file).exists() for part in parts]
    if len(signed) > 1 and signed[-2] and not signed[-1]:
        cure = "hushcount campaign sign it, and replace collection.json by a copy of itself, so that collectors read it"
        said = f"epoch {parts[-1].epoch} has none, the one before has: {cure}"
        yield Check(f"signature of {epochs.campaign}", "bad", said)


def _accepted(epochs: Epochs, now: datetime) -> Iterator[tuple[tuple[Path, Campaign], EpochPart]]:
    for file in epochs.files.values():
        part = next(part for part in epochs.collection.epochs if part.epoch == file[1].epoch)
        if epochs.collection.accepts(part.epoch, now):
            yield file, part


def _keys(deployment: Deployment, campaign: Campaign, part: EpochPart, current: bool, now: datetime) -> Iterator[Check]:
    """Whether what clients send can be opened here, and clients can go on sending."""
    file = f"epoch {part.epoch} of {campaign.id}"
    try:
        campaign.read_dictionary()
    except HushcountError as error:
        yield Check(f"dictionary of {file}", "bad", str(error))
    for role, listed in (("analyzer", campaign.keys.analyzer), ("aux_server", campaign.keys.aux_server)):
        for key in listed if current else ():
            left = key.not_after - now
            verdict: Verdict = "good" if left > _SOON else "warning" if left > timedelta() else "bad"
            cure = "" if verdict == "good" else ": hushcount keys rotate, then publish an epoch with the new key"
            yield Check(f"{role} key of {file}", verdict, f"valid until {key.not_after.isoformat()}{cure}")
    for party in deployment.file.parties:
        if party in _ROLE and (keys := getattr(campaign.keys, _ROLE[party])):
            # Not at the top: the shuffler's doctor has no such package.
            from keys.store import campaign_key

            try:
                campaign_key(deployment.keys, _ROLE[party], keys)
                yield Check(f"private {party} key of {file}", "good", "opens")
            except HushcountError as error:
                yield Check(f"private {party} key of {file}", "bad", str(error))


def _store(deployment: Deployment) -> Iterator[Check]:
    for party in deployment.file.parties:
        for name in _WRITES[party]:
            folder = deployment.folder(name)
            probe = storage.join(folder, f"probe-{uuid.uuid4().hex}")
            try:
                storage.write_whole(probe, [b"probe"])
                storage.remove(probe)
                yield Check(f"write to {name}", "good", folder)
            except (OSError, HushcountError) as error:
                yield Check(f"write to {name}", "bad", f"{folder}: {cause(error)}: let this user write there")


def _disk(deployment: Deployment) -> Iterator[Check]:
    places = {"store": deployment.store, "state": str(Path(deployment.state).parent)}
    if deployment.collector is not None:
        places["journal"] = str(deployment.base / deployment.collector.journal)
    with opened(deployment.state) as state, state.begin() as connection:
        usual = _usual_bytes(connection)
    for name, place in places.items():
        if "://" in place or not Path(place).exists():
            continue
        free = shutil.disk_usage(place).free
        # A batch is there as segments, as what the shuffler has in hand, and as what it wrote.
        needed = _ROOM * usual
        if name == "journal" and deployment.collector is not None:
            # Below that the collector refuses reports.
            needed += deployment.collector.least_free_bytes
        verdict: Verdict = "good" if free > needed else "bad"
        cure = "" if verdict == "good" else f", {needed / 1e9:,.1f} GB are needed: make room"
        yield Check(f"disk of {name}", verdict, f"{free / 1e9:,.1f} GB free{cure}")


def _usual_reports(connection: Connection, campaign: str) -> int:
    """Return how many frequency reports the analyzer accepted of the last batch; 0: none yet."""
    mine = and_(HOPS.c.campaign == campaign, HOPS.c.hop == "analyze")
    rows = connection.execute(select(HOPS.c.counts).where(mine).order_by(HOPS.c.batch.desc()))
    counts = (parse_object(row.counts.encode(), "state")["streams"].get("reports") for row in rows)
    return next((int(counted["accepted"]) for counted in counts if counted), 0)


def _usual_bytes(connection: Connection) -> float:
    """Return the bytes that the largest of the last windows brought."""
    sums = select(SEGMENTS.c.window, func.sum(SEGMENTS.c.bytes)).group_by(SEGMENTS.c.window)
    latest = sorted((window, int(size)) for window, size in connection.execute(sums))[-_WINDOWS:]
    return max((size for _, size in latest), default=0)


def _state(deployment: Deployment, now: datetime) -> Iterator[Check]:
    campaigns, faults = read_epochs(deployment.campaigns)
    for name, said in unclaimed(deployment, {epochs.campaign for epochs in campaigns} | faults.keys()).items():
        yield Check(f"segments of {name}", "warning", said)
    with opened(deployment.state) as state, snapshot(state) as connection:
        yield from _tried("clock", partial(clock_check, connection, deployment, now))
        for epochs in campaigns:
            yield from _volume(connection, epochs, deployment.windows)
            yield from _waiting(connection, epochs, deployment.windows, now)
            usual = partial(budget, deployment, epochs, _usual_reports(connection, epochs.campaign), now)
            yield from _tried(f"budget of {epochs.campaign}", usual)
            yield from collector_clocks(connection, epochs, deployment, now)
            yield from _listed(connection, epochs, deployment, now)
            yield from _senders(connection, epochs)
            yield from _drift(deployment, epochs)
            yield from _retention(connection, deployment, epochs, now)
            differences = account_of(connection, deployment, epochs.campaign, now).differences
            said = f"{len(differences)} do not agree: hushcount status" if differences else "agree"
            yield Check(f"numbers of {epochs.campaign}", "bad" if differences else "good", said)


def _waiting(connection: Connection, epochs: Epochs, windows: WindowsPart, now: datetime) -> Iterator[Check]:
    """Whether acknowledged reports wait, and will be dropped."""
    found = waiting_of(connection, epochs.campaign, epochs.campaigns, windows, now)
    for one in found:
        yield Check(f"waiting {one.stream} of epoch {one.epoch} of {epochs.campaign}", one.verdict, one.says)
    if not found:
        yield Check(f"waiting of {epochs.campaign}", "good", "nothing waits for a later window")


def _volume(connection: Connection, epochs: Epochs, windows: WindowsPart) -> Iterator[Check]:
    """Whether a window usually brings a batch of each stream, or else the windows of a grace period do."""
    campaign = epochs.newest[1]
    sums = select(SEGMENTS.c.window, SEGMENTS.c.stream, func.sum(SEGMENTS.c.records))
    rows = connection.execute(
        sums.where(SEGMENTS.c.campaign == epochs.campaign).group_by(SEGMENTS.c.window, SEGMENTS.c.stream)
    )
    numbers = {(window, stream): int(number) for window, stream, number in rows}
    latest = sorted({window for window, _ in numbers})[-_WINDOWS:]
    for stream in campaign.streams if latest else ():
        median = sorted(numbers.get((window, stream), 0) for window in latest)[len(latest) // 2]
        floor, within = campaign.shuffle.minimum_batch, 1 + windows.grace // windows.length
        verdict: Verdict = "good" if median >= 2 * floor else "warning" if median * within >= floor else "bad"
        cure = "" if verdict == "good" else ": results may wait for several windows; lengthen the window"
        if verdict == "bad":
            cure = f": {within} windows bring no batch, and reports are dropped; lengthen the window, or its grace"
        yield Check(
            f"volume of {epochs.campaign} {stream}",
            verdict,
            f"{median:,} a window, the minimum batch is {floor:,}{cure}",
        )


def _listed(connection: Connection, epochs: Epochs, deployment: Deployment, now: datetime) -> Iterator[Check]:
    """Whether every segment is in a manifest, and every collector has a name of its own."""
    if "shuffler" not in deployment.file.parties:
        return
    found = orphans(connection, deployment, epochs.campaign, now)
    cure = f"{len(found)} of {sum(found.values()):,} bytes are in no manifest: hushcount segments relist"
    yield Check(f"segments of {epochs.campaign}", "bad" if found else "good", cure if found else "all are listed")
    names = select(MANIFESTS.c.collector, MANIFESTS.c.window, MANIFESTS.c.epoch, MANIFESTS.c.fingerprint)
    several = names.where(MANIFESTS.c.campaign == epochs.campaign).group_by(*names.selected_columns)
    twice = {row.collector: row.window for row in connection.execute(several.having(func.count() > 1))}
    for name, window in sorted(twice.items()):
        cure = "if two collectors have it, give each its own: a client's cap is counted by each"
        yield Check(f"name of {name}", "warning", f"two journals of that name closed {window}: {cure}")


def _senders(connection: Connection, epochs: Epochs) -> Iterator[Check]:
    """Whether collectors told clients apart, each in the last window that it closed."""
    mine = select(MANIFESTS.c.collector, MANIFESTS.c.authentication).where(MANIFESTS.c.campaign == epochs.campaign)
    last = {row.collector: row.authentication for row in connection.execute(mine.order_by(MANIFESTS.c.window))}
    for collector, way in sorted(last.items()):
        yield told_apart(f"senders of {epochs.campaign} at {collector}", as_way(way))


def _drift(deployment: Deployment, epochs: Epochs) -> Iterator[Check]:
    """Whether collectors store reports of campaign files that are not known here."""
    known = {epoch_folder(campaign) for _, campaign in epochs.files.values()}
    found = storage.list_tree(deployment.folder("segments", epochs.campaign), "*/*/*.manifest.json")
    strange = sorted({path.split("/")[-3] for path, _ in found} - known)
    said = f"{strange[0]} is none of its epochs: publish that campaign file here" if strange else "as published"
    yield Check(f"campaign files of {epochs.campaign}", "bad" if strange else "good", said)


def _retention(connection: Connection, deployment: Deployment, epochs: Epochs, now: datetime) -> Iterator[Check]:
    """Whether reports stay in the store long after they were counted."""
    if "shuffler" not in deployment.file.parties or deployment.file.retention.segments is not None:
        return
    found = storage.list_tree(deployment.folder("segments", epochs.campaign), "*/*/*/*.blocks")
    over = {name for name, window in known_windows(connection, epochs.campaign).items() if now - window.end > _LONG}
    old = [size for path, size in found if path.split("/")[-3] in over]
    cure = f"{sum(old) / 1e9:,.1f} GB are older than {_LONG.days} days: set segments under [retention]"
    yield Check(f"age of segments of {epochs.campaign}", "warning" if old else "good", cure if old else "young")
