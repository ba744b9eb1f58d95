"""The file of a batch: written when it is shuffled, for good (docs/adr/0024)."""

from __future__ import annotations

from sqlalchemy import Engine as Database

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.formats.reading import LISTING_BYTES
from pipelines.batches import rows
from pipelines.batches.hops import output_of
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.handover.batch_file import SUFFIX, BatchFile, BatchSegment
from pipelines.handover.file_list import fault_of
from pipelines.handover.names import Batch
from pipelines.outputs.staging import SUMMARY


def batch_path(deployment: Deployment, batch: Batch) -> str:
    """Return where the file of a batch lies."""
    return deployment.folder("batches", batch.campaign, f"{batch.name}{SUFFIX}")


def write_batch(state: Database, deployment: Deployment, campaign: Campaign, batch: Batch) -> str:
    """Check every segment against its manifest, put aside those that fail, write the file of the batch; return it."""
    root = deployment.folder("segments")
    with state.begin() as connection:
        listed = rows.segments_of(connection, batch)
        windows = rows.known_windows(connection, batch.campaign)
    good: dict[Stream, tuple[BatchSegment, ...]] = {}
    for stream in (stream for stream in campaign.streams if stream in listed):
        kept = []
        for segment in listed[stream]:
            fault = fault_of(storage.join(root, segment.path), segment.bytes, segment.digest)
            if fault is None:
                kept.append(segment)
                continue
            with state.begin() as connection:
                rows.quarantine(connection, segment.path, fault)
        good[stream] = tuple(kept)
    named = {batch.window, *(segment.window for kept in good.values() for segment in kept)}
    file = BatchFile(
        campaign=batch.campaign,
        epoch=batch.epoch,
        fingerprint=campaign.fingerprint.hex(),
        window=batch.window,
        windows={name: int(windows[name].length.total_seconds()) for name in sorted(named)},
        segments_folder=root,
        shuffled_folder=deployment.folder("shuffled", batch.campaign),
        earlier=_earlier(state, deployment, batch),
        segments=good,
    )
    path = batch_path(deployment, batch)
    storage.write_json(path, file.model_dump(mode="json"), LISTING_BYTES)
    return path


def _earlier(state: Database, deployment: Deployment, batch: Batch) -> tuple[str, ...]:
    """Return the batches of the same campaign file that were shuffled before, and whose reports this one may repeat.

    A client that has no answer sends its report again, and the window may have ended in between. So the copy may be in
    a batch within the grace period: before this one or, if this one had to wait for something, after it.
    """
    grace = deployment.windows.grace
    with state.begin() as connection:
        made = rows.made_batches(connection, batch.campaign)
        windows = rows.known_windows(connection, batch.campaign)
        waited = [windows[part.window] for parts in rows.segments_of(connection, batch).values() for part in parts]
        gone = {name for folder, name in rows.deleted_folders(connection, batch.campaign) if folder == "shuffled"}
        # A lost output is named too: reports that cannot be compared must not be forwarded.
        there = rows.shuffled_batches(connection, batch.campaign) - gone
    # Late segments are compared as if they had come in time.
    start = min([window.start for window in waited], default=windows[batch.window].start)
    return tuple(
        other.name
        for other in made
        if other.file == batch.file
        and other.window != batch.window
        and windows[other.window].end + grace >= start
        and windows[batch.window].end + grace >= windows[other.window].start
        and (other.name in there or storage.exists(storage.join(output_of(deployment, "shuffle", other), SUMMARY)))
    )
