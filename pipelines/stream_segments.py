"""Segments of a stream: in time or too late, and opened when their window closes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import TimestampedValue

from hushcount.envelopes import ENVELOPES
from hushcount.errors import UsageError
from hushcount.windows import Window
from pipelines import storage
from pipelines.block_io import BlockFile, block_file
from pipelines.staging import SUMMARY
from pipelines.stream_release import UNREADABLE, fact
from pipelines.stream_watch import Sighting
from pipelines.stream_windows import StreamFolders

logger = logging.getLogger(__name__)


class Judge(beam.DoFn):
    """Sightings in; (segment, None) out, at the time at which the engine has its window, and "too_late" segments.

    A segment is too late if it was not there yet when its window closed, or if the window is settled without it. One
    that a settled window has is passed over, unless the analysis of that is still missing.

    Args:
        folders: where the files are.
        until: windows that close later are passed over; None: none is.
        analyzed: whether the stream is to write results.
    """

    def __init__(self, folders: StreamFolders, until: float | None, analyzed: bool) -> None:
        self._folders = folders
        self._until = until
        self._analyzed = analyzed

    def process(self, sighting: Sighting) -> Iterator[Any]:
        segment, since = sighting
        windows = self._folders.windows
        window = windows.of_segment(segment)
        closes = windows.closes(window)
        if self._until is not None and closes > self._until:
            return
        in_time = since is None or closes > since
        known = unfinished = False
        settled = storage.exists(self._folders.record(window))
        if settled:
            record = storage.read_json(self._folders.record(window))
            known = segment in record["segments"] or segment in record["unreadable"]
            unfinished = self._analyzed and "reports" in record["released"] and not self._has_results(window)
        if in_time and (not settled or (known and unfinished)):
            yield TimestampedValue((segment, None), windows.event_time(window))
        elif not known:
            yield TaggedOutput("too_late", segment)

    def _has_results(self, window: Window) -> bool:
        return storage.exists(storage.join(self._folders.settled(window), "results", SUMMARY))


class NoteTooLate(beam.DoFn):
    """Segments that came too late in; a file for each out, which says how many records it has: they are lost to counts.

    Args:
        folders: where the files are.
    """

    def __init__(self, folders: StreamFolders) -> None:
        self._folders = folders

    def process(self, segment: str) -> None:
        records = _records(open_segment(self._folders, segment))
        logger.warning("segment %s came too late: %s records are not counted", segment, records)
        storage.write_json(self._folders.too_late(segment), {"segment": segment, "too_late": records})


class OpenSegments(beam.DoFn):
    """(segment, its sightings) of a window that closed in; its file out, to its stream, and to "facts" its records.

    Args:
        folders: where the files are.
    """

    def __init__(self, folders: StreamFolders) -> None:
        self._folders = folders

    def process(self, element: tuple[str, Iterable[None]]) -> Iterator[Any]:
        segment, _ = element
        file = open_segment(self._folders, segment)
        records = _records(file)
        yield TaggedOutput("facts", fact((segment, UNREADABLE if records is None else records), "segment"))
        if file is not None:
            yield TaggedOutput(segment.split("/")[1], file)


def open_segment(folders: StreamFolders, segment: str) -> BlockFile | None:
    """Return a segment's file; None where its header is damaged or it is gone."""
    _, stream, name = segment.split("/")
    path = storage.join(folders.segments, *segment.split("/"))
    directory = path.rpartition("/")[0]
    sizes = [size for found, size in storage.list_files(directory, name) if found.rpartition("/")[2] == name]
    try:
        # The watcher lists the folders of streams, and no others.
        return block_file(path, sizes[0], ENVELOPES[stream]) if sizes else None  # type: ignore[index]
    except UsageError as error:
        logger.warning("segment %s cannot be read: %s", segment, error)
        return None


def _records(file: BlockFile | None) -> int | None:
    return None if file is None else file.header.records
