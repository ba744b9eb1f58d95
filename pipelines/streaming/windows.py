"""Windows of a stream: which one a segment is of, when it closes, and where its files are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from apache_beam.transforms.window import FixedWindows, IntervalWindow
from apache_beam.utils.timestamp import Timestamp

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.collection.windows import Window, named_window
from hushcount.errors import HushcountError, UsageError
from hushcount.formats.models import Part
from hushcount.formats.reading import validated
from keys.store import KeyReference
from pipelines.files import storage
from pipelines.outputs.counts import StreamCounts

RECORD = "window.json"
"""The file of a `WindowRecord`; a job leaves a window that has one."""
STREAM = "stream.json"
"""Whose windows an output directory holds."""
WORK = "work"
"""In `STREAM`: the hidden directory of the job that may settle windows."""
HELD = "held"
"""The folder of each `Held`."""


class WindowRecord(Part):
    """A settled window: its segments and manifests, by name, and what became of them.

    Attributes:
        streams: what was counted; only those in `released` reached the minimum batch.
        manifests: digest by name.
        segments: records by name.
        without: records by name of what was left out because the operator said so; 0 of a manifest.
    """

    window: str
    ends: str
    released: tuple[Stream, ...]
    campaign: str
    epoch: int
    fingerprint: str
    minimum_batch: int
    streams: dict[Stream, StreamCounts]
    manifests: dict[str, str]
    segments: dict[str, int]
    without: dict[str, int]


class Held(Part):
    """A window that has closed and waits, because of faults in its segments or manifests."""

    window: str
    faults: tuple[str, ...]


class TooLate(Part):
    """A segment that came too late, and its number of records; None: the segment cannot be read."""

    segment: str
    too_late: int | None


@dataclass(frozen=True)
class StreamWindows:
    """The collector's windows, and how long after its end each is still open to segments.

    To the engine a segment happens in the last millisecond before its window closes. So the engine's windows, of the
    same length and later by the lateness, end when ours close: what comes until then is never late to the engine, and
    each window fires once.

    Attributes:
        length: of a window.
        lateness: from the end of a window until it closes.
    """

    length: timedelta
    lateness: timedelta

    def engine_windows(self) -> FixedWindows:
        return FixedWindows(self.length.total_seconds(), self.lateness.total_seconds() % self.length.total_seconds())

    def closes(self, window: Window) -> Timestamp:
        return Timestamp.from_utc_datetime(window.end + self.lateness)

    def event_time(self, window: Window) -> Timestamp:
        """Return when to the engine the segments of a window happen."""
        return Timestamp(micros=self.closes(window).micros - 1000)

    def of_engine(self, window: IntervalWindow) -> Window:
        end = datetime.fromtimestamp(window.end.micros // 1_000_000, timezone.utc) - self.lateness
        return Window(end - self.length, end)

    def of_name(self, name: str) -> Window:
        """Return the window of a name that begins with WINDOW; raises UsageError if it is none of this length."""
        try:
            return named_window(name.partition("/")[0], self.length)
        except ValueError as error:
            raise UsageError(f"{name}: {error}; --window must be the collector's") from None


@dataclass(frozen=True)
class StreamFolders:
    """Where a stream's files are.

    Attributes:
        segments: the collector's folder of one campaign file: WINDOW/STREAM/FILE and WINDOW/MANIFEST lie in it.
        work: the job's own hidden directory, in the output.
        epoch: EPOCH-FINGERPRINT of the campaign file, in the names of batches.
    """

    segments: str
    out: str
    work: str
    windows: StreamWindows
    epoch: str

    def settled(self, window: Window) -> str:
        """Return the folder of a window's result."""
        return storage.join(self.out, window.name)

    def handed_on(self, window: Window) -> tuple[str, str]:
        """Return the path, in a window's folder, of what another party reads; its last name is the batch's."""
        return "shuffled", f"{window.name}-{self.epoch}"

    def shuffled(self, window: Window) -> str:
        return storage.join(self.settled(window), *self.handed_on(window))

    def being_made(self, window: Window) -> str:
        return storage.join(self.work, window.name)

    def path(self, name: str) -> str:
        """Return where a segment or manifest lies."""
        return storage.join(self.segments, *name.split("/"))

    def held(self, window: Window) -> str:
        """Return the file of a window's `Held`."""
        return storage.join(self.out, HELD, f"{window.name}.json")

    def too_late(self, segment: str) -> str:
        """Return the file of a segment's `TooLate`."""
        return storage.join(self.out, "too_late", *segment.split("/")) + ".json"

    def record(self, window: Window) -> WindowRecord | None:
        """Return what became of a window; None: it is not settled."""
        path = storage.join(self.settled(window), RECORD)
        return validated(WindowRecord, storage.read_json(path), path) if storage.exists(path) else None

    def require_ours(self) -> None:
        """Raise HushcountError if another stream has begun to write to the output since this one did."""
        if storage.read_json(storage.join(self.out, STREAM)).get(WORK) != self.work.rstrip("/").rpartition("/")[2]:
            raise HushcountError(
                f"another stream has begun to write to {self.out}: this one ends, and that one settles what it has not"
            )


@dataclass(frozen=True)
class FolderOf:
    """For transforms that write: a window to the folder `names` in its directory in the making.

    `handed_on`: in the part of the directory that another party reads.
    """

    folders: StreamFolders
    names: tuple[str, ...]
    handed_on: bool = False

    def __call__(self, window: IntervalWindow) -> str:
        ours = self.folders.windows.of_engine(window)
        names = (*self.folders.handed_on(ours), *self.names) if self.handed_on else self.names
        return storage.join(self.folders.being_made(ours), *names)


@dataclass(frozen=True)
class StreamJob:
    """What every step of a stream knows.

    Attributes:
        campaign: whose reports.
        folders: where the files are.
        places: over how many places a window's reports are spread, and how many shards are written.
        analyzes: whether results are written; no: another party analyses.
        without: lost segments and manifests: their windows are settled without them.
        signer: the key by which the shuffler signs its output; None: unsigned.
    """

    campaign: Campaign
    folders: StreamFolders
    places: int
    analyzes: bool
    without: frozenset[str] = frozenset()
    signer: KeyReference | None = None
