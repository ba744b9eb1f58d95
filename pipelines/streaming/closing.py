"""When a window of a stream closes: when the clock says so, and the collectors bear it out.

A collector writes the manifest of a window when the window has ended by its own clock. So the newest manifest tells the
time without our clock: what it does not say is over stays open, whatever our clock says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from apache_beam.utils.timestamp import Timestamp

from hushcount.collection.manifests import SUFFIX, collector_of
from hushcount.collection.windows import Window
from pipelines.streaming.windows import StreamWindows


@dataclass(frozen=True)
class Found:
    """Names of one window, WINDOW/STREAM/SEGMENT and WINDOW/MANIFEST.

    Attributes:
        window: its name.
        names: all that were seen until it closed; or those that were first seen after that.
        late: whether it had closed before.
    """

    window: str
    names: tuple[str, ...]
    late: bool


@dataclass(frozen=True)
class Watched:
    """What has been seen so far: the watching's whole state, kept by the engine.

    Attributes:
        seen: names of segments and manifests.
        looked: when the last listing began, in seconds since 1970; None before the first.
        closed: windows that to the engine happen before this have closed; None: none has.
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
    """Return what is known after a listing.

    Args:
        watched: what was known before.
        there: names that were listed.
        now: when the listing began by the clock, not before the last one did.
        pause: seconds from listing to listing.
        windows: the collector's.

    Raises:
        UsageError: a name lies in no window.
    """
    seen = watched.seen.union(there)
    last = _last_manifests(seen, now, windows)
    newest = max(last.values(), default=None)
    # A clock that jumps moves this no further than one pause.
    passed = 0.0 if watched.looked is None else min(now - watched.looked, pause)
    waited = watched.waited + passed if newest == watched.newest else 0.0
    closed = watched.closed
    if newest is not None:
        limit = min(Timestamp(now), borne_out(last.values(), newest, waited, windows))
        closed = limit if closed is None else max(closed, limit)
    return Watched(seen, now, closed, newest, waited)


def borne_out(last: Iterable[Window], newest: Window, waited: float, windows: StreamWindows) -> Timestamp:
    """Return the time before which all windows may close that have closed by the clock.

    None closes after the newest manifest's. A collector is waited for that has a manifest of the window before, and not
    yet of this one: until the lateness has passed by the manifests of others, or by watching.

    Args:
        last: the last window of which each collector wrote a manifest.
        newest: the last of these.
        waited: seconds of watching since the newest manifest was found.
        windows: the collector's.
    """
    shown = Timestamp.from_utc_datetime(newest.end) + waited
    waits = (window.next for window in last if windows.closes(window.next) > shown)
    return windows.event_time(min([newest.next, *waits]))


def found_between(before: Watched, after: Watched, windows: StreamWindows) -> list[Found]:
    """Return the windows that a listing closed, each with all its names, and the new names of those closed before."""
    if after.closed is None:
        return []
    names: dict[str, list[str]] = defaultdict(list)
    for name in sorted(after.seen):
        names[name.partition("/")[0]].append(name)
    found = []
    for window, there in sorted(names.items()):
        time = windows.event_time(windows.of_name(there[0]))
        late = before.closed is not None and time < before.closed
        new = [name for name in there if not late or name not in before.seen]
        if new and time < after.closed:
            found.append(Found(window, tuple(new), late))
    return found


def _last_manifests(names: Iterable[str], now: float, windows: StreamWindows) -> dict[str, Window]:
    """Return the last window that each collector closed, of those that have ended by our clock too.

    A manifest of a window to come says that its collector's clock is ahead, or ours behind: it bears out nothing.
    """
    closed = {(name.partition("/")[0], collector_of(name.rpartition("/")[2])) for name in names if is_manifest(name)}
    last: dict[str, Window] = {}
    for name, collector in sorted(closed, key=str):
        window = windows.of_name(name)
        if collector is not None and window.end.timestamp() <= now:
            last[collector] = max(window, last.get(collector, window))
    return last


def is_manifest(name: str) -> bool:
    """Return whether a name is a manifest's, not a segment's."""
    return name.endswith(SUFFIX)
