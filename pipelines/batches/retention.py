"""What has lain in the store longer than it is of use is deleted; the numbers stay.

Only what every hop that runs here has passed over goes, and only when no batch can come any more that must be compared
with it. A deletion is entered in the state before it begins and after it ended, so that a killed one is gone on with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from re import escape, fullmatch

from sqlalchemy import Connection, and_, select, update
from sqlalchemy import Engine as Database

from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.epochs import folder_name
from hushcount.collection.manifests import SUFFIX
from hushcount.collection.windows import Window, window_start
from hushcount.formats.reading import LISTING_BYTES, validated
from pipelines.batches.hops import CHAIN, HANDED_ON, hop_names
from pipelines.batches.rebuild import batches_there
from pipelines.batches.rows import (
    Batch,
    closed_windows,
    counts_of,
    deleted_folders,
    hops_done,
    known_manifests,
    known_windows,
    made_batches,
    shuffled_batches,
)
from pipelines.batches.state import DELETED, SEGMENTS
from pipelines.batches.tombstones import tombstones, write_tombstone
from pipelines.batches.writing import batch_path
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment, Party
from pipelines.files import storage
from pipelines.handover.batch_file import BatchFile
from pipelines.jobs.dead_letters import FOLDER as DEAD_LETTERS
from pipelines.outputs.staging import SUMMARY, folders_of_runs

_WRITER: Mapping[str, Party] = {hop.folder: hop.party for hop in CHAIN.values()}
"""Who deletes in a folder: who wrote it."""
_TEMPORARY = rf"\.[^/]+{escape(storage.TEMPORARY)}"
_IN_WINDOW = rf"[^/]+/[^/]+/[^/]+/([^/]+/[^/]+\.blocks|[^/]+{escape(SUFFIX)}|([^/]+/)?{_TEMPORARY})"
_NEVER = datetime.max.replace(tzinfo=timezone.utc)


def delete_old(state: Database, deployment: Deployment, epochs: Epochs, now: datetime) -> Iterator[str]:
    """Delete what the deployment's retention does not keep; yield what is gone.

    As CAMPAIGN/BATCH FOLDER, or CAMPAIGN/EPOCH-FINGERPRINT/WINDOW segments.

    Args:
        state: the database.
        deployment: what to keep, and for how long.
        epochs: of the campaign whose batches they are.
        now: the present.

    Raises:
        HushcountError: a file cannot be deleted; what was begun is gone on with by the next call.
        OSError: the same.
    """
    part, parties, campaign = deployment.file.retention, deployment.file.parties, epochs.campaign
    with state.begin() as connection:
        through = _through(connection, deployment, epochs)
        horizon = min(now, _earliest_needed(connection, campaign))
        windows = _windows(connection, deployment, campaign, (batch.window for batch in through))
        deleted = deleted_folders(connection, campaign)
    wanted = [(hop.folder, hop.party, hop.folder, getattr(part, hop.folder)) for hop in HANDED_ON.values()]
    wanted += [(folder, party, f"{folder}/{DEAD_LETTERS}", part.dead_letters) for folder, party in _WRITER.items()]
    for folder, party, what, keep in wanted:
        for batch in through if party in parties and keep is not None else ():
            if windows[batch.window].end + keep < horizon and not deleted.get((what, batch.name)):
                directory = deployment.folder(folder, campaign, batch.name)
                names = what.split("/")[1:]
                # In a store each run that wrote there, one that lost its lock too, has a folder of its own.
                parts = [directory, *folders_of_runs(directory)] if names else [directory]
                _delete(state, deployment, batch, what, [storage.join(part, *names) for part in parts])
                yield f"{campaign}/{batch.name} {what}"
    if "shuffler" in parties and part.segments is not None:
        passed = {batch.name for batch in through}
        ended = {name for name, window in windows.items() if window.end + part.segments < horizon}
        yield from _delete_segments(state, deployment, campaign, passed, ended)
    _forget(deployment, campaign)


def _through(connection: Connection, deployment: Deployment, epochs: Epochs) -> list[Batch]:
    """Return the batches that every hop which runs here has passed over."""
    through = []
    for name, finished in hops_done(connection, epochs.campaign).items():
        batch = Batch.named(epochs.campaign, name)
        if batch is not None and (batch.epoch, batch.fingerprint) in epochs.files:
            _, campaign = epochs.files[batch.epoch, batch.fingerprint]
            if finished.issuperset(hop_names(campaign, deployment.file.parties)):
                through.append(batch)
    return through


def _windows(connection: Connection, deployment: Deployment, campaign: str, names: Iterable[str]) -> dict[str, Window]:
    """Return the windows of these names; a party that reads no manifests takes them to be as long as they are now."""
    found = known_windows(connection, campaign)
    for name in names:
        start = window_start(name)
        found.setdefault(name, Window(start, start + deployment.windows.length))
    return found


def _earliest_needed(connection: Connection, campaign: str) -> datetime:
    """Return the start of the earliest window of which something is still to be shuffled."""
    open_windows = known_windows(connection, campaign).keys() - closed_windows(connection, campaign)
    shuffled = shuffled_batches(connection, campaign)
    open_windows |= {batch.window for batch in made_batches(connection, campaign) if batch.name not in shuffled}
    waiting = select(SEGMENTS.c.window).where(SEGMENTS.c.campaign == campaign, SEGMENTS.c.state == "waiting")
    open_windows |= set(connection.execute(waiting.distinct()).scalars())
    return min((window_start(name) for name in open_windows), default=_NEVER)


def _delete(state: Database, deployment: Deployment, batch: Batch, what: str, directories: Sequence[str]) -> None:
    """Delete directories of a batch; of what was handed on a tombstone says what was counted."""
    key = {"campaign": batch.campaign, "folder": what, "batch": batch.name}
    mine = and_(*(DELETED.c[name] == value for name, value in key.items()))
    with state.begin() as connection:
        if connection.execute(select(DELETED.c.complete).where(mine)).first() is None:
            connection.execute(DELETED.insert().values(**key, complete=False))
        counted = counts_of(connection, batch)
    for hop, folder in ((one.name, one.folder) for one in HANDED_ON.values()):
        # A campaign without discovery has no release.
        if folder == what and hop in counted and counted[hop].streams:
            write_tombstone(deployment, folder, batch, counted[hop])
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
    """Delete all of the windows that ended long ago and wait for nothing; yield their folders.

    Manifests go last: what a killed deletion left is found again by them, and needs no mark. With the rest goes what a
    collector that was killed had written half.
    """
    root = deployment.folder("segments")
    files: dict[str, list[str]] = defaultdict(list)
    for path in storage.list_objects(storage.join(root, campaign)):
        relative = storage.relative(path, root)
        if fullmatch(_IN_WINDOW, relative):
            files["/".join(relative.split("/")[:3])].append(relative)
    with state.begin() as connection:
        known = known_manifests(connection, campaign)
        rows = connection.execute(
            select(SEGMENTS.c.path, SEGMENTS.c.state, SEGMENTS.c.batch).where(SEGMENTS.c.campaign == campaign)
        )
        known |= {row.path for row in rows if row.state in ("too_late", "quarantined") or row.batch in through}
    for folder, paths in sorted(files.items()):
        # What is not registered yet, or waits, keeps its folder.
        finished = {path for path in paths if not fullmatch(_TEMPORARY, path.rpartition("/")[2])}
        if folder.split("/")[2] not in ended or not known.issuperset(finished):
            continue
        # The deeper ones are segments.
        for path in sorted(paths, key=lambda path: (-path.count("/"), path)):
            storage.remove(storage.join(root, *path.split("/")))
        for name in (*ENVELOPES, ""):
            storage.remove_empty(storage.join(root, *folder.split("/"), name))
        yield f"{folder} segments"


def _forget(deployment: Deployment, campaign: str) -> None:
    """Delete the files of batches of which nothing can be seen again, and then the tombstones that no batch needs."""
    root = deployment.folder("segments")
    buried = tombstones(deployment, "shuffled", campaign)
    there = batches_there(deployment, campaign)
    gone = [batch for batch in there if batch.name in buried and not _is_shuffled(deployment, campaign, batch.name)]
    held: set[str] = set()
    if buried and "shuffler" in deployment.file.parties:
        paths = storage.list_objects(storage.join(root, campaign))
        held = {storage.relative(path, root).rpartition("/")[0] for path in paths}
        # A batch may have segments of several windows, of which the last one to go takes it along.
        for batch in gone:
            path = batch_path(deployment, batch)
            listed = validated(BatchFile, storage.read_json(path, LISTING_BYTES), path).segments.values()
            if held.isdisjoint(_folders(segment.path for segments in listed for segment in segments)):
                storage.remove(path)
                there.remove(batch)
    names = {batch.name for batch in there}
    # Nor of one whose file was lost, as long as there are segments that it may have had.
    names |= {name for name in buried if _folders_of_window(campaign, name) & held}
    for party, folder in ((hop.party, hop.folder) for hop in HANDED_ON.values()):
        for name, path in tombstones(deployment, folder, campaign).items() if party in deployment.file.parties else ():
            if name not in names and not _is_shuffled(deployment, campaign, name):
                storage.remove(path)


def _folders_of_window(campaign: str, name: str) -> set[str]:
    """Return the folders of the segments that came in the window of a batch."""
    batch = Batch.named(campaign, name)
    if batch is None:
        return set()
    folder = f"{campaign}/{folder_name(batch.epoch, batch.fingerprint)}/{batch.window}"
    return {folder, *(f"{folder}/{stream}" for stream in ENVELOPES)}


def _is_shuffled(deployment: Deployment, campaign: str, name: str) -> bool:
    return storage.exists(deployment.folder("shuffled", campaign, name, SUMMARY))


def _folders(paths: Iterable[str]) -> set[str]:
    """Return the folders of segments, and those of their manifests."""
    streams = {path.rpartition("/")[0] for path in paths}
    return streams | {path.rpartition("/")[0] for path in streams}
