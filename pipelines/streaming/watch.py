"""Watch a directory of segments: a source that lists it again and again, and yields windows when they close.

A window closes when the clock says so and the collectors confirm it. A collector writes a window's manifest when the
window has ended by its own clock, so that the newest manifest tells the time without our clock: later windows stay
open, whatever our clock says.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import apache_beam as beam
from apache_beam.coders import PickleCoder
from apache_beam.io.iobase import RestrictionProgress, RestrictionTracker
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from apache_beam.transforms.core import RestrictionProvider
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Duration, Timestamp

from hushcount.collection.manifests import SUFFIX as MANIFEST
from hushcount.collection.manifests import collector_of
from hushcount.collection.windows import Window
from pipelines.files import storage
from pipelines.files.block_files import SUFFIX
from pipelines.streaming.windows import StreamWindows


@dataclass(frozen=True)
class Found:
    """All WINDOW/STREAM/SEGMENT and WINDOW/MANIFEST that were seen until the window closed; `late`: the new ones."""

    window: str
    names: tuple[str, ...]
    late: bool


@dataclass(frozen=True)
class Watched:
    """The whole state of the watching, kept by the engine.

    Attributes:
        seen: names of segments and manifests.
        looked: when the last listing began, in seconds since 1970; None before the first.
        closed: windows that happen before this time of the engine have closed; None: none has.
        newest: the window of the newest manifest.
        waited: seconds of watching since it was found.
        ended: whether there will be no other listing.
    """

    seen: frozenset[str] = frozenset()
    looked: float | None = None
    closed: Timestamp | None = None
    newest: Window | None = None
    waited: float = 0.0
    ended: bool = False


def look(watched: Watched, there: Iterable[str], now: float, pause: float, windows: StreamWindows) -> Watched:
    """Return the state after a listing.

    No window closes after the newest manifest's. A collector that wrote a manifest of a window is waited for in the
    next one, until the lateness has passed by the manifests of others, or by watching.

    Args:
        watched: the state before.
        there: the listed names; raises UsageError if one lies in no window.
        now: when the listing began by the clock, not before the last one.
        pause: seconds from listing to listing.
        windows: the collector's.
    """
    seen = watched.seen.union(there)
    last: dict[str, Window] = {}
    for name in filter(is_manifest, seen):
        window, collector = windows.of_name(name), collector_of(name.rpartition("/")[2])
        # A manifest of a window to come says that its collector's clock is ahead, or ours behind: it confirms nothing.
        if collector is not None and window.end.timestamp() <= now:
            last[collector] = max(window, last.get(collector, window))
    newest = max(last.values(), default=None)
    # A clock that jumps moves this no further than one pause.
    passed = 0.0 if watched.looked is None else min(now - watched.looked, pause)
    waited = watched.waited + passed if newest == watched.newest else 0.0
    closed = watched.closed
    if newest is not None:
        shown = Timestamp.from_utc_datetime(newest.end) + waited
        waits = (window.next for window in last.values() if windows.closes(window.next) > shown)
        limit = min(Timestamp(now), windows.event_time(min([newest.next, *waits])))
        closed = limit if closed is None else max(closed, limit)
    return Watched(seen, now, closed, newest, waited)


def found_between(before: Watched, after: Watched, windows: StreamWindows) -> list[Found]:
    """Return the windows that a listing closed, each with all its names, and the new names of those closed before."""
    if after.closed is None:
        return []
    names: dict[str, list[str]] = defaultdict(list)
    for name in sorted(after.seen):
        names[name.partition("/")[0]].append(name)
    found = []
    for window, there in sorted(names.items()):
        time_of_window = windows.event_time(windows.of_name(window))
        late = before.closed is not None and time_of_window < before.closed
        new = [name for name in there if not late or name not in before.seen]
        if new and time_of_window < after.closed:
            found.append(Found(window, tuple(new), late))
    return found


def is_manifest(name: str) -> bool:
    """Return whether a name is a manifest's, not a segment's."""
    return name.endswith(MANIFEST)


def list_names(directory: str, streams: tuple[str, ...]) -> list[str]:
    """Return the segments of a directory by their last three names, WINDOW/STREAM/FILE, and its WINDOW/MANIFEST."""
    patterns = (*(f"*/{stream}/*{SUFFIX}" for stream in streams), f"*/*{MANIFEST}")
    return [storage.relative(path, directory) for one in patterns for path, _ in storage.list_tree(directory, one)]


class _Tracker(RestrictionTracker):  # type: ignore[misc]  # apache_beam ships no types
    """The state of the watching; to claim is to replace it. It is given on as a whole, never shared."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched

    def current_restriction(self) -> Watched:
        return self._watched

    def try_claim(self, watched: Watched) -> bool:
        if self._watched.ended:
            return False
        self._watched = watched
        return True

    def try_split(self, fraction_of_remainder: float) -> tuple[Watched, Watched] | None:
        if fraction_of_remainder or self._watched.ended:
            return None
        rest, self._watched = self._watched, Watched(ended=True)
        return self._watched, rest

    def check_done(self) -> bool:
        return True

    def is_bounded(self) -> bool:
        return False

    def current_progress(self) -> RestrictionProgress:
        return RestrictionProgress(completed=0, remaining=1)


class _Watching(RestrictionProvider):  # type: ignore[misc]
    def initial_restriction(self, element: None) -> Watched:
        return Watched()

    def create_tracker(self, restriction: Watched) -> _Tracker:
        return _Tracker(restriction)

    def restriction_size(self, element: None, restriction: Watched) -> int:
        return 1

    def restriction_coder(self) -> PickleCoder:
        return PickleCoder()

    def truncate(self, element: None, restriction: Watched) -> None:
        # A job that is drained looks no more.
        return None


_RESTRICTION = beam.DoFn.RestrictionParam(_Watching())
_WATERMARK = beam.DoFn.WatermarkEstimatorParam(ManualWatermarkEstimator.default_provider())


class WatchSegments(beam.DoFn):
    """One element in, `Found` of each window out, once when it closes, and again for names that come after that.

    To the engine a window happens in the last millisecond before it closes, and the watermark passes that when it has
    closed: until then the engine has nothing of it. A name that is there when its window closes counts, even if it is
    found a moment later. What the first listing finds has come in time for every unsettled window, however long nobody
    looked.

    Args:
        segments: the directory in which WINDOW/STREAM/FILE and WINDOW/MANIFEST lie.
        every: seconds from listing to listing.
        until: when the last listing is made, in seconds since 1970; None: never.
    """

    def __init__(
        self, segments: str, streams: tuple[str, ...], windows: StreamWindows, every: float, until: float | None
    ) -> None:
        self._segments, self._streams, self._windows = segments, streams, windows
        self._every, self._until = every, until

    @beam.DoFn.unbounded_per_element()
    def process(
        self,
        element: None,
        tracker: RestrictionTracker = _RESTRICTION,
        watermark: ManualWatermarkEstimator = _WATERMARK,
    ) -> Iterator[TimestampedValue]:
        watched: Watched = tracker.current_restriction()
        if watched.ended:
            return
        if watched.looked is not None:
            # Flink goes on long before the time that it was asked for.
            time.sleep(max(0.0, watched.looked + self._pause(watched.looked) - time.time()))
        # A clock that is set back must not take the watermark with it.
        now = max(time.time(), watched.looked or 0.0)
        ended = self._until is not None and now >= self._until
        there = list_names(self._segments, self._streams)
        known = replace(look(watched, there, now, self._every, self._windows), ended=ended)
        if not tracker.try_claim(known):
            return
        for found in found_between(watched, known, self._windows):
            late, window = found.late, self._windows.of_name(found.window)
            yield TimestampedValue(found, known.closed if late else self._windows.event_time(window))
        if not ended:
            if known.closed is not None:
                watermark.set_watermark(known.closed)
            tracker.defer_remainder(Duration(self._pause(now)))

    def _pause(self, looked: float) -> float:
        """Return how many seconds after a listing the next one is made."""
        return self._every if self._until is None else max(0.0, min(self._every, self._until - looked))
