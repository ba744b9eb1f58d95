"""Segments of a window of a stream that has closed: those that its manifests name, each as it was written."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

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
from pipelines.streaming.closing import Found, is_manifest
from pipelines.streaming.release import fact
from pipelines.streaming.windows import StreamFolders

logger = logging.getLogger(__name__)


class Judge(beam.DoFn):
    """Found in; out, at the time at which the engine has its window, (0, names) of one that is to be settled.

    Names that were found when their window had closed, or that are not in the record of a window that is settled, go to
    "too_late". A window that is settled, and of which only the analysis is missing, goes to "released".

    Args:
        folders: where the files are.
        analyzed: whether the stream is to write results.
    """

    def __init__(self, folders: StreamFolders, analyzed: bool) -> None:
        self._folders = folders
        self._analyzed = analyzed

    def process(self, found: Found) -> Iterator[Any]:
        windows = self._folders.windows
        window = windows.of_name(found.window)
        record = None
        if storage.exists(self._folders.record(window)):
            record = storage.read_json(self._folders.record(window))
        if record is None and not found.late:
            yield TimestampedValue((0, found.names), windows.event_time(window))
            return
        known = {} if record is None else {**record["manifests"], **record["segments"], **record["without"]}
        yield from (TaggedOutput("too_late", name) for name in found.names if name not in known)
        if record is not None and self._analyzed and "reports" in record["released"] and not self._has_results(window):
            yield TaggedOutput("released", TimestampedValue(window, windows.event_time(window)))

    def _has_results(self, window: Window) -> bool:
        return storage.exists(storage.join(self._folders.settled(window), "results", SUMMARY))


class FindReleased(beam.DoFn):
    """A window that is settled in; the files of frequency reports that were released of it out.

    Args:
        folders: where the files are.
    """

    def __init__(self, folders: StreamFolders) -> None:
        self._folders = folders

    def process(self, window: Window) -> Iterator[BlockFile]:
        yield from find_files(storage.join(self._folders.shuffled(window), "reports"), SEALED["reports"])


class NoteTooLate(beam.DoFn):
    """Names that came too late in; a file for each segment out, which says how many records are lost to counts.

    Of a manifest, each segment that it names and that the record of its window does not have.

    Args:
        folders: where the files are.
        campaign: whose.
    """

    def __init__(self, folders: StreamFolders, campaign: Campaign) -> None:
        self._folders = folders
        self._campaign = campaign

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
        known = storage.read_json(record)["segments"] if storage.exists(record) else {}
        for segment, part in named_by(name, manifest):
            if segment not in known:
                self._note(segment, part.records)

    def _note(self, segment: str, records: int | None) -> None:
        logger.warning("segment %s came too late: %s records are not counted", segment, records)
        storage.write_json(self._folders.too_late(segment), {"segment": segment, "too_late": records})

    def _records(self, segment: str) -> int | None:
        path = self._folders.path(segment)
        sizes = [size for found, size in storage.list_files(*path.rsplit("/", 1)) if found == path]
        try:
            # The watcher lists the folders of streams, and no others.
            return block_file(path, sizes[0], ENVELOPES[_stream(segment)]).header.records if sizes else None
        except UsageError as error:
            logger.warning("segment %s cannot be read: %s", segment, error)
            return None


@dataclass(frozen=True)
class Named:
    """A segment, as a manifest names it.

    Attributes:
        name: WINDOW/STREAM/FILE.
        part: what the manifest says of it.
    """

    name: str
    part: SegmentPart


class OpenManifests(beam.DoFn):
    """(0, names of a window, of one or more sightings) in; `Named` of each segment that its manifests name out.

    To "facts": each manifest, with its digest; what is wrong with one; and each segment that is left out because the
    operator said so. To "too_late": segments that are there and that no manifest names.

    Args:
        folders: where the files are.
        campaign: whose.
        without: names of manifests and segments that are lost: the window is settled without them.
    """

    def __init__(self, folders: StreamFolders, campaign: Campaign, without: frozenset[str]) -> None:
        self._folders = folders
        self._campaign = campaign
        self._without = without

    def process(self, element: tuple[int, Iterable[tuple[str, ...]]]) -> Iterator[Any]:
        names = {name for found in element[1] for name in found}
        named: dict[str, SegmentPart] = {}
        readable = True
        for name in sorted(filter(is_manifest, names)):
            if name in self._without:
                yield _of_window((name, 0), "without")
                continue
            try:
                manifest, digest = read_at(self._folders, self._campaign, name)
                yield _of_window((name, int(digest, 16)), "manifest")
                for segment, part in named_by(name, manifest):
                    if named.setdefault(segment, part) != part:
                        raise FormatError(f"{self._folders.path(name)} names {segment} as another manifest does not")
            except (HushcountError, OSError) as error:
                readable = False
                yield _of_window((told(error), 0), "fault")
        for segment, part in sorted(named.items()):
            if segment in self._without:
                yield _of_window((segment, part.records), "without")
            else:
                yield Named(segment, part)
        if readable and named:
            yield from (
                TaggedOutput("too_late", name) for name in sorted(names - named.keys()) if not is_manifest(name)
            )


class CheckSegments(beam.DoFn):
    """`Named` in; its file out, to its stream, if it is what its manifest says; its records, or its fault, to "facts".

    Args:
        folders: where the files are.
    """

    def __init__(self, folders: StreamFolders) -> None:
        self._folders = folders

    def process(self, named: Named) -> Iterator[Any]:
        part, path, stream = named.part, self._folders.path(named.name), _stream(named.name)
        try:
            fault = fault_of(path, part.bytes, part.digest)
            file = None if fault else block_file(path, part.bytes, ENVELOPES[stream])
            if file is not None and file.header.records != part.records:
                fault = f"has {file.header.records} records, was written with {part.records}"
        except (HushcountError, OSError) as error:
            yield _of_window((told(error), part.records), "fault")
            return
        if fault is not None:
            yield _of_window((f"{path} {fault}", part.records), "fault")
            return
        yield _of_window((named.name, part.records), "segment")
        yield TaggedOutput(stream, file)


def read_at(folders: StreamFolders, campaign: Campaign, name: str) -> tuple[Manifest, str]:
    """Return the manifest of that name, which must be of its window and of this campaign file, and its digest.

    Raises:
        FormatError: it is not.
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
    return cast(Stream, segment.split("/")[1])


def _of_window(named: tuple[str, int], kind: str) -> TaggedOutput:
    return TaggedOutput("facts", fact(named, kind))
