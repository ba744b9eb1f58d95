"""Whose reports a statement bounds: the one place that says it, in figures and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hushcount.campaign import Campaign
from hushcount.senders import Authentication, tells_clients_apart


@dataclass(frozen=True)
class Unit:
    """One client that sends at most so many reports of each stream, or, where none is told from another, one report.

    Attributes:
        reports: l, at least 1.
        answers: how many answers its frequency reports are at most: fewer than reports where it repeats them.
        per: "client", or "report": nothing then held a client to its cap.
    """

    reports: int
    answers: int
    per: Literal["client", "report"] = "client"

    @property
    def text(self) -> str:
        """The unit, for engineers."""
        if self.per == "report":
            return "one report of a stream"
        return f"one client that sends at most {self._many} a stream"

    def person(self, purpose: str = "") -> str:
        """The unit, for people; the purpose, if any, names the stream."""
        held = "" if self.per == "client" else ", to which nobody held people,"
        return f"any one person who sends at most {self._many}{purpose}{held}"

    @property
    def enough(self) -> str:
        """Who reveals a value by being many, for people."""
        return "enough people sent it" if self.per == "client" else "enough reports hold it"

    @property
    def _many(self) -> str:
        return f"{self.reports} {'report' if self.reports == 1 else 'reports'}"


def unit_of(campaign: Campaign, authentication: Authentication) -> Unit:
    """Return the unit of a campaign: its shuffler forwards at most its cap of each client that is told from others."""
    if not tells_clients_apart(authentication):
        return Unit(1, 1, "report")
    cap = campaign.shuffle.cap
    return Unit(cap, min(cap, campaign.memory_values) if campaign.memory else cap)
