"""What the jobs that open sealed reports have in common: counts, dead letters and the minimum batch."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PCollection

from hushcount.campaigns.campaign import Campaign, Stream
from pipelines.files import storage
from pipelines.outputs.counting import WriteCounts, require_read_once, require_undamaged
from pipelines.outputs.counts import StreamCounts
from pipelines.outputs.dead_letter_files import WriteDeadLetter, of_stream, of_stream_and_length
from pipelines.outputs.labels import label
from pipelines.outputs.minimum_batch import enough, require_minimum
from pipelines.outputs.summary import HopSummary


def count_opened(
    campaign: Campaign,
    stream: Stream,
    directory: str,
    counts: tuple[PCollection, ...],
    unread: PCollection,
    unopened: PCollection,
) -> Any:
    """Write the counts and the dead letters of a stream.

    Args:
        counts: (name, number) of each step.
        unread: dead letters of `ReadBlocks`.
        unopened: dead letters of the step that opens: (reason, records).

    Returns:
        A side input, whether results may be written; None: always. A local directory appears by its renaming, but in a
        store each object is visible once it is written.
    """
    labelled = counts | "all counts" >> beam.Flatten() | "label" >> beam.Map(label, stream)
    labelled | "counts" >> WriteCounts(directory)
    allowed = enough(labelled, stream, campaign) if storage.is_remote(directory) else None
    dead = (
        unread | "stream of dead" >> beam.Map(of_stream, stream),
        unopened | "length of dead" >> beam.Map(of_stream_and_length, stream, campaign.sealed_bytes(stream)),
    )
    dead | "dead letter" >> WriteDeadLetter(directory, campaign, allowed)
    return allowed


def require_opened(
    hop: str,
    campaign: Campaign,
    stream: Stream,
    counts: StreamCounts,
    upstream: HopSummary,
    folder: str,
    records: int,
) -> None:
    """Check before a result is made that every record was read once and undamaged, and that enough were accepted.

    Raises:
        HushcountError: the engine lost records, or read some twice, or files are damaged.
        Withheld: fewer reports were accepted than the minimum batch.
    """
    require_read_once(stream, counts.received, records)
    require_undamaged(folder, counts.rejected)
    require_minimum(hop, campaign, stream, counts, upstream)
