"""The one rule for windows: when a window closes, and which segments it takes, lets wait or drops as too late.

The functions of this module are pure: their only input is the log, the store and a moment. Windows close in the order
of their ends, and each window closes once. A segment is in time if the store received the segment's manifest before the
grace of the segment's window ended. Every segment in time is offered to at least one window that closes later. A
segment that no batch took is dropped when a window closes at or after the end of the segment's grace. A collector with
older settings may end a window that is not in the calendar: then the window's segments go to the first window of the
calendar with the same or a later end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.collection.manifests import Manifest
from hushcount.collection.windows import Window
from hushcount.formats.reading import MOST_SEGMENTS
from pipelines.log.segments import GIVEN_UP, File, Segment, segments_of, window_of
from pipelines.windows.calendar import Calendar

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Listed:
    """A manifest that no closed window has taken yet.

    Attributes:
        path: relative to the folder of segments.
        written: when the store received the manifest, by the store's clock.
    """

    path: str
    written: datetime
    manifest: Manifest

    @cached_property
    def window(self) -> Window:
        return window_of(self.manifest)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        return segments_of(self.path, self.manifest)

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the manifest and of its segments; windows take each path once."""
        return self.path, *(segment.path for segment in self.segments)


@dataclass(frozen=True)
class Rule:
    """A deployment's settings of windows, and the campaign files, which state the minimum batch.

    Attributes:
        calendar: the windows, and the end of each window's grace.
        collectors: the collectors that a window waits for; if empty, each window waits for its whole patience.
    """

    calendar: Calendar
    patience: timedelta
    collectors: frozenset[str]
    files: Mapping[File, Campaign]


@dataclass(frozen=True)
class Closing:
    """The result of closing a window.

    Attributes:
        manifests: the manifests that the window takes.
        batches: the segments of each batch, by campaign file and stream.
        dropped: the reason for each dropped segment.
    """

    window: Window
    manifests: tuple[Listed, ...]
    batches: Mapping[File, Mapping[Stream, tuple[Segment, ...]]]
    dropped: Mapping[Segment, str]


def next_window(
    closed: datetime | None, waiting: Iterable[Segment], listed: Sequence[Listed], rule: Rule, now: datetime
) -> Window | None:
    """Return the next window to close, or None if no window is due.

    Args:
        closed: every window that ended by this time is closed; None if no window is closed.
        waiting: segments that a closed window took, but no batch took.
        listed: the manifests that no closed window has taken.
        now: the moment to work by, which has certainly passed.
    """
    ends = [*(one.window.end for one in listed), *(rule.calendar.grace_ends(one.window) for one in waiting)]
    if not ends:
        return None
    window = _first_open(min(ends), closed, rule)
    there = {one.manifest.collector for one in listed if _first_open(one.window.end, closed, rule) == window}
    complete = bool(rule.collectors) and there >= rule.collectors
    due = window.end if complete else window.end + rule.patience
    return window if due <= now else None


def closing_of(  # noqa: PLR0913  # all that decides what closing does
    window: Window,
    closed: datetime | None,
    waiting: Iterable[Segment],
    listed: Sequence[Listed],
    rule: Rule,
    faults: Mapping[str, str],
    now: datetime,
    restored: datetime | None = None,
) -> Closing:
    """Return the result of closing the window that `next_window` returned for the same log and store.

    Args:
        faults: how segments differ from their manifests, by path; such a segment waits, or is dropped.
        now: as for `next_window`. The store's time stamps that are later than `now` count as `now`, because a wrong
            clock would otherwise cause drops that are final.
        restored: when a new log was begun. Segments that the store had by that time are given up, because the old log
            may have counted them.
    """
    manifests = tuple(one for one in listed if _first_open(one.window.end, closed, rule) <= window)
    late = {
        segment: f"its manifest came at {one.written:%Y-%m-%d %H:%M:%S} UTC, after the grace of {one.window.text}"
        for one in manifests
        if rule.calendar.grace_ends(one.window) < min(one.written, now)
        for segment in one.segments
    }
    late |= {
        segment: GIVEN_UP
        for one in manifests
        if restored is not None and one.written <= restored
        for segment in one.segments
    }
    offered = [*waiting, *(segment for one in manifests for segment in one.segments if segment not in late)]
    batches = _batches((segment for segment in offered if segment.path not in faults), rule.files)
    taken = {segment for streams in batches.values() for segments in streams.values() for segment in segments}
    over = {
        segment: f"its file {faults[segment.path]}"
        if segment.path in faults
        else f"grace ended before {window.text} did, and no batch took it"
        for segment in offered
        if segment not in taken and rule.calendar.grace_ends(segment.window) <= window.end
    }
    return Closing(window, manifests, batches, late | over)


def _first_open(end: datetime, closed: datetime | None, rule: Rule) -> Window:
    """Return the first window that is not closed and that ends at the time `end` or later.

    If the last closed window ended inside this window, this window begins at that end, so that no two windows have the
    same name.
    """
    window = rule.calendar.window_at((end if closed is None else max(end, closed + _SECOND)) - _SECOND)
    return window if closed is None else Window(max(window.start, closed), window.end)


def _batches(
    segments: Iterable[Segment], files: Mapping[File, Campaign]
) -> dict[File, dict[Stream, tuple[Segment, ...]]]:
    """Return the batches that reach the minimum batch of their campaign file.

    A batch takes the oldest segments of a stream first, and among segments of one window the largest first. A batch
    takes at most MOST_SEGMENTS segments, so the segments that it leaves hold few reports.
    """
    ready: dict[tuple[File, Stream], list[Segment]] = defaultdict(list)
    for segment in segments:
        campaign = files.get(segment.file)
        if campaign is not None and segment.stream in campaign.streams:
            ready[segment.file, segment.stream].append(segment)
    found: dict[File, dict[Stream, tuple[Segment, ...]]] = defaultdict(dict)
    for (file, stream), waiting in sorted(ready.items()):
        first = sorted(waiting, key=lambda one: (one.window.end, -one.records, one.path))[:MOST_SEGMENTS]
        if files[file].reaches_minimum(sum(one.records for one in first)):
            found[file][stream] = tuple(first)
    return dict(found)
