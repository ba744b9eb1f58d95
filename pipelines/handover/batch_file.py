"""The input of one shuffle: a list of segments by name and digest, which the shuffler reads in place of a summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated

from hushcount.campaigns.campaign import Stream
from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.epochs import folder_name
from hushcount.collection.segment_names import senders_of
from hushcount.errors import UsageError
from hushcount.formats.models import text_of
from hushcount.senders import WEAKEST, Authentication, weakest
from pipelines.files import storage
from pipelines.files.block_files import BlockFile, find_files, header_of
from pipelines.handover.paths import BATCH_NAME
from pipelines.outputs.counts import SEALED, HopCounts, StreamCounts
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.summary import HopSummary, digest_of_json

BatchName = Annotated[str, text_of(f"^{BATCH_NAME}$", "must be the name of a batch: WINDOW-EPOCH-FINGERPRINT")]
SegmentText = Annotated[
    str, text_of(r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,255}\.blocks$", "must be the path of a segment in the store")
]


@dataclass(frozen=True)
class BatchSegment:
    """One segment. `path` is relative to the folder of segments; `authentication` says how senders were told apart."""

    path: str
    records: int
    bytes: int
    digest: str
    authentication: Authentication = WEAKEST


@dataclass(frozen=True)
class BatchFile:
    """The segments of one batch, as the log lists them.

    Attributes:
        segments_folder: the folder that the paths of segments are relative to.
        shuffled_folder: the folder that holds the outputs of earlier batches.
        earlier: names of batches that were shuffled before; copies of reports in these batches are not forwarded again.
    """

    campaign: str
    epoch: int
    fingerprint: str
    window: str
    segments_folder: str
    segments: Mapping[Stream, tuple[BatchSegment, ...]]
    shuffled_folder: str = ""
    earlier: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the batch: WINDOW-EPOCH-FINGERPRINT."""
        return f"{self.window}-{folder_name(self.epoch, self.fingerprint)}"

    @property
    def all_segments(self) -> list[BatchSegment]:
        """The segments of all streams."""
        return [segment for segments in self.segments.values() for segment in segments]


def batch_files(batch: BatchFile, stream: Stream) -> list[BlockFile]:
    """Return the files of a batch's stream, after a check of their headers against the batch.

    Raises:
        UsageError: a file is missing, or has changed since the batch was made; the message names the file.
    """
    found = []
    for segment in batch.segments.get(stream, ()):
        path = storage.join(batch.segments_folder, segment.path)
        header = header_of(path)
        if (header.kind, header.records, header.file_bytes) != (ENVELOPES[stream], segment.records, segment.bytes):
            raise UsageError(f"{path} is not the file that the batch names: restore it")
        found.append(BlockFile(path, header, header.blocks))
    return found


def released_files(batch: BatchFile, stream: Stream) -> list[BlockFile]:
    """Return the files of a stream that earlier batches forwarded; raises UsageError if a file is damaged or cut."""
    found = []
    for name in batch.earlier:
        where = folder_of(storage.join(batch.shuffled_folder, name))
        for file in find_files(storage.join(where, stream), SEALED[stream]):
            if file.missing:
                raise UsageError(f"{file.path} is cut off: restore it, or copies of its reports would be forwarded")
            found.append(file)
    return found


def collected(batch: BatchFile, noise: bool = False) -> HopSummary:
    """Return the collectors' summary of a batch, with counts of the reports that the collectors received for it.

    Args:
        noise: whether reports name their window. Those of other windows are refused, and a client counts its reports by
            the window that they name, so late segments give no client the cap again.
    """
    numbers = {name: sum(segment.records for segment in segments) for name, segments in batch.segments.items()}
    way = weakest(segment.authentication for segment in batch.all_segments)
    paths = {stream: [segment.path for segment in segments] for stream, segments in batch.segments.items()}
    if noise:
        paths["reports"] = [path for path in paths.get("reports", ()) if batch.window in path.split("/")]
    senders = senders_of(way, paths)
    counts = HopCounts.of("collect", {name: StreamCounts(number, number, {}) for name, number in numbers.items()})
    # The digest covers everything in the batch, so that a shuffler's output identifies the batch that it was made of.
    told = {
        "campaign": batch.campaign,
        "epoch": batch.epoch,
        "fingerprint": batch.fingerprint,
        "upstream": [],
        "batch_digest": digest_of_json(asdict(batch)),
        "window": batch.window,
    }
    return HopSummary(
        **vars(counts),
        campaign=batch.campaign,
        fingerprint=batch.fingerprint,
        upstream=(),
        epoch=batch.epoch,
        senders=senders,
        read_as=digest_of_json(counts.data() | told | senders.data()),
    )
