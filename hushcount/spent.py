"""What a client's reports have cost, as typed numbers and as sentences that an app can show to the device's holder."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from hushcount.campaigns.campaign import Stream
from hushcount.maths.figures import rounded_up, within
from hushcount.maths.odds import odds_of_pair

Kind = Stream | Literal["sealed"]
"""What is charged apart: frequency reports that are randomised, discovery reports, and frequency reports that are
sealed and not randomised, because the mixes add noise."""


@dataclass(frozen=True)
class StreamSpent:
    """What the reports of one kind of a campaign cost, over all epochs of the campaign.

    Attributes:
        reports: number of reports that were charged, or that repeat a charged answer.
        blank: number of reports that carry no value because the budget was spent.
        epsilon, delta: sums of the costs of the reports that were charged, replace-one.
    """

    campaign: str
    stream: Kind
    reports: int
    blank: int
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Spent:
    """What all reports under one budget cost, and what is left of the budget.

    Attributes:
        streams: what was spent, by campaign and kind.
        day: the UTC day that the device's clock shows.
        today: epsilon that was charged on `day`.
        epsilon, delta: sums of all charges; all reports that were sent are together (epsilon, delta)-private,
            replace-one.
        per_day, lifetime: the limits on epsilon; infinity means that there is no limit.
        left_today, left: epsilon that may still be charged on `day`, and in total.
        silent: whether a client whose budget is spent makes no reports, instead of reports that reveal nothing.
        opted_out: whether the person opted out, so that no report is made until the person opts in.
    """

    streams: tuple[StreamSpent, ...]
    day: date
    today: float
    epsilon: float
    delta: float
    per_day: float
    lifetime: float
    left_today: float
    left: float
    silent: bool
    opted_out: bool

    def words(self) -> tuple[str, ...]:
        """Return sentences for the person; each is true by itself, and no figure is rounded to look more private."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[str]:
        if self.opted_out:
            yield "You opted out: this device makes no report until you opt in again."
        for each in self.streams:
            yield from _of_stream(each)
        if self.epsilon:
            yield (
                "All reports together change the odds that you sent one value rather than another by "
                f"{within(odds_of_pair(self.epsilon, self.delta))}, {self._condition()}."
            )
        else:
            yield "No report of this device has told anything of you yet."
        yield _limit(f"On {self.day} (UTC)", "a day", self.today, self.per_day, self.left_today)
        yield _limit("Altogether", "the lifetime of this app", self.epsilon, self.lifetime, self.left)
        if math.isfinite(min(self.per_day, self.lifetime)):
            # Reports that repeat an answer may continue, because the answer was already charged.
            instead = "that tells more of you is made" if self.silent else "tells more of you, although some are sent"
            yield f"When too little is left for a report, no report {instead}."

    def _condition(self) -> str:
        kinds = {each.stream for each in self.streams if each.epsilon}
        if "discovery" in kinds:
            return "as long as the parties that handle them keep to their roles"
        if "sealed" in kinds:
            return "as long as one of the two parties that mix them keeps to its role"
        return "even if all parties that handle them broke their promises together"


_KINDS = {
    "reports": ("blurred", "", "to count values"),
    "sealed": ("sealed", ", not randomised,", "to count values"),
    "discovery": ("sealed", "", "to find values that are on no list"),
}


def _of_stream(spent: StreamSpent) -> Iterator[str]:
    kind, more, purpose = _KINDS[spent.stream]
    delta = f" and delta {rounded_up(spent.delta)}" if spent.delta else ""
    if spent.reports:
        yield (
            f"Campaign {spent.campaign}: this device made {_number(spent.reports, f'{kind} report')}{more} {purpose}, "
            f"for epsilon {_epsilon(spent.epsilon)}{delta}."
        )
    if spent.blank:
        yield (
            f"Campaign {spent.campaign}: {_number(spent.blank, 'report')} {purpose} told nothing of you, because the "
            "budget was spent."
        )


def _limit(when: str, span: str, spent: float, limit: float, left: float) -> str:
    if math.isinf(limit):
        return f"{when} epsilon {_epsilon(spent)} was spent; no limit is set for {span}."
    return f"{when} epsilon {_epsilon(spent)} of {_epsilon(limit)} was spent, and {_epsilon(left)} is left."


def _number(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _epsilon(value: float) -> str:
    """Return the exact decimal digits of `value`, which is a whole number of billionths."""
    return f"{value:,.9f}".rstrip("0").rstrip(".")
