"""Closing a window: which of its segments become a batch, which wait, and for which it is too late."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Select, and_, func, select, update

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.windows import Window
from hushcount.formats.reading import MOST_SEGMENTS
from pipelines.batches.rows import Batch, close_window, closed_windows, known_windows, made_batches, stand
from pipelines.batches.state import MANIFESTS, SEGMENTS, WINDOWS


def due_windows(
    connection: Connection, campaign: str, patience: timedelta, collectors: tuple[str, ...], now: datetime
) -> list[Window]:
    """Return the windows to close, oldest first: those that ended, with all manifests there or waited for long enough.

    Args:
        connection: to the state.
        campaign: id.
        patience: how long after a window's end manifests are waited for.
        collectors: names of all collectors; none: only time decides.
        now: the present.
    """
    closed = closed_windows(connection, campaign)
    reported: dict[str, set[str]] = defaultdict(set)
    for window, collector in connection.execute(
        select(MANIFESTS.c.window, MANIFESTS.c.collector).where(MANIFESTS.c.campaign == campaign)
    ):
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
    """Close a window: make a batch of the streams of which enough reports wait, and say of which it is too late.

    Args:
        connection: to the state, in one transaction with what the caller concludes from it.
        campaign: id.
        window: the one to close; nothing happens if it is closed already.
        files: campaign files by epoch and the digits of the fingerprint.
        grace: how long after its window's end a segment may join a batch.
        now: when it is closed, for the record.
        before: names of batches of which the store has outputs. One that does not stand has lost its file with the
            state: what waits may have been in it, and is not counted again.
    """
    here = and_(WINDOWS.c.campaign == campaign, WINDOWS.c.window == window.name)
    if connection.execute(select(WINDOWS.c.window).where(here)).first() is not None:
        return
    close_window(connection, campaign, window.name, int(window.length.total_seconds()), now)
    waiting = and_(SEGMENTS.c.campaign == campaign, SEGMENTS.c.state == "waiting", SEGMENTS.c.window <= window.name)
    _set_too_late(connection, waiting, campaign, window.end - grace, f"grace ended before {window.name} closed")
    there = {batch.name for batch in made_batches(connection, campaign)}
    enough: dict[tuple[int, str], list[str]] = defaultdict(list)
    streams = select(SEGMENTS.c.epoch, SEGMENTS.c.fingerprint, SEGMENTS.c.stream).where(waiting).distinct()
    for epoch, fingerprint, stream in connection.execute(streams).all():
        name = Batch(campaign, window.name, epoch, fingerprint).name
        if name in before and name not in there:
            mine = and_(waiting, SEGMENTS.c.epoch == epoch, SEGMENTS.c.fingerprint == fingerprint)
            reason = f"batch {name} was made before, and its file is gone, which said whether it has these"
            connection.execute(update(SEGMENTS).where(mine).values(state="too_late", reason=reason))
            continue
        file = files.get((epoch, fingerprint))
        if file is None or stream not in file.streams:
            continue
        taken = SEGMENTS.c.path.in_(_taken(waiting, epoch, fingerprint, stream))
        records = connection.execute(select(func.sum(SEGMENTS.c.records)).where(taken)).scalar()
        if int(records or 0) >= file.shuffle.minimum_batch:
            enough[epoch, fingerprint].append(stream)
    for (epoch, fingerprint), ready in sorted(enough.items()):
        batch = Batch(campaign, window.name, epoch, fingerprint)
        if batch.name in there:
            # It was taken from the store, and is what it was: what came since waits.
            continue
        stand(connection, batch)
        for stream in ready:
            taken = SEGMENTS.c.path.in_(_taken(waiting, epoch, fingerprint, stream))
            connection.execute(update(SEGMENTS).where(taken).values(state="batched", batch=batch.name))


def _taken(waiting: ColumnElement[bool], epoch: int, fingerprint: str, stream: str) -> Select[tuple[str]]:
    """Return the paths of a stream's segments that its next batch takes: the oldest, and no more than its file lists.

    Of a window the largest come first, so that those which are left are few reports.
    """
    mine = and_(SEGMENTS.c.epoch == epoch, SEGMENTS.c.fingerprint == fingerprint, SEGMENTS.c.stream == stream)
    order = (SEGMENTS.c.window, SEGMENTS.c.records.desc(), SEGMENTS.c.path)
    return select(SEGMENTS.c.path).where(waiting, mine).order_by(*order).limit(MOST_SEGMENTS)


def full(connection: Connection, campaign: str, epoch: int, fingerprint: str, stream: str) -> bool:
    """Return whether the newest batch of a stream took as many segments as it could, and left what waits."""
    mine = and_(
        SEGMENTS.c.campaign == campaign,
        SEGMENTS.c.epoch == epoch,
        SEGMENTS.c.fingerprint == fingerprint,
        SEGMENTS.c.stream == stream,
        SEGMENTS.c.state == "batched",
    )
    numbers = select(func.count()).where(mine).group_by(SEGMENTS.c.batch).order_by(SEGMENTS.c.batch.desc())
    return (connection.execute(numbers.limit(1)).scalar() or 0) >= MOST_SEGMENTS


def give_up(connection: Connection, campaign: str, grace: timedelta, now: datetime) -> None:
    """Say that it is too late for segments that no window which is still open could take; `now` is the present."""
    closed = closed_windows(connection, campaign)
    ends = [window.end for name, window in known_windows(connection, campaign).items() if name not in closed]
    waiting = and_(SEGMENTS.c.campaign == campaign, SEGMENTS.c.state == "waiting")
    _set_too_late(connection, waiting, campaign, min([now, *ends]) - grace, "grace ended, and no window closed")


def _set_too_late(
    connection: Connection, waiting: ColumnElement[bool], campaign: str, before: datetime, reason: str
) -> None:
    """Let go of the waiting segments of windows that ended before a moment."""
    names = connection.execute(select(SEGMENTS.c.window).where(waiting).distinct()).scalars().all()
    windows = known_windows(connection, campaign) if names else {}
    for name in (name for name in names if windows[name].end < before):
        old = and_(waiting, SEGMENTS.c.window == name)
        connection.execute(update(SEGMENTS).where(old).values(state="too_late", reason=reason))
