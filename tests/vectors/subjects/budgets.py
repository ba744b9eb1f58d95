"""Costs and limits in whole units, and charges one after another with how many reports may tell a value."""

from __future__ import annotations

import math
from typing import Any

from hushcount.budget import Budget, BudgetSpent, cost_of
from hushcount.errors import UsageError
from tests.vectors.subjects.campaigns import campaign
from tests.vectors.subjects.script import require_refused
from tests.vectors.subjects.signing import moment

_COSTS = ("grr", "both", "sketch", "memory", "discovery-only", "last-epoch", "target", "noise", "noise-by-day")
_LIMITS = (
    0.0, 1e-9, 9.99e-10, 5e-324, 0.1, 0.3, 0.30000000000000004, 1 / 3, 2.5, 1e6, 999999.9999999999, 1e-7,
    123.456789123,
)  # fmt: skip
_OUTSIDE = (-5e-324, -1e-9, -1.0, -1e6, -1e308, 1000001.0, 1000000.0000000001, 1e7, 1e21, 1e308)
_DAY, _LATER, _NEXT = "2026-11-23T10:00:00Z", "2026-11-23T23:59:59Z", "2026-11-24T00:00:00Z"
Step = tuple[str, str, int, str]

_STEPS: tuple[tuple[float | None, float | None, tuple[Step, ...]], ...] = (
    (None, None, (("grr", "reports", 3, _DAY), ("both", "discovery", 2, _DAY))),
    # Two of three fit in the day, none more until the next one, nor when the clock comes back to it.
    (
        2.5,
        None,
        (
            ("grr", "reports", 3, _DAY),
            ("grr", "reports", 1, _LATER),
            ("grr", "reports", 3, _NEXT),
            ("grr", "reports", 1, _DAY),
        ),
    ),
    (
        2.0,
        3.0,
        (("grr", "reports", 2, _DAY), ("grr", "reports", 2, _NEXT), ("grr", "reports", 1, "2027-01-01T00:00:00Z")),
    ),
    # A clock that is ahead uses up no day but the one that it shows.
    (
        2.0,
        None,
        (
            ("grr", "reports", 3, "2027-01-02T10:00:00Z"),
            ("grr", "reports", 1, _DAY),
            ("grr", "reports", 1, _NEXT),
            ("grr", "reports", 2, _LATER),
            ("grr", "reports", 1, "2027-01-02T10:00:00Z"),
        ),
    ),
    # The day that was charged first is forgotten with the 17th, and the one that came up again meanwhile is not.
    (
        1.0,
        None,
        (
            *(("grr", "reports", 1, f"2026-12-{day:02}T10:00:00Z") for day in (*range(1, 17), 2, 17)),
            ("grr", "reports", 1, "2026-12-02T10:00:00Z"),
            ("grr", "reports", 1, "2026-12-01T10:00:00Z"),
        ),
    ),
    # Both streams and all campaigns share one budget.
    (
        None,
        2.0,
        (
            ("both", "reports", 1, _DAY),
            ("both", "discovery", 1, _DAY),
            ("grr", "reports", 1, _DAY),
            ("both", "reports", 1, _DAY),
        ),
    ),
    # The rule is of add-remove: a client replaced costs twice that.
    (1.0, None, (("discovery-only", "discovery", 2, _DAY), ("discovery-only", "discovery", 1, _DAY))),
    # With memory the whole epoch is charged at once, or nothing is.
    (9.0, None, (("memory", "reports", 5, _DAY), ("grr", "reports", 9, _DAY))),
    (9.000000001, None, (("memory", "reports", 5, _DAY), ("grr", "reports", 1, _DAY))),
    # With noise each of the cap's reports costs its part, rounded up.
    (0.5, None, (("noise-by-day", "reports", 3, _DAY),)),
    (0.0, None, (("grr", "reports", 1, _DAY), ("both", "discovery", 1, _DAY))),
    (None, 0.999999999, (("grr", "reports", 1, _DAY), ("both", "reports", 2, _DAY))),
)


def _budget(per_day: float | None, lifetime: float | None, when_spent: str) -> Budget:
    day, ever = (math.inf if limit is None else limit for limit in (per_day, lifetime))
    return Budget(None, day, ever, when_spent)  # type: ignore[arg-type]


def _charged(per_day: float | None, lifetime: float | None, steps: tuple[Step, ...]) -> dict[str, Any]:
    budget, charges = _budget(per_day, lifetime, "other"), []
    for name, stream, number, at in steps:
        telling = budget.charge(campaign(name), stream, number, now=moment(at))  # type: ignore[arg-type]
        charges.append({"campaign": name, "stream": stream, "number": number, "at": at, "telling": telling})
    kept = budget._kept.read()
    return {
        "rule": "charge",
        "per_day": per_day,
        "lifetime": lifetime,
        "charges": charges,
        "today": str(kept.days[moment(steps[-1][3]).date().isoformat()]),
        "epsilon": str(kept.total),
        "delta": str(sum(line.delta for line in kept.lines.values())),
    }


def _cost(name: str, stream: str) -> dict[str, Any]:
    cost = cost_of(campaign(name), stream)  # type: ignore[arg-type]
    given = {"rule": "cost", "campaign": name, "stream": stream}
    return {**given, "epsilon": str(cost.epsilon), "delta": str(cost.delta), "lasting": cost.lasting}


def _limit(value: float) -> dict[str, Any]:
    # What a limit comes to is what is left of it.
    budget = _budget(None, value, "other")
    return {"rule": "limit", "value": value, "billionths": str(budget._left(budget._kept.read(), "")[1])}


def _refused() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for value in _OUTSIDE:
        require_refused(UsageError, _limit, value)
        made.append({"rule": "limit", "value": value, "reason": "limit_out_of_range"})
    for per_day, lifetime, steps in _STEPS[1:]:
        budget, charges = _budget(per_day, lifetime, "nothing"), []
        for name, stream, number, at in steps:
            charges.append({"campaign": name, "stream": stream, "number": number, "at": at})
            try:
                budget.charge(campaign(name), stream, number, now=moment(at))  # type: ignore[arg-type]
            except BudgetSpent:
                break
        else:
            continue
        # All but the last are charged, and of the last nothing is.
        made.append(
            {"rule": "charge", "per_day": per_day, "lifetime": lifetime, "charges": charges, "reason": "budget_spent"}
        )
    return made


def data() -> dict[str, Any]:
    """Return the file's content."""
    costs = [_cost(name, stream) for name in _COSTS for stream in campaign(name).streams]
    return {
        "subject": "budgets",
        "about": "Epsilon in billionths, delta in units of 1e-18: costs, limits, and charges one after another",
        "accept": [*costs, *map(_limit, _LIMITS), *(_charged(*one) for one in _STEPS)],
        "refuse": _refused(),
    }
