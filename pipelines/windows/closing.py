"""The one rule for windows: when one closes, what it takes, what goes on waiting, and what is too late.

Pure functions over what the log and the store say, and a moment. Windows close in the order of their ends, each once.
A segment is in time if the store had its manifest by the end of its window and grace; every segment in time is offered
to at least one window that closes after that. What no window took is dropped when a window closes at or after the end
of its grace. A window that is not in the calendar, which a collector with older settings closed, is taken by the first
window that ends with it or later.
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
    """A manifest that no window has taken in yet.

    Attributes:
        path: in the folder of segments.
        written: when the store had it, by the store's clock.
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
        """The manifest's path and those of its segments: each is taken in once."""
        return self.path, *(segment.path for segment in self.segments)


@dataclass(frozen=True)
class Rule:
    """What a deployment says of windows, and the campaign files that say what a batch needs.

    Attributes:
        calendar: which windows there are, and until when what is late for them counts.
        collectors: who is waited for; empty: nobody is known, and each window waits for its patience.
    """

    calendar: Calendar
    patience: timedelta
    collectors: frozenset[str]
    files: Mapping[File, Campaign]


@dataclass(frozen=True)
class Closing:
    """What closing a window does.

    Attributes:
        manifests: that are taken in.
        batches: their segments, by campaign file and stream.
        dropped: reason by segment.
    """

    window: Window
    manifests: tuple[Listed, ...]
    batches: Mapping[File, Mapping[Stream, tuple[Segment, ...]]]
    dropped: Mapping[Segment, str]


def next_window(
    closed: datetime | None, waiting: Iterable[Segment], listed: Sequence[Listed], rule: Rule, now: datetime
) -> Window | None:
    """Return the next window to close; None: none is due.

    Args:
        closed: every window that ended by then is closed; None: none is.
        waiting: segments that closed windows took in and no batch took.
        listed: the manifests that are new.
        now: a moment that has certainly come.
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
    """Return what closing a window does, which `next_window` returned for the same log and store.

    Args:
        faults: what is wrong with each segment that is not as its manifest says, by path: it waits, or is dropped.
        now: as for `next_window`. It bounds what the store stamps: a drop by one clock that is ahead would be final.
        restored: when the log was begun anew; what the store had by then may have been counted before, and is given up.
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
    """Return the first open window that ends at a moment or later.

    It begins where the last window ended, if that is within it, so that no two windows have one name.
    """
    window = rule.calendar.window_at((end if closed is None else max(end, closed + _SECOND)) - _SECOND)
    return window if closed is None else Window(max(window.start, closed), window.end)


def _batches(
    segments: Iterable[Segment], files: Mapping[File, Campaign]
) -> dict[File, dict[Stream, tuple[Segment, ...]]]:
    """Return the batches that reach their minimum: of each stream the oldest segments, of a window the largest first.

    Those that stay, because a batch lists no more, are few reports.
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
