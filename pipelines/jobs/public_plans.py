"""What `hushcount plan` says of public axes: their price in errors, and whom a shuffled epsilon trusts there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hushcount.errors import UsageError
from hushcount.planning import planner
from hushcount.planning.planner import Plan, Task
from hushcount.planning.shuffled import ShuffledPlan, shuffled_plan


@dataclass(frozen=True)
class PublicPrice:
    """The price of public axes: standard errors in users of an item in the smallest stratum, and in all.

    Attributes:
        reports: of the smallest stratum that is shown.
        stratum_error, total_error: in it, and in all strata together.
        undivided_error: in all, if the campaign had no public axes.
    """

    reports: int
    stratum_error: float
    total_error: float
    undivided_error: float

    @classmethod
    def of(cls, task: Task, result: Plan, both: ShuffledPlan | None, reports: int, smallest: int) -> PublicPrice:
        """Return the price of a plan.

        Args:
            both: the plan of a shuffled epsilon; None: of a local one, which holds whatever is told beside it.
            reports: of all strata.
            smallest: of the smallest stratum that is shown.
        """
        name, parameters = result.chosen.mechanism, dict(result.chosen.parameters)
        stratum, total = (
            planner.candidate(name, task, result.epsilon, number, parameters) for number in (smallest, reports)
        )
        undivided = total if both is None else shuffled_plan(task, both.limits, reports).plan.chosen
        return cls(smallest, *(one.standard_error_users for one in (stratum, total, undivided)))

    def words(self, *, is_shuffled: bool) -> Iterator[str]:
        """Yield sentences; `is_shuffled`: the plan is of a shuffled epsilon."""
        if is_shuffled:
            yield (
                "with public axes the shuffled epsilon holds only if an issuer authenticates senders (campaign new "
                "--passes): otherwise invented reports could be all others of a stratum, and only the local epsilon "
                "holds"
            )
        price = (
            "as without public axes, because a local epsilon holds whatever is told beside it"
            if self.total_error == self.undivided_error
            else f"{self.undivided_error:,.4g} without public axes: there a report hides among all"
        )
        yield (
            f"public strata of {self.reports:,} reports or more: an item in one has an error of "
            f"{self.stratum_error:,.4g} users; in all of them together {self.total_error:,.4g}, {price}"
        )


def smallest_stratum(public_by: list[str] | None, min_batch: int | None, reports: int | None) -> int | None:
    """Return the fewest reports of a public stratum that is shown; None without public axes.

    UsageError: the minimum batch has no public axes, or more reports than there are.
    """
    if not public_by:
        if min_batch is not None:
            raise UsageError("--min-batch is of public strata: give --public-by too, or leave it out")
        return None
    smallest = 1000 if min_batch is None else min_batch
    if reports is not None and smallest > reports:
        raise UsageError(f"--min-batch is {smallest:,}, must be at most --reports, {reports:,}")
    return smallest
