"""The planner for a shuffled guarantee: each mechanism gets the largest local epsilon that fulfils the guarantee."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from hushcount.errors import UsageError
from hushcount.maths.figures import odds_of, rounded_up, users, within
from hushcount.maths.odds import Odds, odds_of_points
from hushcount.maths.probability import LARGEST_EPSILON, LEAST_EPSILON
from hushcount.oracles.catalogue import ANY_SEED, build, plan
from hushcount.oracles.parameters import Value
from hushcount.planning.planner import MOST_REPORTS, Candidate, Plan, Task, candidate, make_plan, ranked
from hushcount.privacy.amplification import Amplified, amplify, largest_local_epsilon
from hushcount.privacy.blanket import BlanketLaw, blanket_law
from hushcount.privacy.queries import HIGH_EPSILON

_DIGITS = 4
_SHORTEST = 0.05
"""The smallest step of the search for the best epsilon. If the number of cells is within 10 % of the best number, the
error is less than 1 % above the least error.
"""


@dataclass(frozen=True)
class Limits:
    """The most that one report may cost after shuffling, at a delta, and without shuffling.

    Args:
        shuffled: replace-one epsilon of one report among all reports of a batch, in [0.0001, 40].
        delta: delta at which the shuffled epsilon holds, in (0, 1).
        local: epsilon of one report alone, for which nobody must be trusted, in [0.0001, 40].
    """

    shuffled: float
    delta: float
    local: float = LARGEST_EPSILON

    def __post_init__(self) -> None:
        if not LEAST_EPSILON <= self.shuffled <= LARGEST_EPSILON:
            raise ValueError(
                f"shuffled_epsilon is {self.shuffled:g}, must be in [{LEAST_EPSILON}, {LARGEST_EPSILON:g}]"
            )
        if not 0.0 < self.delta < 1.0:
            raise ValueError(f"delta is {self.delta:g}, must be in (0, 1)")
        if not LEAST_EPSILON <= self.local <= LARGEST_EPSILON:
            raise ValueError(f"epsilon is {self.local:g}, must be in [{LEAST_EPSILON}, {LARGEST_EPSILON:g}]")

    @property
    def least(self) -> float:
        """The largest local epsilon that is within both limits even if shuffling amplifies nothing."""
        return min(self.shuffled, self.local)


@dataclass(frozen=True)
class Protection:
    """What one report reveals to a party that sees this report alone, and to one that sees only shuffled reports.

    Attributes:
        local_epsilon: the local epsilon in four digits, as a campaign file would have it.
        shuffled_epsilon: the shuffled epsilon at the limit's delta; equal to the local epsilon if shuffling gains less
            than 1 %.
        odds: how far the shuffled reports change the odds between two values.
    """

    local_epsilon: float
    shuffled_epsilon: float
    odds: Odds


@dataclass(frozen=True)
class ShuffledPlan:
    """The planner's answer to a task with two limits.

    Attributes:
        plan: candidates, least error first, each at its own local epsilon; `plan.epsilon` is the local epsilon of the
            chosen candidate.
        limits: the limits that the caller gave.
        protections: the protection of each candidate, in the order of the plan.
        alone: error in users of the best plan whose local epsilon is the smaller of the two limits; this would be the
            error if nobody is trusted.
    """

    plan: Plan
    limits: Limits
    protections: tuple[Protection, ...]
    alone: float

    @property
    def chosen(self) -> Protection:
        """The protection of the chosen candidate."""
        return self.protections[self.plan.candidates.index(self.plan.chosen)]

    def data(self) -> dict[str, Any]:
        """Return this answer as JSON data, without the plan."""
        return {
            "limits": asdict(self.limits),
            "chosen": asdict(self.chosen),
            "candidates": [asdict(one) for one in self.protections],
            "error_if_nobody_is_trusted": self.alone,
            "words": [*self.words()],
        }

    def words(self) -> tuple[str, ...]:
        """Return three sentences: what each of the two epsilons means for one person, and the error without trust."""
        kept, reports, error = self.chosen, self.plan.reports, self.plan.chosen.error
        at = f"with a delta of {self.limits.delta:g}"
        return (
            f"shuffled epsilon {rounded_up(kept.shuffled_epsilon)} {at}: if the shuffler is honest, what the analyzer "
            f"gets among {reports:,} honest reports, one a client, changes the odds that a person sent one value "
            f"rather than another by {within(kept.odds)}",
            f"local epsilon {rounded_up(kept.local_epsilon)}: if the shuffler lies, a report changes these odds by "
            f"{odds_of(kept.local_epsilon)}{_telling(kept.local_epsilon)}",
            f"error {users(error)} users, {error / reports:.2g} of all reports: {_parts(self.plan.chosen)}; with a "
            f"local epsilon of {self.limits.least:g}, which needs no trust in the shuffler, it would be "
            f"{users(self.alone)} users",
        )


def _parts(chosen: Candidate) -> str:
    """Return the two parts whose squares add up to the square of an error."""
    noise = f"a standard error of {users(chosen.standard_error_users)}"
    if not chosen.collision_error_users:
        return f"{noise}, and no collisions"
    return f"{noise}, and at most {users(chosen.collision_error_users)} of collisions"


def _telling(epsilon: float) -> str:
    if epsilon <= HIGH_EPSILON:
        return ""
    return ": it practically reveals the value to anyone who opens it and knows its sender"


def shuffled_plan(task: Task, limits: Limits, reports: int) -> ShuffledPlan:
    """Return the plan of least error within both limits: each mechanism at its best parameters, then ranked.

    The larger the local epsilon, the smaller the error. So for each mechanism the planner searches for the largest
    local epsilon whose shuffled epsilon, for `reports` reports, one a client, is within the limit. The planner rounds
    this local epsilon down to four digits and checks the rounded value with `amplification.amplify`. Privacy statements
    are computed by `amplify` too, so a statement for any candidate would also show a shuffled epsilon within the limit.

    Raises:
        UsageError: no mechanism is possible; the message has the reason against each mechanism.
        ValueError: `reports` is out of its range.
    """
    if not 1 <= reports <= MOST_REPORTS:
        raise ValueError(f"reports is {reports}, must be in 1..{MOST_REPORTS}")
    found: dict[str, tuple[Candidate, Protection]] = {}
    left_out: dict[str, str] = {}
    near = limits.local
    if near > limits.shuffled:
        near = min(near, largest_local_epsilon(limits.shuffled, reports, limits.delta))
    for name in task.mechanisms:
        try:
            found[name] = _within(name, task, limits, reports, near)
        except UsageError as error:
            left_out[name] = str(error)
    best = ranked([one for one, _ in found.values()], left_out)
    made = Plan(limits.local, reports, best, left_out)
    made = replace(made, epsilon=found[made.chosen.mechanism][1].local_epsilon)
    alone = make_plan(replace(task, mechanisms=tuple(found)), limits.least, reports).chosen.error
    return ShuffledPlan(made, limits, tuple(found[one.mechanism][1] for one in best), alone)


@dataclass(frozen=True)
class _Choice:
    """Parameters at the largest local epsilon within both limits; error: infinite if a task's limit is exceeded."""

    error: float
    epsilon: float
    parameters: dict[str, Value]


def _within(name: str, task: Task, limits: Limits, reports: int, near: float) -> tuple[Candidate, Protection]:
    """Return the candidate of least error for the mechanism `name` within both limits, and the candidate's protection.

    `near` is a local epsilon within both limits for every mechanism, so the largest local epsilon of this mechanism is
    at least `near`.
    """
    # This call raises UsageError if the mechanism is not possible at all, before the search begins.
    candidate(name, task, limits.least, reports)
    best = _best(name, task, limits, reports, near)
    for epsilon in (best.epsilon, limits.least):
        gained = amplify(build(name, epsilon, task.domain, best.parameters), reports, limits.delta)
        if gained.epsilon <= limits.shuffled:
            return candidate(name, task, epsilon, reports, best.parameters), protection(epsilon, gained)
    raise UsageError(f"no local epsilon keeps the shuffled epsilon at most {limits.shuffled:g}")


def _best(name: str, task: Task, limits: Limits, reports: int, near: float) -> _Choice:
    """Return the parameters of least error, of all parameters that are best for some local epsilon.

    Parameters that are best for a fixed local epsilon need not be best for a fixed shuffled epsilon, because with fewer
    cells in a report, or more buckets, shuffling may permit a larger local epsilon. The search begins at `near` and
    first goes in steps that double the odds, which about halve the number of cells, and then in shorter steps.
    """
    known: dict[tuple[tuple[str, Value], ...], _Choice] = {}

    def at(planned: float, most: float) -> _Choice:
        planned = min(max(planned, limits.least), LARGEST_EPSILON)
        parameters = plan(name, planned, task.domain, {}, task.objective, ANY_SEED)
        key = tuple(parameters.items())
        if key not in known:
            known[key] = _largest(name, task, limits, reports, parameters, (near, most))
        return known[key]

    best, planned, step = at(near, near), near, math.log(2.0)
    while math.isinf(best.error) and planned > limits.least:
        # The loop ends, because the parameters for the least local epsilon are within the limits of the task.
        planned = max(planned - step, limits.least)
        best = at(planned, best.epsilon)
    while step > _SHORTEST:
        for other in (planned + step, planned - step):
            found = at(other, best.epsilon)
            if found.error < best.error:
                best, planned = found, other
                break
        else:
            step /= 2.0
    return best


def _largest(
    name: str, task: Task, limits: Limits, reports: int, parameters: dict[str, Value], near: tuple[float, float]
) -> _Choice:
    """Return a mechanism at its largest local epsilon; `near`: one that all mechanisms may have, and a guess."""

    def law_at(epsilon: float) -> BlanketLaw:
        return blanket_law(build(name, epsilon, task.domain, parameters))

    most, begin = near
    if limits.local > most:
        most = min(limits.local, largest_local_epsilon(limits.shuffled, reports, limits.delta, law_at, begin))
    epsilon = max(_rounded_down(most), limits.least)
    try:
        error = candidate(name, task, epsilon, reports, parameters).error
    except UsageError:
        error = math.inf
    return _Choice(error, epsilon, parameters)


def _rounded_down(most: float) -> float:
    """Return the largest number with four significant digits that is at most `most`."""
    scale = 10.0 ** (_DIGITS - 1 - math.floor(math.log10(most)))
    return math.floor(most * scale) / scale


def protection(epsilon: float, gained: Amplified) -> Protection:
    """Return what one report at a local epsilon reveals, from the amplification by shuffling."""
    odds = Odds(gained.local, 0.0)
    if gained.bound is not None:
        odds = odds_of_points(gained.points(), gained.delta)
    return Protection(epsilon, gained.epsilon, odds)
