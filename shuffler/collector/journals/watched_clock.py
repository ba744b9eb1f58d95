"""Checks the clock: even a short jump ahead would end windows that have not begun."""

from __future__ import annotations

from dataclasses import dataclass

from hushcount.clock import MACHINE, Clock


class ClockAhead(Exception):
    """The clock ran ahead of the steady clock, by `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


@dataclass
class WatchedClock:
    """The clock, compared with a steady clock: the clock may run ahead of the steady clock by `tolerance` seconds."""

    tolerance: float
    clock: Clock = MACHINE
    _believed: tuple[float, float] | None = None

    def seconds(self) -> float:
        """Return the clock's time in seconds since 1970, unchecked."""
        return self.clock.seconds()

    def believe(self, now: float) -> None:
        """Accept this time, and compare later times with it."""
        self._believed = now, self.clock.steady()

    def require_believable(self, now: float) -> None:
        """Raise ClockAhead if the clock ran ahead by more than the tolerance since the last `believe`."""
        if self._believed is not None:
            then, steady_then = self._believed
            ahead = (now - then) - (self.clock.steady() - steady_then)
            if ahead > self.tolerance:
                raise ClockAhead(ahead)
