"""The input of one shuffle: its segments by name and digest; it stands where another hop's summary would."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hushcount.campaigns.campaign import Stream
from hushcount.campaigns.parts import Identifier
from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.epochs import folder_name
from hushcount.collection.segment_names import senders_of
from hushcount.errors import UsageError
from hushcount.formats.models import Hex32, Part, text_of
from hushcount.formats.reading import MOST_SEGMENTS
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
_MOST = 1 << 40
_LONGEST_WINDOW = 366 * 86_400


class BatchSegment(Part):
    """One segment; `path` is relative to the folder of segments, `authentication` tells its senders apart."""

    path: SegmentText
    window: str
    records: int = Field(ge=1, le=_MOST)
    bytes: int = Field(ge=1, le=_MOST)
    digest: Hex32
    authentication: Authentication = WEAKEST


class BatchFile(Part):
    """The segments of one batch."""

    format: Literal[1] = 1
    campaign: Identifier
    epoch: int = Field(ge=1)
    fingerprint: Hex32
    window: str
    windows: dict[str, Annotated[int, Field(ge=1, le=_LONGEST_WINDOW)]] = Field(
        default={}, max_length=MOST_SEGMENTS, description="seconds of its window and of its segments' windows"
    )
    segments_folder: str = Field(description="where the paths of segments begin")
    shuffled_folder: str = Field(default="", description="where the names of earlier batches begin")
    earlier: tuple[BatchName, ...] = Field(
        default=(),
        max_length=MOST_SEGMENTS,
        description="batches shuffled before: copies of their reports are not forwarded again",
    )
    segments: dict[Stream, Annotated[tuple[BatchSegment, ...], Field(max_length=MOST_SEGMENTS)]]

    @property
    def name(self) -> str:
        """Of the batch: WINDOW-EPOCH-FINGERPRINT."""
        return f"{self.window}-{folder_name(self.epoch, self.fingerprint)}"

    @property
    def all_segments(self) -> list[BatchSegment]:
        """The segments of all streams."""
        return [segment for segments in self.segments.values() for segment in segments]


def batch_files(batch: BatchFile, stream: Stream) -> list[BlockFile]:
    """Return the files of a batch's stream, their headers checked against what the batch says.

    Raises:
        UsageError: one is missing, or is not what it was when the batch was made; the file is named.
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
    """Return the files of what earlier batches forwarded of a stream; UsageError names one that is damaged or cut."""
    found = []
    for name in batch.earlier:
        where = folder_of(storage.join(batch.shuffled_folder, name))
        for file in find_files(storage.join(where, stream), SEALED[stream]):
            if file.missing:
                raise UsageError(f"{file.path} is cut off: restore it, or copies of its reports would go on")
            found.append(file)
    return found


def collected(batch: BatchFile) -> HopSummary:
    """Return the batch as the summary of the hop before the shuffler: what the collectors received for it."""
    numbers = {name: sum(segment.records for segment in segments) for name, segments in batch.segments.items()}
    way = weakest(segment.authentication for segment in batch.all_segments)
    paths = {stream: [segment.path for segment in segments] for stream, segments in batch.segments.items()}
    senders = senders_of(way, paths)
    counts = HopCounts.of("collect", {name: StreamCounts(number, number, {}) for name, number in numbers.items()})
    # All that the batch says goes into this digest: an output tells which batch it was made of.
    told = {
        "campaign": batch.campaign,
        "epoch": batch.epoch,
        "fingerprint": batch.fingerprint,
        "upstream": [],
        "batch_digest": digest_of_json(batch.model_dump(mode="json")),
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
