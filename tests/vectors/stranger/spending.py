"""The budget of a client."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tests.vectors.stranger.basics import require

Content = dict[str, Any]
BILLION, WHOLE_DELTA, MOST = 10**9, 10**18, 10**15
KEPT_DAYS = 16


def cost(file: Content, stream: str) -> tuple[int, int, bool]:
    """Return billionths of epsilon, units of delta, and whether it is that of a whole epoch."""
    if stream == "reports" and "noise" in file:
        parts = (Fraction(str(file["noise"][name])) / file["shuffle"]["cap"] for name in ("epsilon", "delta"))
        return *(math.ceil(part * unit) for part, unit in zip(parts, (BILLION, WHOLE_DELTA), strict=True)), False
    if stream == "reports":
        epsilon = Fraction(str(file["mechanism"]["epsilon"])) * file["memory_values"]
        return math.ceil(epsilon * BILLION), 0, file["memory"]
    part = file["discovery"]
    times = 2 if part["relation"] == "add-remove" else 1
    epsilon, delta = (Fraction(str(part[name])) * times for name in ("epsilon", "delta"))
    return math.ceil(epsilon * BILLION), math.ceil(delta * WHOLE_DELTA), False


def limit(value: float | None) -> int:
    """Return a limit in billionths."""
    require(value is None or 0 <= value <= 1_000_000, "limit_out_of_range")
    return MOST if value is None else math.floor(Fraction(str(value)) * BILLION)


@dataclass
class Budget:
    """What was charged, in whole units."""

    per_day: int
    lifetime: int
    days: dict[str, int] = field(default_factory=dict)
    today: int = 0
    epsilon: int = 0
    delta: int = 0

    def charge(self, file: Content, stream: str, number: int, at: str, silent: bool) -> int:
        """Return how many reports may tell a value."""
        # The days of the vectors are of UTC.
        self.today = self.days.pop(at[:10], 0)
        epsilon, delta, lasting = cost(file, stream)
        left = min(self.per_day - self.today, self.lifetime - self.epsilon)
        fits = left // epsilon
        telling, charges = (number if fits else 0, min(1, fits)) if lasting else (min(number, fits),) * 2
        require(telling == number or not silent, "budget_spent")
        self.today += charges * epsilon
        self.days[at[:10]] = self.today
        if len(self.days) > KEPT_DAYS:
            del self.days[next(iter(self.days))]
        self.epsilon += charges * epsilon
        self.delta += charges * delta
        return telling
