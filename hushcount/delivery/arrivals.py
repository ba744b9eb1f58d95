"""Which reports a client sends: the collector takes at most the cap of each stream in each window, under all tokens.

The shuffler counts a report in the window in which the report arrives, not in the window in which it was made, and it
counts by tokens, of which a client has several. So the client itself keeps the cap, whatever its clock shows
(docs/adr/0051):

- A post states the window of its token, and the collector takes no report before its window begins.
- A report takes a place in the change that claims it, before it leaves, if it, the reports that came in its window or
  later, and all other tried reports are together at most the cap. What has no room is given up, `over_cap`.
- A tried report keeps its place in every window, because lost requests and answers look alike. Once it is settled, it
  counts in the window of the answer's `Date`: no collector goes back to an earlier window.

A report is made only if it would have such a place beside all reports that wait. So in days without a connection, a
client makes reports only up to the cap, and these reports wait.

The present window is found by the collector's clock: the `Date` of its last answer, plus the time that has passed on
the device since that answer. Before the first answer, or if the device's clock was set back after the last one, the
present window is found by the device's clock. A wrong present window makes reports wait or be given up, and never lets
more arrive.

A collector that lies about the time gets no additional reports and costs no additional budget, because `Allowance`
separately bounds the reports in a window of the device's clock. But a collector that lies can keep its client from
making reports, for two windows of the device's clock after each answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from hushcount.allowance import OverCap
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.clock import MACHINE, Clock
from hushcount.collection.windows import last_changed
from hushcount.delivery.queue import Group, Queue
from hushcount.delivery.waiting import Claimed, Turn
from hushcount.formats.reading import parse_object
from hushcount.window_starts import Starts

_FACT = "arrivals"
_Counts = Mapping[str, int]


@dataclass(frozen=True)
class _Kept:
    """What the client stores about the collector's clock, and about the reports that came.

    Attributes:
        answered: when the collector's last answer came, by the device's clock, in seconds since 1970.
        ahead: how many seconds the collector's clock was ahead of the device's clock at the last answer.
        windows: how many tried reports were settled in each of the last windows, by the window's start and by stream.
            The start is None for reports that were given up since the collector's last answer: they count in every
            window.
    """

    answered: float = 0.0
    ahead: float = 0.0
    windows: Sequence[tuple[int | None, _Counts]] = field(default=())

    def present(self, now: float, starts: Starts) -> int:
        """Return the start of the collector's present window."""
        return starts.at(now + self.ahead if now >= self.answered else now)

    def came(self, stream: str, window: int, starts: Starts) -> int:
        """Return how many reports of a stream count in a window or in a later one.

        Another epoch may list windows that begin a little earlier. They are no earlier windows.
        """
        least = window - starts.least
        return sum(counts.get(stream, 0) for start, counts in self.windows if start is None or start > least)

    def more(self, start: int | None, counts: _Counts) -> _Kept:
        """Return what is kept once more reports count in a window."""
        there = dict(self.windows).get(start, {})
        added = {stream: there.get(stream, 0) + counts.get(stream, 0) for stream in {**there, **counts}}
        return replace(self, windows=tuple(last_changed(dict(self.windows), start, added).items()))

    def heard(self, now: float, at: float, starts: Starts) -> _Kept:
        """Return what is kept once the collector answered at `at` by its clock.

        The count of the next window is kept, because that may have begun at another collector. Counts of later windows
        are dropped, because only a wrong clock of a collector can show them.
        """
        start, following = starts.at(at), starts.after(at)
        past = tuple((other, counts) for other, counts in self.windows if other is not None and other <= following)
        kept = _Kept(now, at - now, past)
        lost = dict(self.windows).get(None)
        return kept if lost is None else kept.more(start, lost)


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Counts the reports of one campaign's queue that came; each count is stored together with the queue's change.

    Threads and processes may share this object. If they report at the same moment, more reports than the cap may wait;
    the reports over the cap are charged, but given up.

    Attributes:
        starts: function that returns when windows begin, by what the client knows now.
    """

    queue: Queue
    starts: Callable[[], Starts]
    clock: Clock = MACHINE

    def require_room(self, campaign: Campaign, streams: Sequence[Stream], anew: bool = False) -> None:
        """Raise OverCap unless one more report of each stream would count; `anew`: it is made from a waiting value."""
        fact, groups = self.queue.waiting_of(_FACT)
        kept = _read(fact)
        starts = self.starts()
        start = kept.present(self.clock.seconds(), starts)
        for stream in streams:
            wait = sum(
                group.number
                for group in groups
                if group.stream in (stream, "") and _may_count(group, start) and not (anew and group.is_plain)
            )
            came = kept.came(stream, start, starts)
            if wait + came >= campaign.shuffle.cap:
                raise OverCap(
                    f"1 more {stream} of campaign {campaign.id} would not count: {wait} wait to be sent, and "
                    f"{came} arrived in the collector's present window, in which at most {campaign.shuffle.cap} "
                    "count; deliver what waits, or wait for the next window"
                )

    def present(self) -> int:
        """Return when the collector's present window began, in seconds since 1970."""
        return self.turns()().window

    def turns(self) -> Callable[[], Turn]:
        """Return a function that returns the present window by what is known of the collector's clock now.

        The claims of one delivery use one function until an answer says that a window has not begun. Otherwise an
        answer to the reports of one stream could change the window between the two streams of a value.
        """
        known = _read(self.queue.fact(_FACT))

        def came(fact: str | None, stream: Stream, window: int) -> int:
            return _read(fact).came(stream, window, self.starts())

        return lambda: Turn(known.present(self.clock.seconds(), self.starts()), _FACT, came)

    def heard(self, at: float) -> None:
        """Store when the collector answered, by its own clock, in seconds since 1970."""
        now = self.clock.seconds()
        self.queue.change(_FACT, lambda fact: _text(_read(fact).heard(now, at, self.starts())))

    def settled(self, claimed: Claimed, at: float | None, took: bool) -> int:
        """Remove claimed reports; return how many were still queued.

        Args:
            at: when the collector answered, by its own clock, in seconds since 1970; None if that is not known.
            took: whether the collector took the reports, so that without `at` they count in the present window.
        """
        return self.queue.remove(claimed, _FACT, lambda fact, number: self._counted(fact, claimed, number, at, took))

    def refused(self, claimed: Claimed, due: float, most: int) -> int:
        """Give claimed reports back that others than the collector refused; return how many are given up."""
        return self.queue.give_back_refused(
            claimed, due, most, _FACT, lambda fact, number: self._counted(fact, claimed, number, None)
        )

    def given_up(self, claimed: Claimed, at: float | None) -> None:
        """Count claimed reports that are given up, before they are removed."""
        self.queue.change(_FACT, lambda fact: self._counted(fact, claimed, len(claimed.rows), at))

    def is_far(self, claimed: Claimed, at: float) -> bool:
        """Return whether the window of claimed reports begins more than a window after a moment."""
        return claimed.window > self.starts().after(at)

    def _counted(self, fact: str | None, claimed: Claimed, number: int, at: float | None, took: bool = False) -> str:
        kept, now = _read(fact), self.clock.seconds()
        start = kept.present(now, self.starts()) if took else None
        if at is not None:
            kept, start = kept.heard(now, at, self.starts()), self.starts().at(at)
        return _text(kept.more(start, {claimed.stream or "": number}))


def _may_count(group: Group, window: int) -> bool:
    """Return whether waiting rows may count in a window."""
    if group.is_bound:
        return group.window == window
    return group.is_tried or group.window is None or group.window <= window


def _text(kept: _Kept) -> str:
    return json.dumps(asdict(kept))


def _read(fact: str | None) -> _Kept:
    return _Kept() if fact is None else _Kept(**parse_object(fact.encode(), "what is kept of arrivals"))
