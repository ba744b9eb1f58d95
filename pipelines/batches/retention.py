"""Retention: delete what has lain in the store longer than the deployment keeps it; the numbers stay.

Only what every hop that runs here has passed goes, and only when no batch can come any more that must be compared with
it. The state says that a deletion began, and that it ended: the next run resumes a killed one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from re import escape, fullmatch

from sqlalchemy import Connection, and_, select, update
from sqlalchemy import Engine as Database

from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.manifests import SUFFIX
from hushcount.collection.windows import Window, window_start
from hushcount.formats.reading import LISTING_BYTES, validated
from pipelines.batches import rows
from pipelines.batches.hops import CHAIN, HANDED_ON, Hop, hop_names
from pipelines.batches.rebuild import batches_there, tombstone_path, tombstones
from pipelines.batches.state import DELETED, SEGMENTS
from pipelines.batches.writing import batch_path
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.handover.batch_file import BatchFile
from pipelines.handover.names import Batch
from pipelines.jobs.dead_letters import FOLDER as DEAD_LETTERS
from pipelines.outputs.staging import SUMMARY, folders_of_runs

_TEMPORARY = rf"\.[^/]+{escape(storage.TEMPORARY)}"
_IN_WINDOW = rf"[^/]+/[^/]+/[^/]+/([^/]+/[^/]+\.blocks|[^/]+{escape(SUFFIX)}|([^/]+/)?{_TEMPORARY})"
_NEVER = datetime.max.replace(tzinfo=timezone.utc)


def delete_old(state: Database, deployment: Deployment, epochs: Epochs, now: datetime) -> Iterator[str]:
    """Delete what the deployment's retention does not keep; yield what is gone.

    As CAMPAIGN/BATCH FOLDER, or CAMPAIGN/EPOCH-FINGERPRINT/WINDOW segments.

    Raises:
        HushcountError: a file cannot be deleted; the next call resumes.
        OSError: the same.
    """
    part, parties, campaign = deployment.file.retention, deployment.file.parties, epochs.campaign
    with state.begin() as connection:
        through = _through(connection, deployment, epochs)
        horizon = min(now, _earliest_needed(connection, campaign))
        windows = rows.known_windows(connection, campaign)
        deleted = rows.deleted_folders(connection, campaign)
    for batch in through:
        # A party that reads no manifests takes windows to be as long as they are now.
        start = window_start(batch.window)
        windows.setdefault(batch.window, Window(start, start + deployment.windows.length))
    wanted = [(hop, "", getattr(part, hop.folder)) for hop in HANDED_ON.values()]
    wanted += [(hop, DEAD_LETTERS, part.dead_letters) for hop in CHAIN.values()]
    for hop, below, keep in wanted:
        what = f"{hop.folder}/{below}" if below else hop.folder
        for batch in through if hop.party in parties and keep is not None else ():
            if windows[batch.window].end + keep < horizon and not deleted.get((what, batch.name)):
                directory = deployment.folder(hop.folder, campaign, batch.name)
                # In a store each run that wrote there, one that lost its lock too, has a folder of its own.
                parts = [storage.join(one, below) for one in (directory, *folders_of_runs(directory)) if below]
                _delete(state, deployment, batch, hop, what, parts or [directory])
                yield f"{campaign}/{batch.name} {what}"
    if "shuffler" in parties and part.segments is not None:
        passed = {batch.name for batch in through}
        ended = {name for name, window in windows.items() if window.end + part.segments < horizon}
        yield from _delete_segments(state, deployment, campaign, passed, ended)
    _forget(deployment, campaign)


def _through(connection: Connection, deployment: Deployment, epochs: Epochs) -> list[Batch]:
    """Return the batches that every hop that runs here has passed."""
    through = []
    for name, finished in rows.hops_done(connection, epochs.campaign).items():
        batch = Batch.named(epochs.campaign, name)
        campaign = None if batch is None else epochs.campaigns.get(batch.file)
        if batch and campaign and finished.issuperset(hop_names(campaign, deployment.file.parties)):
            through.append(batch)
    return through


def _earliest_needed(connection: Connection, campaign: str) -> datetime:
    """Return the start of the earliest window with something still to shuffle."""
    needed = rows.known_windows(connection, campaign).keys() - rows.closed_windows(connection, campaign)
    shuffled = rows.shuffled_batches(connection, campaign)
    needed |= {batch.window for batch in rows.made_batches(connection, campaign) if batch.name not in shuffled}
    waiting = select(SEGMENTS.c.window).where(rows.in_state(campaign, "waiting")).distinct()
    needed |= set(connection.execute(waiting).scalars())
    return min((window_start(name) for name in needed), default=_NEVER)


def _delete(
    state: Database, deployment: Deployment, batch: Batch, hop: Hop, what: str, directories: Sequence[str]
) -> None:
    """Delete directories of a batch; for a whole output a tombstone says what its hop counted."""
    key = {"campaign": batch.campaign, "folder": what, "batch": batch.name}
    mine = and_(*(DELETED.c[name] == value for name, value in key.items()))
    with state.begin() as connection:
        if connection.execute(select(DELETED.c.complete).where(mine)).first() is None:
            connection.execute(DELETED.insert().values(**key, complete=False))
        counted = rows.counts_of(connection, batch).get(hop.name)
    # A campaign without discovery has no release.
    if what == hop.folder and counted is not None and counted.streams:
        storage.write_json(tombstone_path(deployment, hop.folder, batch), counted.data())
    # Its summary first: a party that looks for batches must not find half of one.
    for directory in directories:
        mark = storage.join(directory, SUMMARY)
        if storage.exists(mark):
            storage.remove(mark)
        storage.remove_directory(directory)
    with state.begin() as connection:
        connection.execute(update(DELETED).where(mine).values(complete=True))


def _delete_segments(
    state: Database, deployment: Deployment, campaign: str, through: set[str], ended: set[str]
) -> Iterator[str]:
    """Delete the folders of windows that ended long ago and have nothing that waits; yield them.

    Manifests go last: they lead the next run to what a killed deletion left, so no mark is needed. Files that a killed
    collector wrote half go too.
    """
    root = deployment.folder("segments")
    files: dict[str, list[str]] = defaultdict(list)
    for path in _segment_files(deployment, campaign):
        if fullmatch(_IN_WINDOW, path):
            files[_folder(path)].append(path)
    with state.begin() as connection:
        known = rows.known_manifests(connection, campaign)
        columns = (SEGMENTS.c.path, SEGMENTS.c.state, SEGMENTS.c.batch)
        for row in connection.execute(select(*columns).where(SEGMENTS.c.campaign == campaign)):
            if row.state in ("too_late", "quarantined") or row.batch in through:
                known.add(row.path)
    for folder, paths in sorted(files.items()):
        # A file that is not registered yet, or waits, keeps its folder.
        finished = {path for path in paths if not fullmatch(_TEMPORARY, path.rpartition("/")[2])}
        if folder.rpartition("/")[2] not in ended or not known.issuperset(finished):
            continue
        # The deeper ones are segments.
        for path in sorted(paths, key=lambda path: (-path.count("/"), path)):
            storage.remove(storage.join(root, path))
        for name in (*ENVELOPES, ""):
            storage.remove_empty(storage.join(root, folder, name))
        yield f"{folder} segments"


def _segment_files(deployment: Deployment, campaign: str) -> list[str]:
    """Return every file of a campaign in the folder of segments, by its path there."""
    root = deployment.folder("segments")
    return [storage.relative(path, root) for path in storage.list_objects(storage.join(root, campaign))]


def _folder(path: str) -> str:
    """Return the folder of a window in which a file of a collector lies: CAMPAIGN/EPOCH-FINGERPRINT/WINDOW."""
    return "/".join(path.split("/")[:3])


def _forget(deployment: Deployment, campaign: str) -> None:
    """Delete the files of batches whose segments are all gone, and then the tombstones that no batch needs."""
    buried = tombstones(deployment, "shuffled", campaign)
    there = batches_there(deployment, campaign)
    held: set[str] = set()
    if buried and "shuffler" in deployment.file.parties:
        held = {_folder(path) for path in _segment_files(deployment, campaign)}
        # A batch may have segments of several windows: the last of them takes it along.
        for batch in [batch for batch in there if batch in buried and not _is_shuffled(deployment, batch)]:
            path = batch_path(deployment, batch)
            listed = validated(BatchFile, storage.read_json(path, LISTING_BYTES), path).all_segments
            if held.isdisjoint(_folder(segment.path) for segment in listed):
                storage.remove(path)
                there.remove(batch)
    # Also a batch whose file was lost needs its tombstone, as long as there are segments that it may have had.
    needed = {*there, *(batch for batch in buried if batch.segments in held)}
    for hop in (hop for hop in HANDED_ON.values() if hop.party in deployment.file.parties):
        for batch, path in tombstones(deployment, hop.folder, campaign).items():
            if batch not in needed and not _is_shuffled(deployment, batch):
                storage.remove(path)


def _is_shuffled(deployment: Deployment, batch: Batch) -> bool:
    return storage.exists(deployment.folder("shuffled", batch.campaign, batch.name, SUMMARY))
