"""What the store says of batches: the state can be lost or restored, and outputs are what others saw (docs/adr/0024).

The file of a batch says for good which segments it has. So a batch that the state does not know, or knows with other
segments, becomes what its file says before any window is closed, and late segments wait for the next one.

A hop that ran before does not run again: its output is taken up, if it is of this very batch. Retention leaves a
tombstone of an output that it deletes, FOLDER/CAMPAIGN/BATCH.deleted.json: what its hop counted. It stays as long as
the hop's input may be seen again, and lies where the party that deletes also writes.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from sqlalchemy import Connection, and_, case, null, update
from sqlalchemy import Engine as Database

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.windows import window_start
from hushcount.errors import FormatError, HushcountError, UsageError
from pipelines.batches import rows
from pipelines.batches.hops import CHAIN, HANDED_ON, output_of
from pipelines.batches.rows import UNLISTED, in_state, of_batch
from pipelines.batches.state import DELETED, SEGMENTS
from pipelines.batches.writing import batch_path
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.storage_errors import told
from pipelines.handover.batch_file import SUFFIX, BatchFile, collected, named_batch, read_batch
from pipelines.handover.names import Batch, SegmentPath
from pipelines.outputs.counts import HopCounts
from pipelines.outputs.received_summary import read_counts, read_summary
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import HopSummary

_TOMBSTONE = ".deleted.json"


def batches_there(deployment: Deployment, campaign: str) -> list[Batch]:
    """Return the batches with a file in the store, oldest window first."""
    listed = storage.list_files(deployment.folder("batches", campaign), SUFFIX)
    found = (Batch.named(campaign, named_batch(path)) for path, _ in listed)
    return sorted(batch for batch in found if batch is not None)


def take_up_batches(state: Database, deployment: Deployment, epochs: Epochs, now: datetime) -> dict[str, str]:
    """Set every batch that the state does not know as shuffled to what its file in the store says.

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


def taken_up(
    deployment: Deployment,
    campaign: Campaign,
    batch: Batch,
    hop: str,
    hops: Sequence[str],
    known: Mapping[str, HopCounts],
) -> HopCounts | None:
    """Return what a hop counted when it ran before; None: it has not run.

    Its own output says so; else the tombstone that retention left; else a later hop's output, which was made from it.

    Args:
        hops: those that run here, in their order: another party's word that one of ours has run is not taken.

    Raises:
        UsageError: an output is there, and is of another batch, or cannot be read.
    """
    if storage.exists(storage.join(output_of(deployment, hop, batch), SUMMARY)):
        return _of_this_batch(deployment, campaign, batch, hop, known)
    if hop in HANDED_ON:
        left = tombstone_path(deployment, HANDED_ON[hop].folder, batch)
        if storage.exists(left):
            return read_counts(left)
    for later in hops[hops.index(hop) + 1 :]:
        if storage.exists(storage.join(output_of(deployment, later, batch), SUMMARY)):
            summary = _of_this_batch(deployment, campaign, batch, later, known)
            told = [before for before in summary.upstream if before.hop == hop]
            if told:
                return told[0]
    return None


def _of_this_batch(
    deployment: Deployment, campaign: Campaign, batch: Batch, hop: str, known: Mapping[str, HopCounts]
) -> HopSummary:
    """Return the summary of an output, which must be of this batch and made from its input as that is now."""
    out = output_of(deployment, hop, batch)
    summary = read_summary(storage.join(out, SUMMARY))
    if (summary.hop, summary.fingerprint, summary.batch) != (hop, campaign.fingerprint.hex(), batch.name):
        raise UsageError(
            f"{out} does not hold what hushcount {hop} made of batch {batch.name}: it was not taken up; put back what "
            "was there, or move it away"
        )
    source, digest = _input_of(deployment, campaign, batch, hop)
    # Also where the input was deleted, it must agree with what is known of the hops before.
    counted = {before.hop: before for before in summary.upstream}
    differ = [before for before in CHAIN if before in known and counted.get(before, known[before]) != known[before]]
    if differ or (digest is not None and summary.made_from != digest):
        raise UsageError(
            f"{out} was not made from {source} as that is now: it was not taken up, and no later hop runs; put back "
            f"the {source} that it was made from. To make it anew, which is another release, move it away"
        )
    return summary


def _input_of(deployment: Deployment, campaign: Campaign, batch: Batch, hop: str) -> tuple[str, str | None]:
    """Return the input of a hop, and the digest of its summary; None where that was deleted."""
    before = CHAIN[hop].input
    if before is None:
        path = batch_path(deployment, batch)
        return path, collected(read_batch(path, campaign)).digest()
    source = output_of(deployment, before, batch)
    mark = storage.join(source, SUMMARY)
    return source, read_summary(mark).digest() if storage.exists(mark) else None


def tombstone_path(deployment: Deployment, folder: str, batch: Batch) -> str:
    """Return where the tombstone of a batch's output lies."""
    return deployment.folder(folder, batch.campaign, f"{batch.name}{_TOMBSTONE}")


def tombstones(deployment: Deployment, folder: str, campaign: str) -> dict[Batch, str]:
    """Return the paths of the tombstones in a folder, by batch."""
    listed = storage.list_files(deployment.folder(folder, campaign), _TOMBSTONE)
    found = {Batch.named(campaign, path.rpartition("/")[2].removesuffix(_TOMBSTONE)): path for path, _ in listed}
    return {batch: path for batch, path in found.items() if batch is not None}


def outputs(deployment: Deployment, folder: str, campaign: str) -> Iterator[tuple[Batch, str]]:
    """Yield each batch with an output in a folder, and the path of its summary, sorted by name."""
    for path, _ in storage.list_tree(deployment.folder(folder, campaign), f"*/{SUMMARY}"):
        batch = Batch.named(campaign, path.split("/")[-2])
        if batch is not None:
            yield batch, path


def outputs_there(deployment: Deployment, campaign: str, windows: Container[str]) -> set[str]:
    """Return the names of the batches of these windows with an output, or its tombstone, of a party here.

    A summary that is not the batch's is passed over: the hop that reads it says so.
    """
    names: set[str] = set()
    for hop in (hop for hop in CHAIN.values() if hop.party in deployment.file.parties):
        names |= {batch.name for batch in tombstones(deployment, hop.folder, campaign)}
        for batch, path in outputs(deployment, hop.folder, campaign):
            if batch.window in windows:
                with suppress(HushcountError, OSError):
                    summary = read_summary(path)
                    names |= {batch.name} if (summary.hop, summary.batch) == (hop.name, batch.name) else set()
    return names


def enter_deleted(state: Database, deployment: Deployment, campaign: str) -> dict[str, str]:
    """Enter the deletions and their counts that the state does not know, from their tombstones.

    Returns:
        A sentence for each tombstone that cannot be read, by the name of its batch.
    """
    problems = {}
    for hop in (hop for hop in HANDED_ON.values() if hop.party in deployment.file.parties):
        with state.begin() as connection:
            known = rows.deleted_folders(connection, campaign)
        for batch, path in tombstones(deployment, hop.folder, campaign).items():
            if (hop.folder, batch.name) in known:
                continue
            try:
                counts = read_counts(path)
                if counts.hop != hop.name:
                    raise UsageError(f"{path} is of hushcount {counts.hop}, must be of {hop.name}: restore it")
            except Exception as error:
                problems[batch.name] = f"{campaign}/{batch.name}: {told(error)}"
                continue
            with state.begin() as connection:
                if hop.name not in rows.counts_of(connection, batch):
                    rows.record(connection, batch, hop.name, counts)
                # Not complete: the deletion may have been killed, and deleting again costs nothing.
                row = {"campaign": campaign, "folder": hop.folder, "batch": batch.name, "complete": False}
                connection.execute(DELETED.insert().values(**row))
    return problems
