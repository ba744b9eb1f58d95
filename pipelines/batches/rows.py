"""Batches: which segments are shuffled together. The state database decides; each segment is in one batch at most.

A segment joins the batch of the window in which it came. If it was late, or too few reports of its stream had come, it
joins that of a later window within the grace period; after that it is `too_late`. A stream does not wait for another:
the batch of a window holds those that reach the minimum. docs/adr/0014.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta, timezone
from itertools import product
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, func, select, update

from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.epochs import FINGERPRINT_DIGITS
from hushcount.collection.manifests import Manifest
from hushcount.collection.windows import Window, window_start
from hushcount.formats.reading import parse_object
from pipelines.batches.state import BATCHES, DELETED, HOPS, MANIFESTS, SEGMENT_STATES, SEGMENTS, WINDOWS
from pipelines.handover.batch_file import BatchSegment
from pipelines.handover.names import Batch
from pipelines.outputs.counts import HopCounts
from pipelines.outputs.received_summary import parse_counts
from pipelines.outputs.summary import HopSummary

UNLISTED = "named by its batch, and by no manifest"
"""The reason of a segment that came from its batch's file before its manifest was there."""
_CHARGE = "charge"
"""The key of what was noted of a hop's charge, beside its counts."""


def of_batch(table: Table, batch: Batch) -> ColumnElement[bool]:
    """Return the condition that a row is of a batch."""
    return and_(table.c.campaign == batch.campaign, (table.c.name if table is BATCHES else table.c.batch) == batch.name)


def in_state(campaign: str, state: str) -> ColumnElement[bool]:
    """Return the condition that a segment of a campaign is in a state."""
    return and_(SEGMENTS.c.campaign == campaign, SEGMENTS.c.state == state)


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
            facts = {"path": f"{folder}/{stream}/{segment.name}", **segment.model_dump(exclude={"name"})}
            if known.get(facts["path"]) == segment.digest:
                connection.execute(update(SEGMENTS).where(SEGMENTS.c.path == facts["path"]).values(reason=None))
            else:
                connection.execute(SEGMENTS.insert().values(**shared, **facts, stream=stream, state="waiting"))


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
    """Enter an open window of that length as closed."""
    row = {"campaign": campaign, "window": window, "closed_at": now.isoformat(), "seconds": seconds}
    connection.execute(WINDOWS.insert().values(**row))


def closed_windows(connection: Connection, campaign: str) -> set[str]:
    """Return the names of the closed windows."""
    return set(connection.execute(select(WINDOWS.c.window).where(WINDOWS.c.campaign == campaign)).scalars())


def deleted_folders(connection: Connection, campaign: str) -> dict[tuple[str, str], bool]:
    """Return what retention deletes, by folder and batch: whether all of it is gone."""
    rows = connection.execute(select(DELETED).where(DELETED.c.campaign == campaign))
    return {(row.folder, row.batch): row.complete for row in rows}


def counts_of(connection: Connection, batch: Batch) -> dict[str, HopCounts]:
    """Return what each hop that has run counted of a batch, by the hop."""
    rows = connection.execute(select(HOPS.c.hop, HOPS.c.counts).where(of_batch(HOPS, batch)))
    return {hop: parse_counts(counts) for hop, counts in rows}


def hops_done(connection: Connection, campaign: str) -> dict[str, set[str]]:
    """Return the hops that have run, by the name of the batch; a batch without any is not in it."""
    done: dict[str, set[str]] = defaultdict(set)
    for batch, hop in connection.execute(select(HOPS.c.batch, HOPS.c.hop).where(HOPS.c.campaign == campaign)):
        done[batch].add(hop)
    return done


def noted_charges(connection: Connection, campaign: str) -> dict[tuple[str, str], dict[str, Any] | None]:
    """Return the note on the charge of each finished hop, by batch and hop: None if it charged nothing.

    A hop that is not in it was not looked at yet.
    """
    found = {}
    query = select(HOPS.c.batch, HOPS.c.hop, HOPS.c.counts).where(HOPS.c.campaign == campaign)
    for batch, hop, counts in connection.execute(query):
        data = parse_object(counts.encode(), "state")
        # A hop that counted no stream was passed over.
        if _CHARGE in data or not data["streams"]:
            found[batch, hop] = data.get(_CHARGE)
    return found


def note_charge(connection: Connection, batch: Batch, hop: str, charge: Mapping[str, Any] | None) -> None:
    """Note what a hop's summary says of its charge; None: it charged nothing. A hop that has not run gets no note."""
    mine = and_(of_batch(HOPS, batch), HOPS.c.hop == hop)
    counts = connection.execute(select(HOPS.c.counts).where(mine)).scalar()
    if counts is not None:
        data = {**parse_object(counts.encode(), "state"), _CHARGE: charge}
        connection.execute(update(HOPS).where(mine).values(counts=json.dumps(data, sort_keys=True)))


def streams_done(connection: Connection, campaign: str) -> dict[str, set[str]]:
    """Return the streams that the finished hops counted, by the name of the batch."""
    done: dict[str, set[str]] = defaultdict(set)
    for batch, counts in connection.execute(select(HOPS.c.batch, HOPS.c.counts).where(HOPS.c.campaign == campaign)):
        done[batch] |= parse_counts(counts).streams.keys()
    return done


def analyzed_batches(connection: Connection, campaign: str) -> set[Batch]:
    """Return the batches of which frequency reports were counted: those have a tally."""
    mine = and_(HOPS.c.campaign == campaign, HOPS.c.hop == "analyze")
    counted = connection.execute(select(HOPS.c.batch, HOPS.c.counts).where(mine))
    named = (Batch.named(campaign, name) for name, counts in counted if parse_counts(counts).accepted)
    return {batch for batch in named if batch is not None}


def shuffled_batches(connection: Connection, campaign: str) -> set[str]:
    """Return the names of the batches that were shuffled here."""
    return {batch for batch, hops in hops_done(connection, campaign).items() if "shuffle" in hops}


def made_batches(connection: Connection, campaign: str) -> list[Batch]:
    """Return all batches that are not dissolved, oldest window first."""
    made = select(BATCHES).where(BATCHES.c.campaign == campaign, BATCHES.c.state == "made")
    rows = connection.execute(made.order_by(BATCHES.c.window, BATCHES.c.epoch))
    return [Batch(row.campaign, row.window, row.epoch, row.fingerprint) for row in rows]


def make_batch(connection: Connection, batch: Batch) -> None:
    """Enter a batch as made, also if it was dissolved."""
    if connection.execute(update(BATCHES).where(of_batch(BATCHES, batch)).values(state="made")).rowcount == 0:
        connection.execute(BATCHES.insert().values(name=batch.name, **vars(batch), state="made"))


def segments_of(connection: Connection, batch: Batch) -> dict[str, list[BatchSegment]]:
    """Return the segments of a batch by their stream, sorted by path."""
    mine = select(SEGMENTS).where(of_batch(SEGMENTS, batch), SEGMENTS.c.state == "batched")
    found: dict[str, list[BatchSegment]] = defaultdict(list)
    for row in connection.execute(mine.order_by(SEGMENTS.c.path)):
        found[row.stream].append(_segment(row))
    return found


def _segment(row: Row[Any]) -> BatchSegment:
    return BatchSegment(**{name: getattr(row, name) for name in BatchSegment.model_fields})


def quarantine(connection: Connection, path: str, reason: str) -> None:
    """Take a segment out of all batches, until it is what its manifest says."""
    aside = {"state": "quarantined", "batch": None, "reason": reason}
    connection.execute(update(SEGMENTS).where(SEGMENTS.c.path == path).values(**aside))


def quarantined(connection: Connection, campaign: str) -> list[tuple[BatchSegment, str]]:
    """Return the segments that were put aside, each with its fault, sorted by path."""
    rows = connection.execute(select(SEGMENTS).where(in_state(campaign, "quarantined")).order_by(SEGMENTS.c.path))
    return [(_segment(row), row.reason) for row in rows]


def dropped(connection: Connection, campaign: str) -> dict[str, tuple[int, str]]:
    """Return how many reports of each segment are too late, and why, by its path."""
    rows = connection.execute(select(SEGMENTS).where(in_state(campaign, "too_late")))
    return {row.path: (row.records, row.reason) for row in rows}


def let_wait(connection: Connection, path: str) -> None:
    """Let a segment that was put aside wait again."""
    connection.execute(update(SEGMENTS).where(SEGMENTS.c.path == path).values(state="waiting", reason=None))


def records_by_state(connection: Connection, campaign: str) -> dict[tuple[str, str], int]:
    """Return how many collected reports are in which state, by stream and state; absent ones are 0."""
    place = (SEGMENTS.c.stream, SEGMENTS.c.state)
    sums = select(*place, func.sum(SEGMENTS.c.records)).where(SEGMENTS.c.campaign == campaign).group_by(*place)
    found = {(stream, state): int(records) for stream, state, records in connection.execute(sums)}
    return {one: found.get(one, 0) for one in product(ENVELOPES, SEGMENT_STATES)}


def take_out(connection: Connection, batch: Batch, streams: Collection[str]) -> None:
    """Let streams of a batch wait again, because too few of their reports can be forwarded; dissolve an empty batch."""
    mine = of_batch(SEGMENTS, batch)
    short = and_(mine, SEGMENTS.c.stream.in_(streams))
    connection.execute(update(SEGMENTS).where(short).values(state="waiting", batch=None))
    if connection.execute(select(SEGMENTS.c.path).where(mine)).first() is None:
        connection.execute(update(BATCHES).where(of_batch(BATCHES, batch)).values(state="dissolved"))


def record(connection: Connection, batch: Batch, hop: str, counted: HopCounts) -> None:
    """Enter what a hop counted; streams that the shuffler left out, because too few can be forwarded, wait again."""
    if hop == "shuffle" and (left_out := segments_of(connection, batch).keys() - counted.streams.keys()):
        take_out(connection, batch, left_out)
    connection.execute(
        HOPS.insert().values(
            campaign=batch.campaign,
            batch=batch.name,
            hop=hop,
            counts=json.dumps(counted.counts.data(), sort_keys=True),
            folder=counted.folder if isinstance(counted, HopSummary) else None,
            finished_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        )
    )
