"""Batches: which segments are shuffled together. Decided in the state database, each segment in one batch at most.

A segment joins the batch of the window in which it came, or of a later one within the grace period where it was late or
where too few reports of its stream had come; after that it is `too_late`. A stream does not wait for another: the batch
of a window holds those that reach the minimum. docs/adr/0014.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import product
from typing import Any

from sqlalchemy import Connection, Row, and_, func, select, update

from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.epochs import FINGERPRINT_DIGITS, folder_name
from hushcount.collection.manifests import Manifest
from hushcount.collection.windows import Window, is_window, window_start
from pipelines.batches.state import BATCHES, DELETED, HOPS, MANIFESTS, SEGMENT_STATES, SEGMENTS, WINDOWS
from pipelines.handover.batch_file import BATCH_NAME, BatchSegment
from pipelines.outputs.counts import HopCounts
from pipelines.outputs.received_summary import parse_counts
from pipelines.outputs.summary import HopSummary

UNLISTED = "named by its batch, and by no manifest"
"""Why a segment is in the state whose manifest was not there when it was taken from its batch's file."""


@dataclass(frozen=True)
class Batch:
    """Segments of one campaign file that are shuffled together, of one stream or of several.

    Attributes:
        campaign: id.
        window: name of the window at whose end it was made.
        epoch: of the campaign file.
        fingerprint: of the campaign file, its first 16 digits.
    """

    campaign: str
    window: str
    epoch: int
    fingerprint: str

    @property
    def name(self) -> str:
        """WINDOW-EPOCH-FINGERPRINT, also of its folders."""
        return f"{self.window}-{folder_name(self.epoch, self.fingerprint)}"

    @classmethod
    def named(cls, campaign: str, name: str) -> Batch | None:
        """Return the batch of that name; None if no batch has it: people put folders of their own beside ours."""
        window, epoch, fingerprint = name.split("-") if re.fullmatch(BATCH_NAME, name) else ("", "", "")
        if not is_window(window):
            return None
        return cls(campaign, window, int(epoch), fingerprint)


def known_manifests(connection: Connection, campaign: str) -> set[str]:
    """Return the paths of the manifests that were registered."""
    return set(connection.execute(select(MANIFESTS.c.path).where(MANIFESTS.c.campaign == campaign)).scalars())


def register(connection: Connection, path: str, manifest: Manifest) -> None:
    """Enter a manifest and its segments, which wait from now on; `path` is relative to the folder of segments."""
    folder = path.rpartition("/")[0]
    shared = {
        "campaign": manifest.campaign,
        "epoch": manifest.epoch,
        "fingerprint": manifest.fingerprint[:FINGERPRINT_DIGITS],
        "window": manifest.window,
        "authentication": manifest.authentication,
    }
    row = {
        "path": path,
        "seconds": manifest.seconds,
        "collector": manifest.collector,
        "refused": json.dumps(manifest.refused, sort_keys=True),
        "damaged": manifest.damaged,
    }
    connection.execute(MANIFESTS.insert().values(**shared, **row))
    unlisted = and_(SEGMENTS.c.campaign == manifest.campaign, SEGMENTS.c.reason == UNLISTED)
    rows = connection.execute(select(SEGMENTS.c.path, SEGMENTS.c.digest).where(unlisted))
    known = {row.path: row.digest for row in rows}
    for stream, segments in manifest.segments.items():
        for segment in segments:
            segment_path = f"{folder}/{stream}/{segment.name}"
            if known.get(segment_path) == segment.digest:
                connection.execute(update(SEGMENTS).where(SEGMENTS.c.path == segment_path).values(reason=None))
                continue
            connection.execute(
                SEGMENTS.insert().values(
                    **shared,
                    path=segment_path,
                    stream=stream,
                    records=segment.records,
                    bytes=segment.bytes,
                    digest=segment.digest,
                    state="waiting",
                )
            )


def known_windows(connection: Connection, campaign: str) -> dict[str, Window]:
    """Return the windows that collectors reported or that were closed, by name; if they disagree, the longest."""
    found: dict[str, Window] = {}
    for table in (WINDOWS, MANIFESTS):
        lengths = select(table.c.window, func.max(table.c.seconds)).where(table.c.campaign == campaign)
        for name, seconds in connection.execute(lengths.group_by(table.c.window)):
            start = window_start(name)
            window = Window(start, start + timedelta(seconds=seconds))
            found[name] = max(window, found.get(name, window))
    return found


def close_window(connection: Connection, campaign: str, window: str, seconds: int, now: datetime) -> None:
    """Enter a window of that length as closed; it must not be."""
    row = {"campaign": campaign, "window": window, "closed_at": now.isoformat(), "seconds": seconds}
    connection.execute(WINDOWS.insert().values(**row))


def closed_windows(connection: Connection, campaign: str) -> set[str]:
    """Return the names of the windows that were closed."""
    return set(connection.execute(select(WINDOWS.c.window).where(WINDOWS.c.campaign == campaign)).scalars())


def deleted_folders(connection: Connection, campaign: str) -> dict[tuple[str, str], bool]:
    """Return what is going, or gone, by folder and batch: whether all of it is."""
    rows = connection.execute(select(DELETED).where(DELETED.c.campaign == campaign))
    return {(row.folder, row.batch): row.complete for row in rows}


def counts_of(connection: Connection, batch: Batch) -> dict[str, HopCounts]:
    """Return what each hop that has run counted of a batch, by the hop."""
    mine = and_(HOPS.c.campaign == batch.campaign, HOPS.c.batch == batch.name)
    rows = connection.execute(select(HOPS.c.hop, HOPS.c.counts).where(mine))
    return {hop: parse_counts(counts) for hop, counts in rows}


def hops_done(connection: Connection, campaign: str) -> dict[str, set[str]]:
    """Return which hops have run, by the name of the batch; batches of which none has are left out."""
    done: dict[str, set[str]] = defaultdict(set)
    for batch, hop in connection.execute(select(HOPS.c.batch, HOPS.c.hop).where(HOPS.c.campaign == campaign)):
        done[batch].add(hop)
    return done


def streams_done(connection: Connection, campaign: str) -> dict[str, set[str]]:
    """Return of which streams the hops that have run counted reports, by the name of the batch."""
    done: dict[str, set[str]] = defaultdict(set)
    for batch, counts in connection.execute(select(HOPS.c.batch, HOPS.c.counts).where(HOPS.c.campaign == campaign)):
        done[batch] |= parse_counts(counts).streams.keys()
    return done


def shuffled_batches(connection: Connection, campaign: str) -> set[str]:
    """Return the names of the batches that were shuffled here."""
    return {batch for batch, hops in hops_done(connection, campaign).items() if "shuffle" in hops}


def made_batches(connection: Connection, campaign: str) -> list[Batch]:
    """Return all batches that stand, oldest window first."""
    rows = connection.execute(
        select(BATCHES)
        .where(BATCHES.c.campaign == campaign, BATCHES.c.state == "made")
        .order_by(BATCHES.c.window, BATCHES.c.epoch)
    )
    return [Batch(row.campaign, row.window, row.epoch, row.fingerprint) for row in rows]


def stand(connection: Connection, batch: Batch) -> None:
    """Let a batch stand, also if it was dissolved."""
    mine = and_(BATCHES.c.campaign == batch.campaign, BATCHES.c.name == batch.name)
    if connection.execute(update(BATCHES).where(mine).values(state="made")).rowcount == 0:
        row = {"epoch": batch.epoch, "fingerprint": batch.fingerprint, "window": batch.window, "state": "made"}
        connection.execute(BATCHES.insert().values(name=batch.name, campaign=batch.campaign, **row))


def segments_of(connection: Connection, batch: Batch) -> dict[str, list[BatchSegment]]:
    """Return the segments of a batch by their stream, sorted by path."""
    rows = connection.execute(
        select(SEGMENTS)
        .where(SEGMENTS.c.campaign == batch.campaign, SEGMENTS.c.batch == batch.name, SEGMENTS.c.state == "batched")
        .order_by(SEGMENTS.c.path)
    )
    found: dict[str, list[BatchSegment]] = defaultdict(list)
    for row in rows:
        found[row.stream].append(_segment(row))
    return found


def _segment(row: Row[Any]) -> BatchSegment:
    return BatchSegment(**{name: getattr(row, name) for name in BatchSegment.model_fields})


def quarantine(connection: Connection, path: str, reason: str) -> None:
    """Take a segment out of all batches, until it is what its manifest says."""
    connection.execute(
        update(SEGMENTS).where(SEGMENTS.c.path == path).values(state="quarantined", batch=None, reason=reason)
    )


def quarantined(connection: Connection, campaign: str) -> list[tuple[BatchSegment, str]]:
    """Return the segments that were put aside, each with what was wrong with it, sorted by path."""
    mine = and_(SEGMENTS.c.campaign == campaign, SEGMENTS.c.state == "quarantined")
    rows = connection.execute(select(SEGMENTS).where(mine).order_by(SEGMENTS.c.path))
    return [(_segment(row), row.reason) for row in rows]


def let_wait(connection: Connection, path: str) -> None:
    """Let a segment that was put aside wait again."""
    connection.execute(update(SEGMENTS).where(SEGMENTS.c.path == path).values(state="waiting", reason=None))


def records_by_state(connection: Connection, campaign: str) -> dict[tuple[str, str], int]:
    """Return how many collected reports are in which state, by stream and state: all of them, none left out."""
    place = (SEGMENTS.c.stream, SEGMENTS.c.state)
    sums = select(*place, func.sum(SEGMENTS.c.records)).where(SEGMENTS.c.campaign == campaign).group_by(*place)
    found = {(stream, state): int(records) for stream, state, records in connection.execute(sums)}
    return {one: found.get(one, 0) for one in product(ENVELOPES, SEGMENT_STATES)}


def take_out(connection: Connection, batch: Batch, streams: Collection[str]) -> None:
    """Let the segments of streams of a batch wait again, because too few of their reports can be forwarded.

    A batch that none stays in is dissolved.
    """
    mine = and_(SEGMENTS.c.campaign == batch.campaign, SEGMENTS.c.batch == batch.name)
    short = and_(mine, SEGMENTS.c.stream.in_(streams))
    connection.execute(update(SEGMENTS).where(short).values(state="waiting", batch=None))
    if connection.execute(select(SEGMENTS.c.path).where(mine)).first() is None:
        here = and_(BATCHES.c.campaign == batch.campaign, BATCHES.c.name == batch.name)
        connection.execute(update(BATCHES).where(here).values(state="dissolved"))


def record(connection: Connection, batch: Batch, hop: str, counted: HopCounts) -> None:
    """Enter what a hop counted; streams that the shuffler left out, because too few can be forwarded, wait again."""
    if hop == "shuffle":
        left_out = segments_of(connection, batch).keys() - counted.streams.keys()
        if left_out:
            take_out(connection, batch, left_out)
    row = {"campaign": batch.campaign, "batch": batch.name, "hop": hop}
    counts, finished_at = json.dumps(counted.counts.data(), sort_keys=True), datetime.now(timezone.utc)
    connection.execute(
        HOPS.insert().values(
            **row,
            counts=counts,
            folder=counted.folder if isinstance(counted, HopSummary) else None,
            finished_at=finished_at.isoformat(timespec="seconds"),
        )
    )
