"""Whose reports a statement bounds: the one place that says it, in figures and in words."""

from __future__ import annotations

from dataclasses import dataclass

from hushcount.campaign import Campaign


@dataclass(frozen=True)
class Unit:
    """One client that sends at most so many reports of each stream.

    Attributes:
        reports: l, at least 1.
        answers: how many answers its frequency reports are at most: fewer than reports where it repeats them.
    """

    reports: int
    answers: int

    @property
    def text(self) -> str:
        """The unit, for engineers."""
        return f"one client that sends at most {self._many} a stream"

    def person(self, purpose: str = "") -> str:
        """The unit, for people; the purpose, if any, names the stream."""
        return f"any one person who sends at most {self._many}{purpose}"

    @property
    def _many(self) -> str:
        return f"{self.reports} {'report' if self.reports == 1 else 'reports'}"


def unit_of(campaign: Campaign) -> Unit:
    """Return the unit of a campaign: its shuffler forwards at most its cap of each client."""
    cap = campaign.shuffle.cap
    return Unit(cap, min(cap, campaign.memory_values) if campaign.memory else cap)
