"""A client's budget: the most epsilon that the client's reports may cost, over all campaigns, epochs and streams.

Campaign, policy and allowance bound the cost of one window or epoch. The budget bounds the sum of all costs for the
person who holds the device. Each report is charged to the budget before it is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.clock import MACHINE
from hushcount.collection.windows import MOST_KEPT, last_changed
from hushcount.errors import HushcountError, UsageError
from hushcount.formats.client_files import KeptValue
from hushcount.formats.models import Part, text_of
from hushcount.spent import Kind, Spent, StreamSpent

_BILLION = 10**9
_WHOLE_DELTA = 10**18
# Floats represent every integer up to this number exactly. If the app sets no limit, this number is the limit: epsilon
# 1e6.
_MOST = 10**15
_Count = Annotated[int, Field(ge=0)]
_Day = Annotated[str, text_of(r"^\d{4}-\d\d-\d\d$", "must be a day, as in 2026-11-23")]


class BudgetSpent(HushcountError):
    """Too little budget is left for a report, and the app set `when_spent="nothing"`, so no report is made."""


class OptedOut(HushcountError):
    """The person opted out, so no report is made until `Budget.opt_in` is called."""


class _Line(Part):
    """What the reports of one kind of a campaign cost: `epsilon` in billionths, and `delta` in units of 1e-18."""

    reports: _Count = 0
    blank: _Count = 0
    epsilon: _Count = 0
    delta: _Count = 0


class _Charged(Part):
    """All charges: a line for each "campaign/kind", and the epsilon of the last days that the clock showed."""

    format: Literal[1] = 1
    days: dict[_Day, _Count] = Field(default_factory=dict, max_length=MOST_KEPT)
    opted_out: bool = False
    lines: dict[str, _Line] = Field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(line.epsilon for line in self.lines.values())


@dataclass(frozen=True)
class Cost:
    """What one charge costs, as epsilon and delta of replace-one differential privacy.

    Attributes:
        epsilon: epsilon in billionths, rounded up.
        delta: delta in units of 1e-18, rounded up.
        lasting: whether the cost covers all reports of the epoch, because all these reports repeat remembered answers.
    """

    epsilon: int
    delta: int
    lasting: bool


def cost_of(campaign: Campaign, stream: Stream) -> Cost:
    """Return what a report of the stream costs; the cost does not depend on the report's value.

    A frequency report costs the mechanism's epsilon. If clients remember their answers, all frequency reports of an
    epoch together cost `memory_values` times this epsilon. With noise of the mixes, all frequency reports of a window
    cost the noise's (epsilon, delta), so each of them costs that divided by the cap. A discovery report costs the
    (epsilon, delta) of the keep rule, converted to replace-one. All discovery reports of a client in a window, up to
    the cap, could share the cost of one report. Nevertheless each discovery report is charged, because the operator
    chooses the length of a window.
    Each number is taken as the decimal number in the campaign file, so that 0.1 is exactly a tenth.
    """
    if stream == "reports":
        campaign.require_frequency()
        noise, each = campaign.noise, Fraction(1, campaign.shuffle.cap)
        if noise is not None:
            return Cost(_units(noise.epsilon, _BILLION, each), _units(noise.delta, _WHOLE_DELTA, each), False)
        part = campaign.mechanism
        epsilon = 0.0 if part is None else part.epsilon
        return Cost(_units(epsilon, _BILLION, campaign.memory_values), 0, campaign.memory)
    rule = campaign.require_keep_rule()
    steps = rule.steps_replaced
    return Cost(_units(rule.epsilon, _BILLION, steps), _units(rule.delta, _WHOLE_DELTA, steps), False)


@dataclass(frozen=True, eq=False)
class Budget:
    """Bounds the total cost of all reports of one client; threads may share this object.

    Once the budget is spent, frequency reports encode "other" and discovery reports are blanks, whatever the values
    are, because sending no report would reveal that the budget is spent. Neither a charge nor the moment when the
    budget is spent depends on a value. A client with a memory is charged for an epoch when it draws its first answer,
    and repeats its answers even when no budget is left.

    Days begin at midnight UTC. Each day has its own limit, in whatever order the clock shows the days, so a clock that
    was ahead uses up only the limit of the day that it showed. The budget keeps the charges of the last 16 days, so any
    other day to which somebody sets the clock has its whole limit again. `lifetime` bounds what can be charged by
    setting the clock.

    Args:
        path: file of mode 0600 that keeps the charges when the process ends. The first report makes this file, and
            beside it a file `.lock`, if the system can lock files. The file contains campaign ids and numbers, but no
            values. A damaged file is refused: every charge raises FormatError. The budget does not notice if somebody
            removes the file (the budget then begins anew) or puts back an old copy (later charges are then forgotten).
            None: the charges are lost when the process ends, and a forked process continues with a copy of the charges.
        per_day: most epsilon that may be charged in a day, rounded down to billionths.
        lifetime: most epsilon that may be charged in total, rounded down to billionths.
        when_spent: "other": reports that reveal nothing are made; "nothing": a report raises BudgetSpent. An app that
            sends nothing after BudgetSpent reveals to anyone who sees its requests that the budget is spent, and
            thereby how much the client sent in other campaigns.

    Raises:
        UsageError: an argument is out of its range.

    Privacy: all reports that clients make under the same budget are together (`Spent.epsilon`, `Spent.delta`)-private,
        replace-one; both numbers are sums over the reports. For frequency reports this guarantee holds even if all
        parties collude; if the mixes add the noise, as long as one of shuffler and auxiliary server keeps to its role;
        for discovery reports, as long as the auxiliary server and the analyzer do not collude.
    """

    path: Path | None = None
    per_day: float = math.inf
    lifetime: float = math.inf
    when_spent: Literal["other", "nothing"] = "other"
    _limits: tuple[int, int] = field(init=False, repr=False)
    _kept: KeptValue[_Charged] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, limit in (("per_day", self.per_day), ("lifetime", self.lifetime)):
            number = isinstance(limit, int | float) and not isinstance(limit, bool)
            if not (number and (0 <= limit <= _MOST // _BILLION or limit == math.inf)):
                raise UsageError(f"{name} is {limit!r}, must be an epsilon in 0..{_MOST // _BILLION:,}, or infinity")
        if self.when_spent not in ("other", "nothing"):
            raise UsageError(f"when_spent is {self.when_spent!r}, must be 'other' or 'nothing'")
        object.__setattr__(self, "_limits", (_limit(self.per_day), _limit(self.lifetime)))
        cure = "restore it; removing it would renew the budget, although sent reports cannot be taken back"
        object.__setattr__(self, "_kept", KeptValue(_Charged(), self.path, "budget", cure))

    def charge(
        self,
        campaign: Campaign,
        stream: Stream,
        number: int,
        *,
        repeats: bool = False,
        also: Callable[[], None] = lambda: None,
        now: datetime | None = None,
    ) -> int:
        """Charge `number` reports permanently, before they are made; return how many of them may carry values.

        The first reports, as many as the returned number, carry their values. The other reports must reveal nothing,
        and are counted as blank. If reports repeat answers, either all reports carry values or no report does.

        Args:
            repeats: whether the client already has an answer for this epoch, which was charged when the answer was
                drawn.
            also: function that is called before the charge, if the charge seems possible; if `also` raises an error,
                nothing is charged.

        Raises:
            BudgetSpent: the budget does not suffice for all `number` reports, and `when_spent` is "nothing". Nothing is
                charged.
            OptedOut: the person opted out.
            HushcountError: the budget's file is damaged, or cannot be read or written; the caller must then make no
                report.
        """
        cost = cost_of(campaign, stream)

        def step(charged: _Charged) -> tuple[_Charged, int]:
            if charged.opted_out:
                raise OptedOut(f"the person opted out: campaign {campaign.id} gets no report until budget.opt_in()")
            today = _day(now)
            left = min(self._left(charged, today))
            if not cost.lasting:
                telling = charges = min(number, left // cost.epsilon)
            else:
                first = 1 if number and not repeats else 0
                fits = first * cost.epsilon <= left
                telling, charges = (number, first) if fits else (0, 0)
            if telling < number and self.when_spent == "nothing":
                raise BudgetSpent(self._refusal(campaign, stream, number, cost, charged, today))
            key = f"{campaign.id}/{_kind(campaign, stream)}"
            old = charged.lines.get(key, _Line())
            line = _Line(
                reports=old.reports + telling,
                blank=old.blank + number - telling,
                epsilon=old.epsilon + charges * cost.epsilon,
                delta=min(_WHOLE_DELTA, old.delta + charges * cost.delta),
            )
            days = last_changed(charged.days, today, charged.days.get(today, 0) + charges * cost.epsilon)
            return charged.model_copy(update={"days": days, "lines": {**charged.lines, key: line}}), telling

        # First try the charge without the lock, only to raise errors. `also` takes other locks, so it may not run while
        # the lock of this file is held.
        step(self._kept.read())
        also()
        return self._kept.change(step)

    def spent(self, now: datetime | None = None) -> Spent:
        """Return what was spent and what is left; HushcountError, as in `charge`: the file cannot be read."""
        charged, today = self._kept.read(), _day(now)
        left_today, left = self._left(charged, today)
        streams = [_of_line(key, line) for key, line in sorted(charged.lines.items())]
        delta = sum(line.delta for line in charged.lines.values())
        return Spent(
            streams=tuple(streams),
            day=date.fromisoformat(today),
            today=charged.days.get(today, 0) / _BILLION,
            epsilon=charged.total / _BILLION,
            delta=min(1.0, delta / _WHOLE_DELTA),
            per_day=float(self.per_day),
            lifetime=float(self.lifetime),
            left_today=math.inf if math.isinf(min(self.per_day, self.lifetime)) else min(left_today, left) / _BILLION,
            left=math.inf if math.isinf(self.lifetime) else left / _BILLION,
            silent=self.when_spent == "nothing",
            opted_out=charged.opted_out,
        )

    @property
    def opted_out(self) -> bool:
        """Whether the person opted out. Apps must check `opted_out` before they send reports that were made earlier."""
        return self._kept.read().opted_out

    def opt_out(self) -> None:
        """Permit no more reports, in all processes that use the budget's file; without a file, in this process only."""
        self._opt(out=True)

    def opt_in(self) -> None:
        """Permit reports again. The charges before the opt-out still count."""
        self._opt(out=False)

    def _opt(self, *, out: bool) -> None:
        self._kept.change(lambda charged: (charged.model_copy(update={"opted_out": out}), None))

    def _left(self, charged: _Charged, today: str) -> tuple[int, int]:
        """Return how many billionths are left for the day and for the lifetime; 0 if more was spent than the limit."""
        per_day, lifetime = self._limits
        return max(0, per_day - charged.days.get(today, 0)), max(0, lifetime - charged.total)

    def _refusal(self, campaign: Campaign, stream: Stream, number: int, cost: Cost, charged: _Charged, day: str) -> str:
        today, ever = self._left(charged, day)
        where = f"on {day}: wait for the next day, UTC" if today < ever else "for the lifetime, which no day renews"
        return (
            f"the budget does not allow {number} more {stream} of campaign {campaign.id} at epsilon "
            f"{cost.epsilon / _BILLION:.9g} {'an epoch' if cost.lasting else 'each'}: "
            f"epsilon {min(today, ever) / _BILLION:.9g} is left {where}"
        )


def _day(now: datetime | None) -> str:
    """Return the UTC day of the moment `now`, by default the present day."""
    return (now or MACHINE.now()).astimezone(timezone.utc).date().isoformat()


def _kind(campaign: Campaign, stream: Stream) -> Kind:
    return "sealed" if stream == "reports" and campaign.noise is not None else stream


@lru_cache
def _units(value: float, unit: int, times: int | Fraction) -> int:
    """Return `times` the decimal number as which the float `value` is printed, in whole units, rounded up."""
    return math.ceil(Fraction(repr(float(value))) * unit * times)


def _limit(value: float) -> int:
    """Return a limit on epsilon in billionths, rounded down."""
    return _MOST if math.isinf(value) else math.floor(Fraction(repr(float(value))) * _BILLION)


def _of_line(key: str, line: _Line) -> StreamSpent:
    campaign, _, name = key.rpartition("/")
    kind: Kind = "reports" if name == "reports" else "sealed" if name == "sealed" else "discovery"
    return StreamSpent(campaign, kind, line.reports, line.blank, line.epsilon / _BILLION, line.delta / _WHOLE_DELTA)
