"""What `hushcount plan` says of numbers, in their unit: the error of a mean, or the intervals of quantiles."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hushcount.campaigns.parts import NumberPart
from hushcount.errors import UsageError
from hushcount.oracles.catalogue import build
from hushcount.planning.planner import MOST_REPORTS, Candidate, Plan, Task, first_enough, make_plan
from hushcount.questions.quantiles import Quantile
from pipelines.jobs.simulate_numbers import even_quantiles


@dataclass(frozen=True)
class PlannedNumbers:
    """What answers on numbers will be like with the mechanism that a plan chose.

    Attributes:
        part: range or bins.
        standard_error: of the mean, for numbers at which it is greatest; None for bins.
        quantiles: if the numbers are even over the bins, with typical intervals of 95 %; empty for a mean.
    """

    part: NumberPart
    standard_error: float | None
    quantiles: tuple[Quantile, ...] = ()

    @classmethod
    def of(cls, part: NumberPart, chosen: Candidate, epsilon: float, reports: int) -> PlannedNumbers:
        """Return what the choice of a plan means for numbers."""
        if part.mean:
            return cls(part, mean_error(part, chosen, reports))
        mechanism = build(chosen.mechanism, epsilon, len(part.items) + 1, chosen.parameters)
        return cls(part, None, even_quantiles(mechanism, part.bins, reports).found)

    def data(self) -> dict[str, Any]:
        """Return this as JSON data; null is no end."""
        rows = [
            {"at": one.share, "bins": one.alone[1] - one.alone[0] + 1, "low": low, "high": high}
            for one in self.quantiles
            for low, high in [self.part.bins.ends(*one.alone)]
        ]
        return {"unit": self.part.unit, "standard_error": self.standard_error, "quantiles": rows}

    def words(self) -> Iterator[str]:
        """Yield sentences."""
        low, high = self.part.edges[0], self.part.edges[-1]
        if self.standard_error is not None:
            error = f"{self.standard_error:,.4g} {self.part.unit}".rstrip()
            yield (
                f"the mean of numbers from {low} to {high} has a standard error of {error} at most, whatever the "
                "numbers; numbers outside count as the nearest end"
            )
            return
        found = (
            f"for {one.share:.0%}, {one.alone[1] - one.alone[0] + 1:,} of {len(self.part.bins):,} bins, "
            f'"{self.part.bins.span(*one.alone)}"'
            for one in self.quantiles
        )
        yield f"if the numbers are even over the bins, intervals of 95 % of quantiles typically have {'; '.join(found)}"


def mean_error(part: NumberPart, chosen: Candidate, reports: int) -> float:
    """Return the standard error of a mean in the unit of the numbers, at the numbers at which it is greatest."""
    low, high = part.bins.values
    return (high - low) * chosen.standard_error_users / reports


def plan_mean(part: NumberPart, task: Task, error: float, epsilon: float | None, reports: int | None) -> Plan:
    """Return the plan of the fewest reports, or of the least epsilon, for this standard error of a mean in its unit.

    Raises:
        UsageError: the error is not reached.
    """
    if epsilon is not None:
        needed = math.ceil((mean_error(part, make_plan(task, epsilon, 1).chosen, 1) / error) ** 2)
        if needed <= MOST_REPORTS:
            return make_plan(task, epsilon, max(1, needed))
    else:
        n = reports or 1
        found = first_enough(task, n, lambda plan: mean_error(part, plan.chosen, n) <= error, halvings=12, digits=3)
        if found is not None:
            return found
    raise UsageError(
        f"want_error is {f'{error:g} {part.unit}'.rstrip()}: not reached with {reports or MOST_REPORTS:,} reports at "
        f"{'any epsilon up to 40' if epsilon is None else f'epsilon {epsilon:g}'}"
    )
