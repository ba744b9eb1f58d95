"""Clocks that tests set."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pytest

from hushcount.clock import MACHINE, Clock


@dataclass
class Hands:
    """What a clock shows, in seconds since 1970."""

    now: float

    @property
    def clock(self) -> Clock:
        """The clock that shows it."""
        return Clock(lambda: self.now, lambda: self.now)


def stopped(moment: datetime) -> Clock:
    """Return a clock that always shows this moment."""
    return Hands(moment.timestamp()).clock


def machine_shows(patch: pytest.MonkeyPatch, hands: Hands) -> None:
    """Let what is given no clock read this one, such as a command of the test's process."""
    patch.setitem(vars(MACHINE), "seconds", hands.clock.seconds)
