"""What the state lacks is taken from the store: the state can be lost or restored, and outputs are what others saw.

The file of a batch says for good which segments it has. So a batch that the state does not know, or knows with other
segments, becomes what its file says before any window is closed, and what came late waits for the next one. What the
batch's hops counted is taken up hop by hop (`take_up.py`), or from what retention left (`tombstones.py`).
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, and_, case, null, update
from sqlalchemy import Engine as Database

from hushcount.collection.epochs import folder_name
from hushcount.collection.windows import window_start
from hushcount.errors import FormatError, UsageError
from pipelines.batches import rows
from pipelines.batches.rows import UNLISTED, Batch
from pipelines.batches.state import SEGMENTS
from pipelines.batches.writing import batch_path
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.storage_errors import told
from pipelines.handover.batch_file import SUFFIX, BatchFile, read_batch


def batches_there(deployment: Deployment, campaign: str) -> list[Batch]:
    """Return the batches of which the store has a file, oldest window first."""
    listed = storage.list_files(deployment.folder("batches", campaign), SUFFIX)
    found = (Batch.named(campaign, path.rpartition("/")[2].removesuffix(SUFFIX)) for path, _ in listed)
    return sorted((one for one in found if one is not None), key=lambda one: (one.window, one.epoch, one.fingerprint))


def take_up_batches(state: Database, deployment: Deployment, epochs: Epochs, now: datetime) -> dict[str, str]:
    """Make every batch that was not shuffled, for all that the state knows, what its file in the store says.

    Manifests are to be registered before, and no window closed.

    Returns:
        A sentence for each file that says nothing that can be used, by the name of its batch: until it is restored,
        the segments that may be of it join no other batch.
    """
    with state.begin() as connection:
        shuffled = rows.shuffled_batches(connection, epochs.campaign)
    problems = {}
    there = batches_there(deployment, epochs.campaign)
    for batch in there:
        if batch.name in shuffled:
            continue
        try:
            file = _read(deployment, epochs, batch)
        except Exception as error:
            problems[batch.name] = f"{epochs.campaign}/{batch.name}: {told(error)}"
            continue
        with state.begin() as connection:
            rows.stand(connection, batch)
            _take(connection, batch, file, now)
    # Last: of what no other batch has.
    for batch in (batch for batch in there if batch.name in problems):
        with state.begin() as connection:
            rows.stand(connection, batch)
            _hold(connection, batch)
    return problems


def _read(deployment: Deployment, epochs: Epochs, batch: Batch) -> BatchFile:
    """Return the file of a batch, which must be that of its name, with segments of its campaign file alone."""
    path = batch_path(deployment, batch)
    known = epochs.campaigns.get((batch.epoch, batch.fingerprint))
    if known is None:
        raise UsageError(f"{path} is of a campaign file that is not among those of {epochs.directory}: publish it")
    file = read_batch(path, known)
    folder = folder_name(batch.epoch, batch.fingerprint)
    if (file.campaign, f"{file.window}-{folder_name(file.epoch, file.fingerprint)}") != (batch.campaign, batch.name):
        raise FormatError(f"{path} is of another batch than it is named after: it lies in the wrong place; restore it")
    paths = [segment.path for listed in file.segments.values() for segment in listed]
    named = {file.window, *(segment.window for listed in file.segments.values() for segment in listed)}
    own = all(
        segment.path.split("/")[:-1] == [batch.campaign, folder, segment.window, stream]
        for stream, listed in file.segments.items()
        for segment in listed
    )
    if not own or len(set(paths)) < len(paths) or not named <= file.windows.keys():
        raise FormatError(f"{path} names a segment twice, of another campaign file, or of no window: restore it")
    for name in file.windows:
        window_start(name)
    return file


def _take(connection: Connection, batch: Batch, file: BatchFile, now: datetime) -> None:
    """Give a batch the segments of its file and no others; a later batch that names one of them gets it back."""
    known = rows.known_windows(connection, batch.campaign)
    for name, seconds in sorted(file.windows.items()):
        if name not in known:
            # Its manifests were deleted: nothing of it can still come.
            rows.close_window(connection, batch.campaign, name, seconds, now)
    mine = and_(SEGMENTS.c.campaign == batch.campaign, SEGMENTS.c.batch == batch.name)
    connection.execute(update(SEGMENTS).where(mine).values(state="waiting", batch=None))
    # What no manifest lists is still to be known for that.
    reason = case((SEGMENTS.c.reason == UNLISTED, UNLISTED), else_=null())
    shared = {"campaign": batch.campaign, "epoch": batch.epoch, "fingerprint": batch.fingerprint}
    for stream, listed in file.segments.items():
        for segment in listed:
            here = update(SEGMENTS).where(SEGMENTS.c.path == segment.path)
            if connection.execute(here.values(state="batched", batch=batch.name, reason=reason)).rowcount == 0:
                row = {**shared, **segment.model_dump(), "stream": stream, "reason": UNLISTED}
                connection.execute(SEGMENTS.insert().values(**row, state="batched", batch=batch.name))


def _hold(connection: Connection, batch: Batch) -> None:
    """Keep what may be of a batch, whose file cannot be used, from every other batch."""
    of_file = and_(SEGMENTS.c.epoch == batch.epoch, SEGMENTS.c.fingerprint == batch.fingerprint)
    waiting = and_(SEGMENTS.c.campaign == batch.campaign, SEGMENTS.c.state == "waiting", of_file)
    mine = and_(waiting, SEGMENTS.c.window <= batch.window)
    connection.execute(update(SEGMENTS).where(mine).values(state="batched", batch=batch.name))
