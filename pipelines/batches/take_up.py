"""A hop that ran before does not run again: its output is taken up, if it is of this very batch (docs/adr/0024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import UsageError
from pipelines.batches.hops import CHAIN, HANDED_ON, output_of
from pipelines.batches.tombstones import tombstone_path
from pipelines.batches.writing import batch_path
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.handover.batch_file import collected, read_batch
from pipelines.handover.names import Batch
from pipelines.outputs.counts import HopCounts
from pipelines.outputs.received_summary import read_counts, read_summary
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import HopSummary


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
        deployment: whose store it is.
        campaign: the batch's.
        batch: which.
        hop: which.
        hops: those that run here, in their order: another party's word that one of ours has run is not taken.
        known: what the state says that hops of this batch counted.

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
