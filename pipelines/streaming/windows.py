"""Windows of a stream: which one a segment is of, when it closes, and where in event time the engine has it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from apache_beam.transforms.window import FixedWindows, IntervalWindow
from apache_beam.utils.timestamp import Timestamp

from hushcount.collection.windows import Window, named_window
from hushcount.errors import HushcountError, UsageError
from pipelines.files import storage

RECORD = "window.json"
"""Of a settled window: which segments it was made of, and what became of them. Whoever finds it leaves the window."""
STREAM = "stream.json"
"""Whose windows an output directory holds."""
WORK = "work"
"""In `STREAM`: the hidden directory of the job that may settle windows."""
HELD = "held"
"""The folder of what is wrong with windows that wait."""


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
        """Return the engine's windows."""
        return FixedWindows(self.length.total_seconds(), self.lateness.total_seconds() % self.length.total_seconds())

    def closes(self, window: Window) -> Timestamp:
        """Return when a window closes."""
        return Timestamp.from_utc_datetime(window.end + self.lateness)

    def event_time(self, window: Window) -> Timestamp:
        """Return when to the engine the segments of a window happen."""
        return Timestamp(micros=self.closes(window).micros - 1000)

    def of_engine(self, window: IntervalWindow) -> Window:
        """Return our window that is one of the engine's."""
        end = datetime.fromtimestamp(window.end.micros // 1_000_000, timezone.utc) - self.lateness
        return Window(end - self.length, end)

    def of_name(self, name: str) -> Window:
        """Return the window that a segment or manifest lies in.

        Args:
            name: WINDOW, and what follows it.

        Raises:
            UsageError: its directory is no window of this length.
        """
        try:
            return named_window(name.partition("/")[0], self.length)
        except ValueError as error:
            raise UsageError(f"{name}: {error}; --window must be the collector's") from None


@dataclass(frozen=True)
class StreamFolders:
    """Where a stream's files are.

    Attributes:
        segments: the collector's, of one campaign file: WINDOW/STREAM/FILE and WINDOW/MANIFEST lie in it.
        out: the output.
        work: the job's own hidden directory, in `out`.
        windows: whose names the directories have.
        epoch: EPOCH-FINGERPRINT of the campaign file, in the names of batches.
    """

    segments: str
    out: str
    work: str
    windows: StreamWindows
    epoch: str

    def settled(self, window: Window) -> str:
        """Return where a window's result is to be."""
        return storage.join(self.out, window.name)

    def handed_on(self, window: Window) -> tuple[str, str]:
        """Return the path in a window's directory of what another party reads; its last name is the batch's."""
        return "shuffled", f"{window.name}-{self.epoch}"

    def shuffled(self, window: Window) -> str:
        """Return where what was released of a window is."""
        return storage.join(self.settled(window), *self.handed_on(window))

    def record(self, window: Window) -> str:
        """Return the file that says what became of a window."""
        return storage.join(self.settled(window), RECORD)

    def too_late(self, segment: str) -> str:
        """Return the file that says that a segment came too late."""
        return storage.join(self.out, "too_late", *segment.split("/")) + ".json"

    def held(self, window: Window) -> str:
        """Return the file that says why a window that has closed is not settled."""
        return storage.join(self.out, HELD, f"{window.name}.json")

    def path(self, name: str) -> str:
        """Return where a segment or manifest lies."""
        return storage.join(self.segments, *name.split("/"))

    def require_ours(self) -> None:
        """Raise unless no other stream has begun to write to the output since this one did.

        Raises:
            HushcountError: one has.
        """
        if storage.read_json(storage.join(self.out, STREAM)).get(WORK) != self.work.rstrip("/").rpartition("/")[2]:
            raise HushcountError(
                f"another stream has begun to write to {self.out}: this one ends, and that one settles what it has not"
            )

    def being_made(self, window: Window) -> str:
        """Return where a window's result is made."""
        return storage.join(self.work, window.name)


@dataclass(frozen=True)
class FolderOf:
    """The directory of a window's files while they are made, for transforms that write: of a window, its path.

    Attributes:
        folders: of the stream.
        names: the path within the window's directory, or within that of what is handed on.
        handed_on: whether it is within that.
    """

    folders: StreamFolders
    names: tuple[str, ...]
    handed_on: bool = False

    def __call__(self, window: IntervalWindow) -> str:
        ours = self.folders.windows.of_engine(window)
        names = (*self.folders.handed_on(ours), *self.names) if self.handed_on else self.names
        return storage.join(self.folders.being_made(ours), *names)
