"""A check of the clock: one that is wrong for a moment would end windows that have not begun."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class ClockAhead(Exception):
    """The clock went further ahead than time did, by so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


def steady() -> float:
    """Return seconds since some moment, by a clock that nobody sets and, if the system has one, that never sleeps."""
    return time.clock_gettime(_STEADY)


@dataclass
class WatchedClock:
    """The clock, compared with a steady one, which it may run ahead of by a tolerance in seconds."""

    tolerance: float
    now: Clock = time.time
    steady: Clock = steady
    _believed: tuple[float, float] | None = None

    def believe(self, now: float) -> None:
        """Measure from this moment on."""
        self._believed = now, self.steady()

    def require_believable(self, now: float) -> None:
        """Raise ClockAhead if the clock ran ahead by more than the tolerance since the last `believe`."""
        if self._believed is not None:
            then, steady_then = self._believed
            ahead = (now - then) - (self.steady() - steady_then)
            if ahead > self.tolerance:
                raise ClockAhead(ahead)
