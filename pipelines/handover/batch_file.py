"""batch.json: the input of one shuffle, by name and digest; it stands where another hop's summary would."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hushcount.campaigns.campaign import Campaign, Identifier, Stream
from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.segment_names import senders_of
from hushcount.errors import FormatError, UsageError
from hushcount.formats.models import Hex32, Part, text_of
from hushcount.formats.reading import LISTING_BYTES, MOST_SEGMENTS, validated
from hushcount.senders import WEAKEST, Authentication, weakest
from hushcount.wire.blocks import read_header
from pipelines.files import storage
from pipelines.files.block_files import BlockFile, find_files
from pipelines.files.storage_errors import cause
from pipelines.outputs.counts import HopCounts, StreamCounts
from pipelines.outputs.folders import folder_of
from pipelines.outputs.labels import SEALED
from pipelines.outputs.summary import HopSummary, digest_of_json

SUFFIX = ".batch.json"


BATCH_NAME = r"[0-9]{8}T[0-9]{6}Z-[0-9]{6,}-[0-9a-f]{16}"
"""WINDOW-EPOCH-FINGERPRINT."""
BatchName = Annotated[str, text_of(f"^{BATCH_NAME}$", "must be the name of a batch: WINDOW-EPOCH-FINGERPRINT")]
_MOST = 1 << 40
_LONGEST_WINDOW = 366 * 86_400


class BatchSegment(Part):
    """One segment: its path from the folder of segments on."""

    path: Annotated[
        str, text_of(r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,255}\.blocks$", "must be the path of a segment in the store")
    ]
    window: str
    records: int = Field(ge=1, le=_MOST)
    bytes: int = Field(ge=1, le=_MOST)
    digest: Hex32
    authentication: Authentication = Field(default=WEAKEST, description="by which its senders were told apart")


class BatchFile(Part):
    """The segments of one batch."""

    format: Literal[1] = 1
    campaign: Identifier
    epoch: int = Field(ge=1)
    fingerprint: Hex32
    window: str
    windows: dict[str, Annotated[int, Field(ge=1, le=_LONGEST_WINDOW)]] = Field(
        default={},
        max_length=MOST_SEGMENTS,
        description="seconds of its window and of its segments' windows",
    )
    segments_folder: str = Field(description="where the paths of segments begin")
    shuffled_folder: str = Field(default="", description="where the names of earlier batches begin")
    earlier: tuple[BatchName, ...] = Field(
        default=(),
        max_length=MOST_SEGMENTS,
        description="batches that were shuffled before, whose reports are not forwarded again",
    )
    segments: dict[Stream, Annotated[tuple[BatchSegment, ...], Field(max_length=MOST_SEGMENTS)]]


def is_batch(path: str) -> bool:
    """Return whether an input is a batch's file, not a directory."""
    return path.endswith(SUFFIX)


def named_batch(path: str) -> str:
    """Return the name of the batch that a batch's file is of."""
    return path.rpartition("/")[2].removesuffix(SUFFIX)


def read_batch(path: str, campaign: Campaign) -> BatchFile:
    """Read a batch's file.

    Raises:
        UsageError: it cannot be read, or is of another campaign file.
        FormatError: it is none.
    """
    batch = validated(BatchFile, storage.read_json(path, LISTING_BYTES), path, "is no batch that hushcount run wrote")
    if batch.fingerprint != campaign.fingerprint.hex():
        raise UsageError(
            f"{path} is of campaign {batch.campaign} with fingerprint {batch.fingerprint}, the campaign file has "
            f"{campaign.fingerprint.hex()}: give the file it was made with"
        )
    if any(".." in segment.path.split("/") for segments in batch.segments.values() for segment in segments):
        raise FormatError(f"{path} names a segment outside its folder")
    return batch


def batch_files(batch: BatchFile, stream: Stream) -> list[BlockFile]:
    """Return the files of a batch's stream, their headers read and checked against what the batch says.

    Raises:
        UsageError: one is missing, or is not what it was when the batch was made; the file is named.
    """
    found = []
    for segment in batch.segments.get(stream, ()):
        path = storage.join(batch.segments_folder, *segment.path.split("/"))
        with storage.open_read(path) as stream_of_bytes:
            header = read_header(stream_of_bytes, path)
        if (header.kind, header.records, header.file_bytes) != (ENVELOPES[stream], segment.records, segment.bytes):
            raise UsageError(f"{path} is not the file that the batch names: restore it")
        found.append(BlockFile(path, header, header.blocks))
    return found


def released_files(batch: BatchFile, stream: Stream) -> list[BlockFile]:
    """Return the files of what earlier batches forwarded of a stream.

    Raises:
        UsageError: one is damaged or cut; it is named.
    """
    found = []
    for name in batch.earlier:
        where = folder_of(storage.join(batch.shuffled_folder, name))
        for file in find_files(storage.join(where, stream), SEALED[stream]):
            if file.missing:
                raise UsageError(f"{file.path} is cut off: restore it, or copies of its reports would go on")
            found.append(file)
    return found


def fault_of(path: str, expected_bytes: int, digest: str) -> str | None:
    """Return what is wrong with a file that was written with this length and digest; None: nothing.

    Raises:
        UsageError: it cannot be read now, which says nothing of what it holds.
    """
    size, found = digest_of(path)
    if size != expected_bytes:
        return f"has {size} bytes, was written with {expected_bytes}"
    return None if found == digest else "fails its digest"


def digest_of(path: str) -> tuple[int, str]:
    """Return the length of a file and the BLAKE2b-256 of its bytes, in hexadecimal digits.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return storage.digest_of(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {cause(error)}") from None


def collected(batch: BatchFile) -> HopSummary:
    """Return the batch as the summary of the hop before the shuffler: what the collectors received for it."""
    numbers = {name: sum(segment.records for segment in segments) for name, segments in batch.segments.items()}
    way = weakest(segment.authentication for segments in batch.segments.values() for segment in segments)
    paths = {stream: [segment.path for segment in segments] for stream, segments in batch.segments.items()}
    senders = senders_of(way, paths)
    counts = HopCounts.of("collect", {name: StreamCounts(number, number, {}) for name, number in numbers.items()})
    # Into the digest of this goes all that the batch says, so that what is made of it tells which batch it was.
    told = {
        "campaign": batch.campaign,
        "epoch": batch.epoch,
        "fingerprint": batch.fingerprint,
        "upstream": [],
        "batch_digest": digest_of_json(batch.model_dump(mode="json")),
        "window": batch.window,
    }
    return HopSummary(
        counts.hop,
        counts.received,
        counts.accepted,
        counts.rejected,
        counts.streams,
        campaign=batch.campaign,
        fingerprint=batch.fingerprint,
        upstream=(),
        epoch=batch.epoch,
        senders=senders,
        read_as=digest_of_json(counts.data() | told | senders.data()),
    )
