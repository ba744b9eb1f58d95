"""Segments of a window of a stream that has closed: those that its manifests name, each as it was written."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import TimestampedValue

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.epochs import epoch_folder
from hushcount.collection.manifests import Manifest, SegmentPart
from hushcount.collection.windows import Window
from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.formats.reading import LISTING_BYTES
from pipelines.files import storage
from pipelines.files.block_files import BlockFile, block_file, find_files
from pipelines.files.storage_errors import told
from pipelines.handover.file_list import fault_of
from pipelines.handover.upstream import placed_manifest
from pipelines.outputs.counts import SEALED
from pipelines.outputs.staging import SUMMARY
from pipelines.streaming.watch import Found, is_manifest
from pipelines.streaming.windows import StreamFolders, StreamJob, TooLate

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Fact:
    """What a step says of a window; a window is settled when all its facts are there.

    Attributes:
        kind: what `name` and `number` are: a labelled count; the records that were written of a stream, kept in a
            dead letter or tallied; a segment and its records; a segment or manifest that was left out; a manifest,
            with its digest; a fault, as a sentence.
    """

    kind: Literal["count", "written", "dead", "tallied", "segment", "without", "manifest", "fault"]
    name: str
    number: int = 0
    digest: str = ""


def count_fact(count: tuple[str, int]) -> tuple[int, Any]:
    """Make a labelled count a fact of its window, to be grouped with all others."""
    return 0, Fact("count", *count)


def number_fact(number: int, kind: Literal["written", "dead", "tallied"], name: str) -> tuple[int, Any]:
    """Make a number of records a fact of its window."""
    return 0, Fact(kind, name, number)


class StepOfStream(beam.DoFn):
    """A step of the stream's job; `job` says where the files are and whose they are."""

    def __init__(self, job: StreamJob) -> None:
        self._job, self._folders, self._campaign = job, job.folders, job.campaign


class Judge(StepOfStream):
    """Found in; out, at the time at which the engine has its window, (0, names) of a window that is to be settled.

    To "too_late": names that were found after their window had closed, or that are not in its record. To "released":
    a settled window that lacks only its analysis.
    """

    def process(self, found: Found) -> Iterator[Any]:
        window = self._folders.windows.of_name(found.window)
        time, record = self._folders.windows.event_time(window), self._folders.record(window)
        if record is None and not found.late:
            yield TimestampedValue((0, found.names), time)
            return
        known = {} if record is None else {**record.manifests, **record.segments, **record.without}
        yield from (TaggedOutput("too_late", name) for name in found.names if name not in known)
        results = storage.join(self._folders.settled(window), "results", SUMMARY)
        if record is not None and self._job.analyzes and "reports" in record.released and not storage.exists(results):
            yield TaggedOutput("released", TimestampedValue(window, time))


class FindReleased(StepOfStream):
    """A settled window in; the files of frequency reports that were released of it out."""

    def process(self, window: Window) -> Iterator[BlockFile]:
        yield from released_reports(self._folders, window)


def released_reports(folders: StreamFolders, window: Window) -> list[BlockFile]:
    """Return the files of frequency reports that were released of a window."""
    return find_files(storage.join(folders.shuffled(window), "reports"), SEALED["reports"])


class NoteTooLate(StepOfStream):
    """Names that came too late in; a `TooLate` for each segment out.

    A manifest stands for each segment that it names and that the record of its window does not have.
    """

    def process(self, name: str) -> None:
        if not is_manifest(name):
            self._note(name, self._records(name))
            return
        try:
            manifest, _ = read_at(self._folders, self._campaign, name)
        except (HushcountError, OSError) as error:
            logger.warning("manifest %s came too late and cannot be read: %s", name, told(error))
            return
        record = self._folders.record(self._folders.windows.of_name(name))
        for segment, part in named_by(name, manifest):
            if record is None or segment not in record.segments:
                self._note(segment, part.records)

    def _note(self, segment: str, records: int | None) -> None:
        logger.warning("segment %s came too late: %s records are not counted", segment, records)
        storage.write_json(self._folders.too_late(segment), TooLate(segment=segment, too_late=records).model_dump())

    def _records(self, segment: str) -> int | None:
        path = self._folders.path(segment)
        sizes = [size for found, size in storage.list_files(*path.rsplit("/", 1)) if found == path]
        try:
            return block_file(path, sizes[0], ENVELOPES[_stream(segment)]).header.records if sizes else None
        except UsageError as error:
            logger.warning("segment %s cannot be read: %s", segment, error)
            return None


class OpenManifests(StepOfStream):
    """(0, names of a window, of one or more sightings) in; (segment, `SegmentPart`) out, as its manifests name them.

    To "facts": each manifest; what is wrong with one; and each name that is left out because the operator said so. To
    "too_late": segments that are there and that no manifest names.
    """

    def process(self, element: tuple[int, Iterable[tuple[str, ...]]]) -> Iterator[Any]:
        names = {name for found in element[1] for name in found}
        named: dict[str, SegmentPart] = {}
        readable = True
        for name in sorted(filter(is_manifest, names)):
            if name in self._job.without:
                yield _tagged(Fact("without", name))
                continue
            try:
                manifest, digest = read_at(self._folders, self._campaign, name)
                yield _tagged(Fact("manifest", name, digest=digest))
                for segment, part in named_by(name, manifest):
                    if named.setdefault(segment, part) != part:
                        raise FormatError(f"{self._folders.path(name)} names {segment} as another manifest does not")
            except (HushcountError, OSError) as error:
                readable = False
                yield _tagged(Fact("fault", told(error)))
        for segment, part in sorted(named.items()):
            yield _tagged(Fact("without", segment, part.records)) if segment in self._job.without else (segment, part)
        if readable and named:
            unnamed = sorted(name for name in names - named.keys() if not is_manifest(name))
            yield from (TaggedOutput("too_late", name) for name in unnamed)


class CheckSegments(StepOfStream):
    """(segment, `SegmentPart`) in; its file out, to its stream, if it is what its manifest says; a fact of it."""

    def process(self, named: tuple[str, SegmentPart]) -> Iterator[Any]:
        name, part = named
        path, stream = self._folders.path(name), _stream(name)
        try:
            if fault := fault_of(path, part.bytes, part.digest):
                raise FormatError(f"{path} {fault}")
            file = block_file(path, part.bytes, ENVELOPES[stream])
            if file.header.records != part.records:
                raise FormatError(f"{path} has {file.header.records} records, was written with {part.records}")
        except (HushcountError, OSError) as error:
            yield _tagged(Fact("fault", told(error)))
            return
        yield _tagged(Fact("segment", name, part.records))
        yield TaggedOutput(stream, file)


def read_at(folders: StreamFolders, campaign: Campaign, name: str) -> tuple[Manifest, str]:
    """Return the manifest of that name and its digest.

    Raises:
        FormatError: it is not of its window and of this campaign file.
        OSError: it is not there.
        HushcountError: the store cannot be reached.
    """
    window, path = folders.windows.of_name(name), folders.path(name)
    data = storage.read_bytes(path, LISTING_BYTES)
    manifest = placed_manifest(data, path, f"{campaign.id}/{epoch_folder(campaign)}/{window.name}")
    if manifest.seconds != window.length.total_seconds():
        raise FormatError(f"{path} is of a window of {manifest.seconds} s: --window must be the collector's")
    if foreign := manifest.segments.keys() - set(campaign.streams):
        raise FormatError(f"{path} names segments of {min(foreign)}, which the campaign does not have")
    return manifest, hashlib.blake2b(data, digest_size=32).hexdigest()


def named_by(name: str, manifest: Manifest) -> Iterator[tuple[str, SegmentPart]]:
    """Yield the segments that a manifest of that name names, as WINDOW/STREAM/FILE."""
    window = name.partition("/")[0]
    for stream, parts in manifest.segments.items():
        yield from ((f"{window}/{stream}/{part.name}", part) for part in parts)


def _stream(segment: str) -> Stream:
    # The watcher lists the folders of streams, and no others.
    return cast(Stream, segment.split("/")[1])


def _tagged(fact: Fact) -> TaggedOutput:
    return TaggedOutput("facts", (0, fact))
