"""Which reports count when they arrive: in each window of the collector's clock, at most the cap of each stream.

The shuffler counts a report in the window in which the report arrives, not in the window in which it was made. So a
report is made only if the waiting reports and plain values of its stream and the reports that arrived in the present
window are together fewer than the cap. Therefore no report is charged to the budget and then dropped by the cap: in
days without a connection, a client makes reports only up to the cap, and these reports wait.

The present window is found by the collector's clock: the `Date` of the collector's last answer 202, plus the time that
has passed on the device since that answer. Before the first answer 202, or if the device's clock was set back after the
last one, the present window is found by the device's clock. If the device's clock was set ahead after the last answer
202, the present window looks like a later window until the next answer. Reports up to the cap of one window may then be
charged although the shuffler does not count them.

A collector that lies about the time gets no additional reports and costs no additional budget, because `Allowance`
separately bounds the reports in a window of the device's clock. But a collector that lies can keep its client from
making reports, for two windows of the device's clock after each answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta

from hushcount.allowance import OverCap
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.clock import MACHINE, Clock
from hushcount.collection.windows import last_changed
from hushcount.delivery.queue import Queue
from hushcount.delivery.waiting import Claimed
from hushcount.formats.reading import parse_object

_FACT = "arrivals"
_Counts = Mapping[str, int]


@dataclass(frozen=True)
class _Arrived:
    """What the client stores about the collector's answers.

    Attributes:
        answered: when the collector's last answer came, by the device's clock, in seconds since 1970.
        ahead: how many seconds the collector's clock was ahead of the device's clock at the last answer.
        windows: how many reports arrived in each of the last windows, by the window's start and by stream.
    """

    answered: float = 0.0
    ahead: float = 0.0
    windows: Sequence[tuple[int, _Counts]] = field(default=())

    def present(self, now: float, seconds: int) -> tuple[int, _Counts]:
        """Return the start of the collector's present window of `seconds`, and how many reports arrived in it."""
        moment = int(now + self.ahead if now >= self.answered else now)
        start = moment - moment % seconds
        return start, dict(self.windows).get(start, {})


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Counts the reports of one campaign's queue that arrive; each count is stored together with the queue's change.

    Threads and processes may share this object. Threads that report at the same moment may exceed the cap, by one
    report each at most; the reports over the cap are charged, but the shuffler does not count them.
    """

    queue: Queue
    window: timedelta
    clock: Clock = MACHINE

    def require_room(self, campaign: Campaign, streams: Sequence[Stream], anew: bool = False) -> None:
        """Raise OverCap unless one more report of each stream would count; `anew`: it is made from a waiting value."""
        # Read first how many reports wait, then how many arrived: a report that is sent between the two steps is then
        # counted twice, not missed.
        there = self.queue.waiting_of(streams)
        _, came = _read(self.queue.fact(_FACT)).present(self.clock.seconds(), self._seconds)
        for stream, (reports, values) in zip(streams, there, strict=True):
            waiting, arrived = reports if anew else reports + values, came.get(stream, 0)
            if waiting + arrived >= campaign.shuffle.cap:
                raise OverCap(
                    f"1 more {stream} of campaign {campaign.id} would not count: {waiting} wait to be sent, and "
                    f"{arrived} arrived in the collector's present window, in which at most {campaign.shuffle.cap} "
                    "count; deliver what waits, or wait for the next window"
                )

    def sent(self, claimed: Claimed, at: float | None) -> int:
        """Remove claimed reports that the collector took, and count them as arrived; return how many were still queued.

        Args:
            at: when the collector took the reports, by its own clock, in seconds since 1970; None if its answer has no
                time.
        """
        now = self.clock.seconds()

        def counted(fact: str | None, number: int) -> str:
            before = _read(fact)
            after = before if at is None else _Arrived(now, at - now, before.windows)
            start, there = after.present(now, self._seconds)
            stream = str(claimed.stream)
            # Keep the count of the next window, which may have begun at another collector. Drop counts of later
            # windows, because only a wrong clock can show them.
            known = {other: counts for other, counts in before.windows if other <= start + self._seconds}
            counts = last_changed(known, start, {**there, stream: there.get(stream, 0) + number})
            return json.dumps(asdict(_Arrived(after.answered, after.ahead, tuple(counts.items()))))

        return self.queue.remove(claimed, _FACT, counted)

    @property
    def _seconds(self) -> int:
        return int(self.window.total_seconds())


def _read(fact: str | None) -> _Arrived:
    return _Arrived() if fact is None else _Arrived(**parse_object(fact.encode(), "what is kept of arrivals"))
