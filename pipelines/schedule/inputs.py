"""The input of a shuffle: the segments in the log entry of its batch, and the batches that are compared with it."""

from __future__ import annotations

from hushcount.campaigns.campaign import Campaign
from pipelines.deployment.settings import Deployment
from pipelines.handover.batch_file import BatchFile, BatchSegment
from pipelines.log.facts import Batched
from pipelines.log.fold import Fold
from pipelines.log.segments import Segment
from pipelines.windows.rules import calendar_of


def batch_file(deployment: Deployment, fold: Fold, campaign: Campaign, made: Batched) -> BatchFile:
    """Return the input of a shuffle: the segments in the batch's entry, and batches that may hold the same reports.

    A client that got no answer sends its report again, and meanwhile a window may have ended. So the second copy of a
    report may be in any batch within the grace period: in a batch before this one or, if this batch had to wait, in a
    batch after it.
    """
    return BatchFile(
        campaign=made.batch.campaign,
        epoch=made.batch.epoch,
        fingerprint=campaign.fingerprint.hex(),
        window=made.batch.window,
        segments_folder=deployment.folder("segments"),
        shuffled_folder=deployment.folder("shuffled", made.batch.campaign),
        earlier=earlier(deployment, fold, made),
        segments={
            stream: tuple(_listed(segment) for segment in sorted(segments, key=lambda one: one.path))
            for stream, segments in made.segments.items()
        },
    )


def _listed(segment: Segment) -> BatchSegment:
    return BatchSegment(
        path=segment.path,
        records=segment.records,
        bytes=segment.bytes,
        digest=segment.digest,
        authentication=segment.authentication,
    )


def earlier(deployment: Deployment, fold: Fold, made: Batched) -> tuple[str, ...]:
    """Return the names of the shuffled batches that may hold a copy of a report of this batch."""
    # The longest grace that was ever in force is used, because comparing with more batches only costs time.
    grace = max(one.grace for one in calendar_of(deployment, fold).times)
    # The windows of late segments count here as if the segments had come in time.
    return tuple(
        name
        for name, other in sorted(fold.batches.items())
        if other.batch.file == made.batch.file
        and other.batch.window != made.batch.window
        and other.window.end + grace >= made.oldest
        and made.window.end + grace >= other.oldest
        # A batch whose output is lost is named too, because reports that cannot be compared with it must not be
        # forwarded.
        and fold.hops_of(name).get("shuffle") is not None
        and not fold.is_deleting("shuffled", name)
    )
