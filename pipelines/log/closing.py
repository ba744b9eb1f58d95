"""The one rule for windows: when one closes, what it takes, what goes on waiting, and what is too late.

Pure functions over what the log and the store say, and a moment. Windows close in the order of their ends, each once.
A segment is in time if the store had its manifest by the end of its window and grace; every segment in time is offered
to at least one window that closes after that. What no window took is dropped when a window closes at or after the end
of its grace. A window of another length than the schedule's, which a collector with older settings closed, is taken by
the first window that ends with it or later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hushcount.campaigns.campaign import Stream
from hushcount.collection.windows import Window, window_at
from hushcount.formats.reading import MOST_SEGMENTS
from hushcount.senders import Authentication

File = tuple[int, str]
"""Epoch and first digits of the fingerprint of a campaign file."""
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Segment:
    """A segment that a manifest lists.

    Attributes:
        path: in the folder of segments.
        window: in which its reports came.
    """

    path: str
    file: File
    window: Window
    stream: Stream
    records: int
    bytes: int
    digest: str
    authentication: Authentication


@dataclass(frozen=True)
class Listed:
    """A manifest that no window has taken in yet.

    Attributes:
        path: in the folder of segments.
        written: when the store had it, by the store's clock.
    """

    path: str
    window: Window
    collector: str
    written: datetime
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class Rule:
    """What a deployment says of windows; `minimum` batch of each stream, by campaign file.

    Attributes:
        collectors: who is waited for; empty: nobody is known, and each window waits for its patience.
    """

    length: timedelta
    grace: timedelta
    patience: timedelta
    collectors: frozenset[str]
    minimum: Mapping[File, Mapping[Stream, int]]


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


def next_closing(
    closed: datetime | None,
    waiting: Iterable[Segment],
    listed: Sequence[Listed],
    rule: Rule,
    now: datetime,
    faulty: Container[str] = (),
) -> Closing | None:
    """Return the next window to close; None: none is due.

    Args:
        closed: every window that ended by then is closed; None: none is.
        waiting: segments that closed windows took in and no batch took.
        listed: the manifests that are new.
        now: a moment that has certainly come.
        faulty: paths of segments that are not as their manifests say: they wait until they are, or are dropped.
    """
    waiting = tuple(waiting)
    window = min(
        [
            *(_taken_by(one.window.end, closed, rule) for one in listed),
            *(_taken_by(one.window.end + rule.grace, closed, rule) for one in waiting),
        ],
        default=None,
    )
    if window is None or window.end > now:
        return None
    manifests = tuple(one for one in listed if _taken_by(one.window.end, closed, rule) <= window)
    there = {one.collector for one in manifests if _taken_by(one.window.end, closed, rule) == window}
    complete = bool(rule.collectors) and there >= rule.collectors
    if not complete and window.end + rule.patience > now:
        return None
    late = {
        segment: f"its manifest came at {one.written:%Y-%m-%d %H:%M:%S} UTC, after the grace of {one.window.name}"
        for one in manifests
        if one.written > one.window.end + rule.grace
        for segment in one.segments
    }
    offered = [*waiting, *(segment for one in manifests for segment in one.segments if segment not in late)]
    batches = _batches([segment for segment in offered if segment.path not in faulty], rule)
    taken = {segment for streams in batches.values() for segments in streams.values() for segment in segments}
    over = {
        segment: f"grace ended before {window.name} did, and no window took it"
        for segment in offered
        if segment not in taken and segment.window.end + rule.grace <= window.end
    }
    return Closing(window, manifests, batches, late | over)


def _taken_by(moment: datetime, closed: datetime | None, rule: Rule) -> Window:
    """Return the first open window that ends at a moment or later."""
    first = moment if closed is None else max(moment, closed + _SECOND)
    return window_at(first - _SECOND, rule.length)


def _batches(segments: Iterable[Segment], rule: Rule) -> dict[File, dict[Stream, tuple[Segment, ...]]]:
    """Return the batches that reach their minimum: of each stream the oldest segments, of a window the largest first.

    Those that stay, because a batch lists no more, are few reports.
    """
    ready: dict[tuple[File, Stream], list[Segment]] = defaultdict(list)
    for segment in segments:
        if segment.stream in rule.minimum.get(segment.file, ()):
            ready[segment.file, segment.stream].append(segment)
    found: dict[File, dict[Stream, tuple[Segment, ...]]] = defaultdict(dict)
    for (file, stream), waiting in sorted(ready.items()):
        first = sorted(waiting, key=lambda one: (one.window.end, -one.records, one.path))[:MOST_SEGMENTS]
        if sum(one.records for one in first) >= rule.minimum[file][stream]:
            found[file][stream] = tuple(first)
    return dict(found)
