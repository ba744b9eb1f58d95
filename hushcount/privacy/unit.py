"""The unit of a statement, one client or one report, and the number of reports of the unit, in figures and in words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.discovery.keep_rules import KeepRule
from hushcount.errors import UsageError
from hushcount.senders import Senders


@dataclass(frozen=True)
class Unit:
    """One client that sends at most `reports` of a stream; or one report, if clients cannot be told apart.

    Attributes:
        cap: reports in one collector window: a window at one collector, which has a key of client tokens of its own.
        answers: the most separate answers among its frequency reports: fewer than `reports` if the client repeats
            answers.
        per: "client", or "report" if nothing enforces the cap.
        allotments: the number of collector windows, at least 1.
    """

    cap: int
    answers: int
    per: Literal["client", "report"] = "client"
    allotments: int = 1

    @property
    def reports(self) -> int:
        """l, the number of reports in all: the cap times the number of collector windows."""
        return self.cap * self.allotments

    @property
    def text(self) -> str:
        """The unit, for engineers."""
        if self.per == "report":
            return "one report of a stream"
        windows = f" in each of {self.allotments:,} collector windows" if self.allotments > 1 else ""
        return f"one client that sends at most {_many(self.cap)} a stream{windows}"

    @property
    def counted(self) -> str:
        """The unit of a plain count of these reports: "clients" if each client has at most one, else "reports"."""
        return "clients" if self.per == "client" and self.reports == 1 else "reports"

    @property
    def meaning(self) -> str:
        """A sentence that says how many of these reports one client may have sent."""
        if self.per == "report":
            return "Nothing limits how many reports one client sent."
        if self.reports == 1:
            return "Each client has one report at most."
        return f"One client may have sent up to {_many(self.reports)} of a value, so fewer clients hold it."

    def person(self, purpose: str = "") -> str:
        """The unit, for people; the purpose, if any, names the stream."""
        windows = f" in each of {self.allotments:,} windows at a collector" if self.allotments > 1 else ""
        limit = "" if self.per == "client" else " (nothing enforces this limit)"
        return f"any one person who sends at most {_many(self.cap)}{purpose}{windows}{limit}"


@dataclass(frozen=True)
class Units:
    """The units of both streams of one release."""

    reports: Unit
    discovery: Unit

    @property
    def text(self) -> str:
        """Both, for engineers."""
        counted, found = self.reports.reports, self.discovery.reports
        if counted == found:
            return self.reports.text
        return f"one client that sends at most {_many(counted, 'frequency ')} and {_many(found, 'discovery ')}"

    def person(self) -> str:
        """Both, for people."""
        counted, found = self.reports.reports, self.discovery.reports
        if counted == found:
            return self.reports.person(" of each kind")
        return f"any one person who sends at most {_many(counted)} to be counted and {found:,} for discovery"


def _many(number: int, kind: str = "") -> str:
    return f"{number:,} {kind}{'report' if number == 1 else 'reports'}"


def unit_of(campaign: Campaign, senders: Senders, stream: Stream) -> Unit:
    """Return the unit of a stream: the shuffler forwards at most the cap under each key of client tokens."""
    if not senders.told_apart:
        return Unit(1, 1, "report")
    cap, allotments = campaign.shuffle.cap, senders.allotments(stream)
    most = cap * allotments
    return Unit(cap, min(most, campaign.memory_values) if campaign.memory else most, "client", allotments)


def repeats_of(campaign: Campaign, senders: Senders) -> int:
    """Return the most reports of a batch that may repeat one answer of a client; 1 if each report is drawn afresh.

    Clients obey the cap by themselves, also if nobody enforces the cap.
    """
    return campaign.shuffle.cap * senders.reports if campaign.memory else 1


def rule_of(campaign: Campaign, senders: Senders) -> KeepRule:
    """Return the keep rule of a batch, with the campaign's epsilon and delta for all reports of a client in the batch.

    UsageError if the campaign has no discovery, or if no keep rule fits so many reports of one client.
    """
    rule, unit = campaign.require_keep_rule(), unit_of(campaign, senders, "discovery")
    if unit.reports <= rule.cap:
        return rule
    try:
        return replace(rule, cap=unit.reports)
    except ValueError as error:
        raise UsageError(
            f"no value of this batch can be revealed: a client may have {unit.reports:,} reports in it, the cap of "
            f"{unit.cap:,} in each of {unit.allotments:,} collector windows, and no keep rule has epsilon "
            f"{rule.epsilon:g} and delta {rule.delta:g} for so many ({error}); let fewer windows share a batch (grace "
            "under [windows]), run fewer collectors, or publish an epoch with a larger discovery epsilon"
        ) from None
