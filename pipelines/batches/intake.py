"""From what collectors left in the store to batches: register manifests, close windows when they are due.

When a window closes, some of its segments become a batch, some wait, and some are too late.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Select, and_, func, select, update
from sqlalchemy import Engine as Database
from sqlalchemy.exc import DataError, IntegrityError

from hushcount.collection.manifests import SUFFIX, Manifest
from hushcount.collection.windows import Window
from hushcount.errors import HushcountError
from hushcount.formats.reading import LISTING_BYTES, MOST_SEGMENTS
from pipelines.batches import rows
from pipelines.batches.rebuild import outputs_there
from pipelines.batches.rows import close_window, closed_windows, in_state, known_windows, made_batches, make_batch
from pipelines.batches.state import MANIFESTS, SEGMENTS
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.storage_errors import told
from pipelines.handover.file_list import fault_of
from pipelines.handover.names import Batch
from pipelines.handover.upstream import placed_manifest


def new_manifests(
    deployment: Deployment, campaign: str, known: Container[str]
) -> Iterator[tuple[str, Manifest | Exception]]:
    """Yield each manifest that is not known, or why it cannot be read, by its path in the folder of segments."""
    root = deployment.folder("segments")
    for path, _ in storage.list_tree(storage.join(root, campaign), f"*/*/*{SUFFIX}"):
        # CAMPAIGN/EPOCH-FINGERPRINT/WINDOW/COLLECTOR-ID.manifest.json
        relative = storage.relative(path, root)
        if relative not in known:
            try:
                data = storage.read_bytes(path, LISTING_BYTES)
                manifest: Manifest | Exception = placed_manifest(data, path, relative.rpartition("/")[0])
            except Exception as error:
                manifest = error
            yield relative, manifest


def register_new(state: Database, deployment: Deployment, campaign: str) -> list[str]:
    """Enter the manifests that came since the last run; return a sentence for each that cannot be read yet."""
    problems = []
    with state.begin() as connection:
        known = rows.known_manifests(connection, campaign)
    for relative, manifest in new_manifests(deployment, campaign, known):
        if not isinstance(manifest, Manifest):
            problems.append(f"{relative}: {told(manifest)}")
            continue
        try:
            with state.begin() as connection:
                rows.register(connection, relative, manifest)
        except IntegrityError:
            problems.append(
                f"{relative}: names a segment of another manifest: remove the wrong one of both, then list the "
                "segments that are in no manifest with hushcount segments relist"
            )
        except DataError:
            problems.append(f"{relative}: holds what the state cannot")
    return problems


def take_back_restored(state: Database, deployment: Deployment, campaign: str, now: datetime) -> list[str]:
    """Let segments that were put aside wait again once they match their manifests, until their grace period ends.

    Returns:
        A sentence for each that cannot be read.
    """
    with state.begin() as connection:
        aside = rows.quarantined(connection, campaign)
        windows = rows.known_windows(connection, campaign)
    problems = []
    for segment, _ in aside:
        path = deployment.folder("segments", segment.path)
        if windows[segment.window].end + deployment.windows.grace < now or not storage.exists(path):
            continue
        try:
            fault = fault_of(path, segment.bytes, segment.digest)
        except (HushcountError, OSError) as error:
            problems.append(told(error))
            continue
        if fault is None:
            with state.begin() as connection:
                rows.let_wait(connection, segment.path)
    return problems


def close_due(
    state: Database, deployment: Deployment, epochs: Epochs, now: datetime, say: Callable[[str], None]
) -> Iterator[str]:
    """Close the windows that are due, oldest first; yield the name of each when it is closed."""
    campaign = epochs.campaign
    with state.begin() as connection:
        due = _due_windows(connection, deployment, campaign, now)
    before = outputs_there(deployment, campaign, {window.name for window in due}) if due else set()
    for window in due:
        say(f"{campaign}: closing {window.name}")
        with state.begin() as connection:
            _close(connection, deployment, epochs, window, now, before)
        yield window.name
    with state.begin() as connection:
        closed = closed_windows(connection, campaign)
        ends = [window.end for name, window in known_windows(connection, campaign).items() if name not in closed]
        # No open window could take what ended a grace period before the first of them.
        end = min([now, *ends]) - deployment.windows.grace
        _set_too_late(connection, in_state(campaign, "waiting"), campaign, end, "grace ended, and no window closed")


def _due_windows(connection: Connection, deployment: Deployment, campaign: str, now: datetime) -> list[Window]:
    """Return the windows to close, oldest first: those that ended, with all manifests or no more patience for them."""
    collectors, patience = set(deployment.file.collectors), deployment.windows.patience
    closed = closed_windows(connection, campaign)
    reported: dict[str, set[str]] = defaultdict(set)
    of_campaign = select(MANIFESTS.c.window, MANIFESTS.c.collector).where(MANIFESTS.c.campaign == campaign)
    for window, collector in connection.execute(of_campaign):
        reported[window].add(collector)
    due = []
    for name, window in sorted(known_windows(connection, campaign).items()):
        if name in closed:
            continue
        # Without names of collectors only time decides.
        complete = bool(collectors) and reported[name] >= collectors
        if window.end > now or (not complete and window.end + patience > now):
            # A later window must not be closed first: its batch would take this one's segments.
            break
        due.append(window)
    return due


def _close(
    connection: Connection,
    deployment: Deployment,
    epochs: Epochs,
    window: Window,
    now: datetime,
    before: Container[str],
) -> None:
    """Close a window: make a batch of each stream with enough waiting reports, and mark segments that are too late.

    Args:
        before: names of batches with outputs in the store. One that the state does not know has lost its file: the
            waiting segments may have been in it, and are not counted again.
    """
    campaign = epochs.campaign
    if window.name in closed_windows(connection, campaign):
        return
    close_window(connection, campaign, window.name, int(window.length.total_seconds()), now)
    waiting = and_(in_state(campaign, "waiting"), SEGMENTS.c.window <= window.name)
    _set_too_late(
        connection, waiting, campaign, window.end - deployment.windows.grace, f"grace ended before {window.name} closed"
    )
    there = {batch.name for batch in made_batches(connection, campaign)}
    ready: dict[Batch, list[str]] = defaultdict(list)
    streams = select(SEGMENTS.c.epoch, SEGMENTS.c.fingerprint, SEGMENTS.c.stream).where(waiting).distinct()
    for epoch, fingerprint, stream in connection.execute(streams).all():
        batch = Batch(campaign, window.name, epoch, fingerprint)
        if batch.name in before and batch.name not in there:
            mine = and_(waiting, SEGMENTS.c.epoch == epoch, SEGMENTS.c.fingerprint == fingerprint)
            reason = f"batch {batch.name} was made before, and its file, which listed its segments, is gone"
            connection.execute(update(SEGMENTS).where(mine).values(state="too_late", reason=reason))
            continue
        file = epochs.campaigns.get(batch.file)
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


def _set_too_late(
    connection: Connection, waiting: ColumnElement[bool], campaign: str, before: datetime, reason: str
) -> None:
    """Drop the waiting segments of windows that ended before a moment."""
    names = connection.execute(select(SEGMENTS.c.window).where(waiting).distinct()).scalars().all()
    windows = known_windows(connection, campaign) if names else {}
    for name in (name for name in names if windows[name].end < before):
        old = and_(waiting, SEGMENTS.c.window == name)
        connection.execute(update(SEGMENTS).where(old).values(state="too_late", reason=reason))
