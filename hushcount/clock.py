"""The only module that reads the machine's clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone


def _steady() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass(frozen=True)
class Clock:
    """The clock for all decisions that depend on time: `MACHINE`, or in a test a clock whose time the test sets.

    Attributes:
        seconds: returns the present time, in seconds since 1970.
        steady: returns seconds since a fixed moment, by a clock that nobody can set. If the system has a clock that
            also counts while the machine sleeps, that clock is used.
    """

    seconds: Callable[[], float] = time.time
    steady: Callable[[], float] = _steady

    def now(self) -> datetime:
        """Return the present time, in UTC."""
        return datetime.fromtimestamp(self.seconds(), timezone.utc)


MACHINE = Clock()
"""This machine's clock."""
