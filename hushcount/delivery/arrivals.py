"""Which reports count where they arrive: of each stream no more than the cap in a window of the collector's clock.

The shuffler counts a report in the window in which it arrives, whenever it was made. So a report is made only if what
waits of its stream, plain values included, and what arrived in the present window are below the cap. Then nothing is
charged that the cap drops: whoever was offline for days finds the first reports waiting, and later ones not made.

The present window is the collector's: the `Date` of its last answer 202, and the time that has passed on the device
since. Before such an answer, and if the device's clock was set back since, it is the device's. If the clock was set
ahead after that answer, the window is taken for a later one until the next answer: the cap of one window may then be
charged in vain.

A collector that lies about the time wins no report and no budget: what is made in a window of the device's clock is
bounded apart (`Allowance`). It can keep its client from making reports, for two windows on the device after an answer.
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
    """What is kept of the collector's answers.

    Attributes:
        answered: when the last one came, by the device's clock, in seconds since 1970.
        ahead: how far the collector's clock was ahead of it then.
        windows: reports that arrived, by the start of the window and by stream, those of the last windows.
    """

    answered: float = 0.0
    ahead: float = 0.0
    windows: Sequence[tuple[int, _Counts]] = field(default=())

    def present(self, now: float, seconds: int) -> tuple[int, _Counts]:
        """Return the start of the collector's present window of so many seconds, and what arrived in it."""
        moment = int(now + self.ahead if now >= self.answered else now)
        start = moment - moment % seconds
        return start, dict(self.windows).get(start, {})


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Counts what arrives of one campaign's queue, in the queue's own changes; threads and processes may share it.

    Threads that report at the same moment may exceed the cap by as many reports, which are then charged in vain.
    """

    queue: Queue
    window: timedelta
    clock: Clock = MACHINE

    def require_room(self, campaign: Campaign, streams: Sequence[Stream], anew: bool = False) -> None:
        """Raise OverCap unless one more report of each stream counts; `anew`: one that is made of a waiting value."""
        # First what waits: what is sent meanwhile then counts twice, and not never.
        there = self.queue.waiting_of(streams)
        _, came = _read(self.queue.fact(_FACT)).present(self.clock.seconds(), self._seconds)
        for stream, (reports, values) in zip(streams, there, strict=True):
            waiting, arrived = reports if anew else reports + values, came.get(stream, 0)
            if waiting + arrived >= campaign.shuffle.cap:
                raise OverCap(
                    f"1 more {stream} of campaign {campaign.id}: {waiting} wait to be sent, and {arrived} arrived in "
                    f"the collector's present window: must be at most {campaign.shuffle.cap} together, because no more "
                    "of a window count; deliver what waits, or wait for the next window"
                )

    def sent(self, claimed: Claimed, at: float | None) -> int:
        """Remove claimed reports that the collector took, and count them; return how many were still there.

        Args:
            at: when, by the collector's clock, in seconds since 1970; None if it did not say.
        """
        now = self.clock.seconds()

        def counted(fact: str | None, number: int) -> str:
            before = _read(fact)
            after = before if at is None else _Arrived(now, at - now, before.windows)
            start, there = after.present(now, self._seconds)
            stream = str(claimed.stream)
            # The next window may have begun at another collector. Later ones were named by a clock that was wrong.
            known = {other: counts for other, counts in before.windows if other <= start + self._seconds}
            counts = last_changed(known, start, {**there, stream: there.get(stream, 0) + number})
            return json.dumps(asdict(_Arrived(after.answered, after.ahead, tuple(counts.items()))))

        return self.queue.remove(claimed, _FACT, counted)

    @property
    def _seconds(self) -> int:
        return int(self.window.total_seconds())


def _read(fact: str | None) -> _Arrived:
    return _Arrived() if fact is None else _Arrived(**parse_object(fact.encode(), "what is kept of arrivals"))
