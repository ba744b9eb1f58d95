"""What a sender did, as an app may show it: typed, and without any value."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from hushcount.campaigns.campaign import Stream
from hushcount.formats.client_files import ThreadLock

What = Literal[
    "fetched",
    "unchanged",
    "not_fetched",
    "refused",
    "waits",
    "queued",
    "sent",
    "again",
    "remade",
    "dropped",
    "answered",
    "not_answered",
    "blank",
    "forgotten",
]
_MOST_EVENTS = 1000


@dataclass(frozen=True)
class Event:
    """One step of a sender.

    Attributes:
        at: by this machine's clock.
        what: fetched, unchanged, not_fetched: the campaign file. refused: the policy refuses the campaign file. waits:
            a plain value waits for a campaign file. queued: reports wait to be sent. sent: the collector has them.
            again: they are sent again later. remade: made anew under the present campaign file. dropped: given up.
            answered: the evaluations of discovery reports came. not_answered: they are asked for again later.
            blank: no evaluation came, and the reports are sent without their values; with the reason "equivocation"
            if an answer was not made with the campaign's evaluator key. forgotten: deleted when the person opted out.
        reports: how many.
        stream: their stream, if all are of the same stream.
        reason: why, in the collector's word or in a sentence of this library; it never contains a value.
    """

    at: datetime
    what: What
    reports: int = 0
    stream: Stream | None = None
    reason: str = ""


class TellEvent(Protocol):
    """A function that is told each step."""

    def __call__(self, what: What, reason: str, reports: int = 0, stream: Stream | None = None) -> None:
        """Note a step."""
        ...


@dataclass(frozen=True, eq=False)
class EventLog:
    """The newest events of a sender, a thousand at most; threads may share it."""

    _events: deque[Event] = field(default_factory=lambda: deque(maxlen=_MOST_EVENTS))
    _lock: ThreadLock = field(default_factory=ThreadLock, repr=False)

    def add(self, event: Event) -> None:
        with self._lock:
            self._events.append(event)

    def events(self) -> tuple[Event, ...]:
        with self._lock:
            return tuple(self._events)


@dataclass(frozen=True)
class Delivery:
    """What one call of `deliver` did.

    What waited before, and what was reported meanwhile, is now sent, dropped or waiting:
    `before + reported + added = sent + dropped + waiting`, if only one process delivers.

    Attributes:
        sent: reports that the collector has on its disk.
        remade: reports that were made from waiting plain values.
        added: `remade` less the number of those values, because one value may become a report of each stream.
        dropped: reports that were given up, by reason.
        waiting: reports, and plain values, that wait now.
        held_until: before this moment nothing is sent, because of failures; None: no failure.
        blank: discovery reports without their values, because their evaluations did not come, by reason. They are
            counted in `sent` or `waiting` like all others.
    """

    sent: int = 0
    remade: int = 0
    added: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    waiting: int = 0
    held_until: datetime | None = None
    blank: Mapping[str, int] = field(default_factory=dict)

    def then(self, later: Delivery) -> Delivery:
        """Return what this call and a later one did together."""
        return Delivery(
            self.sent + later.sent,
            self.remade + later.remade,
            self.added + later.added,
            dict(Counter(self.dropped) + Counter(later.dropped)),
            later.waiting,
            later.held_until,
            dict(Counter(self.blank) + Counter(later.blank)),
        )
