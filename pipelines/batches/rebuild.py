"""Rebuild the state from the store: the state can be lost or restored, and outputs are what others saw.

The file of a batch says for good which segments it has. So a batch that the state does not know, or knows with other
segments, becomes what its file says before any window is closed, and late segments wait for the next one. What the
batch's hops counted comes from their outputs (`take_up.py`), or from what retention left (`tombstones.py`).
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, and_, case, null, update
from sqlalchemy import Engine as Database

from hushcount.collection.windows import window_start
from hushcount.errors import FormatError, UsageError
from pipelines.batches import rows
from pipelines.batches.rows import UNLISTED, in_state, of_batch
from pipelines.batches.state import SEGMENTS
from pipelines.batches.writing import batch_path
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.storage_errors import told
from pipelines.handover.batch_file import SUFFIX, BatchFile, named_batch, read_batch
from pipelines.handover.names import Batch, SegmentPath


def batches_there(deployment: Deployment, campaign: str) -> list[Batch]:
    """Return the batches of which the store has a file, oldest window first."""
    listed = storage.list_files(deployment.folder("batches", campaign), SUFFIX)
    found = (Batch.named(campaign, named_batch(path)) for path, _ in listed)
    return sorted(batch for batch in found if batch is not None)


def take_up_batches(state: Database, deployment: Deployment, epochs: Epochs, now: datetime) -> dict[str, str]:
    """Make every batch that the state does not know as shuffled what its file in the store says.

    Call it after manifests are registered and before a window is closed.

    Returns:
        A sentence for each file that cannot be used, by the name of its batch: until it is restored, the segments that
        may be of it join no other batch.
    """
    with state.begin() as connection:
        shuffled = rows.shuffled_batches(connection, epochs.campaign)
    problems = {}
    there = [batch for batch in batches_there(deployment, epochs.campaign) if batch.name not in shuffled]
    for batch in there:
        try:
            file = _read(deployment, epochs, batch)
        except Exception as error:
            problems[batch.name] = f"{epochs.campaign}/{batch.name}: {told(error)}"
            continue
        with state.begin() as connection:
            rows.make_batch(connection, batch)
            _take(connection, batch, file, now)
    # Last: they keep only what no other batch has.
    for batch in (batch for batch in there if batch.name in problems):
        of_file = and_(SEGMENTS.c.epoch == batch.epoch, SEGMENTS.c.fingerprint == batch.fingerprint)
        mine = and_(in_state(batch.campaign, "waiting"), of_file, SEGMENTS.c.window <= batch.window)
        with state.begin() as connection:
            rows.make_batch(connection, batch)
            connection.execute(update(SEGMENTS).where(mine).values(state="batched", batch=batch.name))
    return problems


def _read(deployment: Deployment, epochs: Epochs, batch: Batch) -> BatchFile:
    """Return the file of a batch, which must be that of its name, with segments of its campaign file alone."""
    path = batch_path(deployment, batch)
    known = epochs.campaigns.get(batch.file)
    if known is None:
        raise UsageError(f"{path} is of a campaign file that is not among those of {epochs.directory}: publish it")
    file = read_batch(path, known)
    if Batch(file.campaign, file.window, file.epoch, file.fingerprint[: len(batch.fingerprint)]) != batch:
        raise FormatError(f"{path} is of another batch than it is named after: it lies in the wrong place; restore it")
    named = [(stream, segment) for stream, listed in file.segments.items() for segment in listed]
    own = all(
        (place := SegmentPath.parse(segment.path)) is not None
        and place.folder == Batch(batch.campaign, segment.window, *batch.file).segments
        and place.stream == stream
        for stream, segment in named
    )
    twice = len({segment.path for _, segment in named}) < len(named)
    if not own or twice or not {file.window, *(segment.window for _, segment in named)} <= file.windows.keys():
        raise FormatError(f"{path} names a segment twice, of another campaign file, or of no window: restore it")
    for name in file.windows:
        window_start(name)
    return file


def _take(connection: Connection, batch: Batch, file: BatchFile, now: datetime) -> None:
    """Give a batch the segments of its file and no others; a later batch that names one of them gets it back."""
    known = rows.known_windows(connection, batch.campaign)
    for name, seconds in sorted(file.windows.items()):
        if name not in known:
            # Its manifests were deleted: nothing more of it can come.
            rows.close_window(connection, batch.campaign, name, seconds, now)
    connection.execute(update(SEGMENTS).where(of_batch(SEGMENTS, batch)).values(state="waiting", batch=None))
    # A segment that no manifest lists keeps that reason.
    reason = case((SEGMENTS.c.reason == UNLISTED, UNLISTED), else_=null())
    shared = {"campaign": batch.campaign, "epoch": batch.epoch, "fingerprint": batch.fingerprint}
    for stream, listed in file.segments.items():
        for segment in listed:
            here = update(SEGMENTS).where(SEGMENTS.c.path == segment.path)
            if connection.execute(here.values(state="batched", batch=batch.name, reason=reason)).rowcount == 0:
                row = {**shared, **segment.model_dump(), "stream": stream, "reason": UNLISTED}
                connection.execute(SEGMENTS.insert().values(**row, state="batched", batch=batch.name))
