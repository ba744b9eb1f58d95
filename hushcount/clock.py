"""The one place where the machine's clock is read."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone


def _steady() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass(frozen=True)
class Clock:
    """Tells the time to what decides by it: `MACHINE`, or in a test one that the test sets.

    Attributes:
        seconds: returns the present, in seconds since 1970.
        steady: returns seconds since some moment, by a clock that nobody sets and, if the system has one, that goes on
            while the machine sleeps.
    """

    seconds: Callable[[], float] = time.time
    steady: Callable[[], float] = _steady

    def now(self) -> datetime:
        """Return the present, in UTC."""
        return datetime.fromtimestamp(self.seconds(), timezone.utc)


MACHINE = Clock()
"""This machine's clock."""
