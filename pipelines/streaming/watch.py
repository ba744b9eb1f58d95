"""Watch a directory of segments: a source that lists it again and again, and yields windows when they close."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import apache_beam as beam
from apache_beam.coders import PickleCoder
from apache_beam.io.iobase import RestrictionProgress, RestrictionTracker
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from apache_beam.pvalue import PCollection
from apache_beam.transforms.core import RestrictionProvider
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Duration

from hushcount.collection import manifests
from pipelines.files import storage
from pipelines.files.block_files import SUFFIX
from pipelines.streaming.closing import Watched, found_between, look
from pipelines.streaming.windows import StreamWindows


class WatchSegments(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """Nothing in, `Found` of each window out when it closes, once, and of what is found of it after that.

    To the engine a window happens in the last millisecond before it closes, and the watermark passes that when it has:
    what is not closed is not in the engine. A name that is there when its window closes counts, even if it is found a
    moment later; and those that the first listing finds have come in time for every window that is not settled, however
    long nobody looked.

    Args:
        segments: the directory in which WINDOW/STREAM/FILE and WINDOW/MANIFEST lie.
        streams: which streams.
        windows: the collector's.
        every: seconds from listing to listing.
        until: when the last listing is made, in seconds since 1970; None: never.
    """

    def __init__(
        self, segments: str, streams: tuple[str, ...], windows: StreamWindows, every: float, until: float | None
    ) -> None:
        super().__init__()
        self._watch = _Watch(segments, streams, windows, every, until)

    def expand(self, begin: PCollection) -> PCollection:
        return begin | "begin" >> beam.Create([None], reshuffle=False) | "watch" >> beam.ParDo(self._watch)


class _Tracker(RestrictionTracker):  # type: ignore[misc]
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


class _Watch(beam.DoFn):
    def __init__(
        self, segments: str, streams: tuple[str, ...], windows: StreamWindows, every: float, until: float | None
    ) -> None:
        self._segments = segments
        self._streams = streams
        self._windows = windows
        self._every = every
        self._until = until

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


def list_names(directory: str, streams: tuple[str, ...]) -> list[str]:
    """Return the segments of a directory by their last three names, WINDOW/STREAM/FILE, and its WINDOW/MANIFEST."""
    patterns = (*(f"*/{stream}/*{SUFFIX}" for stream in streams), f"*/*{manifests.SUFFIX}")
    return [storage.relative(path, directory) for one in patterns for path, _ in storage.list_tree(directory, one)]
