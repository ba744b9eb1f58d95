"""What a sender did, as typed events that an app may show; no event contains a value."""

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
    "not_queued",
    "sent",
    "again",
    "remade",
    "dropped",
    "answered",
    "not_answered",
    "blank",
    "forgotten",
    "no_pass",
]
_MOST_EVENTS = 1000


@dataclass(frozen=True)
class Event:
    """One step of a sender.

    Attributes:
        at: the time of the step by this machine's clock.
        what: fetched, unchanged, not_fetched: the campaign file. refused: the policy refuses the campaign file. waits:
            a plain value waits until there is a campaign file. queued: reports wait to be sent. not_queued: the reports
            of a value were not made, or not all of them. sent: the collector has the reports. again: the reports will
            be tried again later. remade: reports were made from plain values under the present campaign file. dropped:
            reports were given up. answered: the evaluations of discovery reports came. not_answered: evaluations will
            be asked for again later. blank: no evaluation came, so the reports are sent without their values; the
            reason is "equivocation" if an answer was not made with the campaign's evaluator key. forgotten: waiting
            reports were deleted because the person opted out. no_pass: the issuer gave no passes, so reports that need
            one wait.
        reports: how many reports the step is about.
        stream: the stream of the reports, if all reports have the same stream.
        reason: why the step was taken, as the collector's name of a problem or as a sentence of this library; the
            reason never contains a value.
    """

    at: datetime
    what: What
    reports: int = 0
    stream: Stream | None = None
    reason: str = ""


class TellEvent(Protocol):
    """A function that is called with each step."""

    def __call__(self, what: What, reason: str, reports: int = 0, stream: Stream | None = None) -> None:
        """Store a step."""
        ...


@dataclass(frozen=True, eq=False)
class EventLog:
    """The newest events of a sender, a thousand at most; threads may share this object."""

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

    If only one process delivers, each report that waited before or was made meanwhile is now sent, dropped or waiting:
    `before + reported + added = sent + dropped + waiting`.

    Attributes:
        sent: reports that the collector has on its disk.
        remade: reports that were made from waiting plain values.
        added: `remade` minus the number of plain values that became reports; above 0 if a value became two reports, one
            of each stream.
        dropped: reports that were given up, by reason.
        waiting: reports and plain values that wait after the call.
        held_until: because of failures, nothing is sent before this moment; None: reports may be sent now.
        blank: discovery reports without their values, because their evaluations did not come, by reason. Discovery
            reports without values are also counted in `sent` or `waiting`.
        no_pass: whether reports wait because the client has no pass for the present window; `log` says why.
    """

    sent: int = 0
    remade: int = 0
    added: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    waiting: int = 0
    held_until: datetime | None = None
    blank: Mapping[str, int] = field(default_factory=dict)
    no_pass: bool = False

    def then(self, later: Delivery) -> Delivery:
        """Return the sum of what this call and a later call did."""
        return Delivery(
            self.sent + later.sent,
            self.remade + later.remade,
            self.added + later.added,
            dict(Counter(self.dropped) + Counter(later.dropped)),
            later.waiting,
            later.held_until,
            dict(Counter(self.blank) + Counter(later.blank)),
            later.no_pass,
        )
