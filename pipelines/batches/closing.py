"""Closing a window: which of its segments become a batch, which wait, and which are too late."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Select, and_, func, select, update

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.windows import Window
from hushcount.formats.reading import MOST_SEGMENTS
from pipelines.batches.rows import close_window, closed_windows, in_state, known_windows, made_batches, make_batch
from pipelines.batches.state import MANIFESTS, SEGMENTS
from pipelines.handover.names import Batch


def due_windows(
    connection: Connection, campaign: str, patience: timedelta, collectors: tuple[str, ...], now: datetime
) -> list[Window]:
    """Return the windows to close, oldest first: those that ended, with all manifests or no more patience for them.

    Args:
        connection: to the state.
        campaign: id.
        patience: how long after a window's end to wait for manifests.
        collectors: names of all collectors; empty: only time decides.
        now: the present.
    """
    closed = closed_windows(connection, campaign)
    reported: dict[str, set[str]] = defaultdict(set)
    of_campaign = select(MANIFESTS.c.window, MANIFESTS.c.collector).where(MANIFESTS.c.campaign == campaign)
    for window, collector in connection.execute(of_campaign):
        reported[window].add(collector)
    due = []
    for name, window in sorted(known_windows(connection, campaign).items()):
        if name in closed:
            continue
        complete = bool(collectors) and reported[name] >= set(collectors)
        if window.end > now or (not complete and window.end + patience > now):
            # A later window must not be closed first: its batch would take this one's segments.
            break
        due.append(window)
    return due


def close(
    connection: Connection,
    campaign: str,
    window: Window,
    files: Mapping[tuple[int, str], Campaign],
    grace: timedelta,
    now: datetime,
    before: Container[str] = (),
) -> None:
    """Close a window: make a batch of each stream with enough waiting reports, and mark segments that are too late.

    Args:
        connection: to the state, in one transaction with what the caller concludes from it.
        campaign: id.
        window: the one to close; nothing happens if it is closed already.
        files: campaign files by epoch and the digits of the fingerprint.
        grace: how long after its window's end a segment may join a batch.
        now: when it is closed, for the record.
        before: names of batches with outputs in the store. One that the state does not know has lost its file: the
            waiting segments may have been in it, and are not counted again.
    """
    if window.name in closed_windows(connection, campaign):
        return
    close_window(connection, campaign, window.name, int(window.length.total_seconds()), now)
    waiting = and_(in_state(campaign, "waiting"), SEGMENTS.c.window <= window.name)
    _set_too_late(connection, waiting, campaign, window.end - grace, f"grace ended before {window.name} closed")
    there = {batch.name for batch in made_batches(connection, campaign)}
    ready: dict[Batch, list[str]] = defaultdict(list)
    streams = select(SEGMENTS.c.epoch, SEGMENTS.c.fingerprint, SEGMENTS.c.stream).where(waiting).distinct()
    for epoch, fingerprint, stream in connection.execute(streams).all():
        batch = Batch(campaign, window.name, epoch, fingerprint)
        if batch.name in before and batch.name not in there:
            mine = and_(waiting, SEGMENTS.c.epoch == epoch, SEGMENTS.c.fingerprint == fingerprint)
            reason = f"batch {batch.name} was made before, and its file is gone, which said whether it has these"
            connection.execute(update(SEGMENTS).where(mine).values(state="too_late", reason=reason))
            continue
        file = files.get(batch.file)
        if file is None or stream not in file.streams:
            continue
        taken = SEGMENTS.c.path.in_(_taken(waiting, batch, stream))
        records = connection.execute(select(func.sum(SEGMENTS.c.records)).where(taken)).scalar()
        if int(records or 0) >= file.shuffle.minimum_batch:
            ready[batch].append(stream)
    # A batch that was taken from the store stays as it is: what came since waits.
    for batch in sorted(batch for batch in ready if batch.name not in there):
        make_batch(connection, batch)
        for stream in ready[batch]:
            taken = SEGMENTS.c.path.in_(_taken(waiting, batch, stream))
            connection.execute(update(SEGMENTS).where(taken).values(state="batched", batch=batch.name))


def _taken(waiting: ColumnElement[bool], batch: Batch, stream: str) -> Select[tuple[str]]:
    """Return the paths of a stream's segments that a batch takes: the oldest, and no more than its file lists.

    Of a window the largest come first: those that stay are few reports.
    """
    file = and_(SEGMENTS.c.epoch == batch.epoch, SEGMENTS.c.fingerprint == batch.fingerprint)
    order = (SEGMENTS.c.window, SEGMENTS.c.records.desc(), SEGMENTS.c.path)
    mine = select(SEGMENTS.c.path).where(waiting, file, SEGMENTS.c.stream == stream)
    return mine.order_by(*order).limit(MOST_SEGMENTS)


def give_up(connection: Connection, campaign: str, grace: timedelta, now: datetime) -> None:
    """Mark segments as too late that no open window could take."""
    closed = closed_windows(connection, campaign)
    ends = [window.end for name, window in known_windows(connection, campaign).items() if name not in closed]
    waiting = in_state(campaign, "waiting")
    _set_too_late(connection, waiting, campaign, min([now, *ends]) - grace, "grace ended, and no window closed")


def _set_too_late(
    connection: Connection, waiting: ColumnElement[bool], campaign: str, before: datetime, reason: str
) -> None:
    """Drop the waiting segments of windows that ended before a moment."""
    names = connection.execute(select(SEGMENTS.c.window).where(waiting).distinct()).scalars().all()
    windows = known_windows(connection, campaign) if names else {}
    for name in (name for name in names if windows[name].end < before):
        old = and_(waiting, SEGMENTS.c.window == name)
        connection.execute(update(SEGMENTS).where(old).values(state="too_late", reason=reason))
