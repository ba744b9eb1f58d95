"""The planner: ranks frequency oracles at their best parameters by exact error, and plans for a wanted error."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from hushcount.campaigns.campaign import bound_bytes
from hushcount.errors import UsageError
from hushcount.maths.objectives import Objective
from hushcount.maths.probability import LARGEST_EPSILON, LEAST_EPSILON
from hushcount.oracles.catalogue import ANY_SEED, CATALOGUE, build, frequency_oracle, plan
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.parameters import Value
from hushcount.oracles.power import detection_power, reports_to_detect

ASKED = 1000
"""Number of items that analysts are assumed to ask for in an open domain; the cost of decoding depends on this number.
"""
MOST_REPORTS = 10**12
_WHOLE_REPORT = 1 << 18
_SHARED = "in a pool or a block, detection depends on what all others hold: use hushcount simulate with real values"
NEGLIGIBLE = 1e-3
"""A relative difference of errors. Among candidates whose error is at most this much above the least error, the
candidate with the shortest report is chosen.
"""


@dataclass(frozen=True)
class Task:
    """A question to the planner: which of `mechanisms` has the least error for an objective, within the limits?

    `domain` is the number of items that the mechanism tells apart; None: an open domain. The limits bound the bytes of
    a plain report and the memory of a tally.
    """

    domain: int | None
    objective: Objective = field(default_factory=Objective)
    max_report_bytes: int | None = None
    max_tally_mib: float | None = None
    mechanisms: tuple[str, ...] = tuple(CATALOGUE)


@dataclass(frozen=True)
class Candidate:
    """One frequency oracle at its best parameters.

    Attributes:
        mechanism, parameters: as in a campaign file, but without the seed of a pool, which is drawn for each campaign.
        p, q: probability that a report supports its own cell, and that it supports another given cell.
        variance_users2: exact variance that randomisation adds to the objective's count, in users squared; for a mean,
            the greatest one of the sum of places in the range;
            standard_error_users: the square root of this variance.
        collision_error_users: the largest bias that a fixed pool can cause; it occurs if all other clients hold one
            item.
        report_bits: information in a plain report; report_bytes: length of a plain report; sealed_bytes: length of a
            sealed report, as it is sent.
        tally_mib: memory of the tally.
        decode_operations, decode_seconds: cost of computing the tally and the estimates in one thread.
        epsilon_spent: exact epsilon of the mechanism with its rounded probabilities.
    """

    mechanism: str
    parameters: dict[str, Value]
    p: float
    q: float
    variance_users2: float
    standard_error_users: float
    collision_error_users: float
    report_bits: float
    report_bytes: int
    sealed_bytes: int
    tally_mib: float
    decode_operations: float
    decode_seconds: float
    epsilon_spent: float

    @property
    def error(self) -> float:
        """The error that ranks candidates, in users: the root of squared noise plus squared largest collision error."""
        return math.hypot(self.standard_error_users, self.collision_error_users)


@dataclass(frozen=True)
class Plan:
    """An answer of the planner: candidates, least error first, and why each other mechanism was left out."""

    epsilon: float
    reports: int
    candidates: tuple[Candidate, ...]
    left_out: dict[str, str]

    @property
    def chosen(self) -> Candidate:
        """The candidate with the shortest report, then the fastest decoding, within NEGLIGIBLE of the least error."""
        limit = self.candidates[0].error * (1.0 + NEGLIGIBLE)
        good = [candidate for candidate in self.candidates if candidate.error <= limit]
        return min(good, key=lambda one: (one.report_bytes, one.decode_seconds, one.error))

    @property
    def reason(self) -> str:
        """Why this candidate was chosen, in one sentence."""
        best, least = self.chosen, self.candidates[0]
        if len(self.candidates) == 1:
            return f"{best.mechanism} is the only possible mechanism"
        if best is least:
            second = self.candidates[1]
            return f"{best.mechanism} has the least error: {second.mechanism}'s error is {_excess(second, best)} larger"
        return (
            f"{best.mechanism} has an error {_excess(best, least)} above the least error, which {least.mechanism} has, "
            f"but a report has {best.report_bytes} bytes instead of {least.report_bytes}, and decoding takes "
            f"{best.decode_seconds:.2g} s instead of {least.decode_seconds:.2g} s"
        )


def _excess(one: Candidate, other: Candidate) -> str:
    # At the largest epsilons, an error may be rounded to 0 in floating point.
    excess = one.error - other.error
    return "less than 0.001%" if excess < 1e-5 * other.error or not other.error else f"{excess / other.error:.3%}"


def make_plan(task: Task, epsilon: float, reports: int) -> Plan:
    """Plan every frequency oracle, leave out oracles beyond the task's limits, and rank the oracles within the limits.

    UsageError if no oracle is possible, with the reason against each; ValueError if epsilon or reports is out of range.
    """
    if not 1 <= reports <= MOST_REPORTS:
        raise ValueError(f"reports is {reports}, must be in 1..{MOST_REPORTS}")
    found, left_out = [], {}
    for name in task.mechanisms:
        try:
            found.append(candidate(name, task, epsilon, reports))
        except UsageError as error:
            left_out[name] = str(error)
    return Plan(epsilon, reports, ranked(found, left_out), left_out)


def ranked(found: list[Candidate], left_out: dict[str, str]) -> tuple[Candidate, ...]:
    """Return candidates, least error first; UsageError if there are none, with the reason against each mechanism."""
    if not found:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise UsageError(f"no mechanism is possible: {reasons}")
    # Of candidates with equal error, the shorter report comes first; of equally long reports, the faster decoding.
    return tuple(sorted(found, key=lambda one: (float(f"{one.error:.9e}"), one.report_bytes, one.decode_seconds)))


def least_epsilon(task: Task, reports: int, error: float) -> Plan:
    """Return the plan of the least epsilon, in four digits, with an error of at most `error` users, or UsageError."""
    found = first_enough(task, reports, lambda plan: plan.chosen.error <= error, halvings=24, digits=4)
    if found is None:
        raise UsageError(f"want_error is {error:g} users: not reached with {reports} reports at any epsilon up to 40")
    return found


def first_enough(
    task: Task, reports: int, enough: Callable[[Plan], bool], *, halvings: int, digits: int
) -> Plan | None:
    """Return the plan of the least epsilon, at most 40 and in `digits` digits, that `enough` accepts, or None."""
    if not enough(make_plan(task, LARGEST_EPSILON, reports)):
        return None
    low, high = math.log(LEAST_EPSILON), math.log(LARGEST_EPSILON)
    for _ in range(halvings):
        middle = (low + high) / 2.0
        low, high = (low, middle) if enough(make_plan(task, math.exp(middle), reports)) else (middle, high)
    scale = 10.0 ** (digits - 1 - math.floor(high / math.log(10.0)))
    # Rounding epsilon up may change the choice among equally good candidates, so epsilon is raised further until
    # `enough` accepts the plan.
    rounded = (min(LARGEST_EPSILON, step / scale) for step in count(math.ceil(math.exp(high) * scale)))
    return next(found for epsilon in rounded if enough(found := make_plan(task, epsilon, reports)))


def most_reports(task: Task, epsilon: float, error: float) -> Plan:
    """Return the plan of the largest number of reports at which the chosen candidate's error is at most `error` users.

    The error of a count grows with the square root of the number of reports. The error of a share falls with more
    reports, so it does not limit their number. UsageError if the error is larger than `error` even with a single
    report.
    """

    def enough(reports: int) -> bool:
        return make_plan(task, epsilon, reports).chosen.error <= error

    if not enough(1):
        raise UsageError(f"want_error is {error:g} users: a single report has more at epsilon {epsilon:g}")
    return make_plan(task, epsilon, bisect_left(range(1, MOST_REPORTS + 1), True, key=lambda more: not enough(more)))


def candidate(
    name: str, task: Task, epsilon: float, reports: int, parameters: dict[str, Value] | None = None
) -> Candidate:
    """Return a frequency oracle at its best parameters, or at `parameters`; UsageError says why it is not possible."""
    oracle = frequency_oracle(name)
    if task.domain is None and not oracle.open_domain:
        raise UsageError("it needs a dictionary")
    if task.domain is not None and task.domain > _WHOLE_REPORT and oracle.bit_for_each_item:
        raise UsageError(f"a report would have a bit for each of {task.domain:,} items")
    parameters = parameters or plan(name, epsilon, task.domain, {}, task.objective, ANY_SEED)
    mechanism = build(name, epsilon, task.domain, parameters)
    if task.max_report_bytes is not None and mechanism.report_bytes > task.max_report_bytes:
        raise UsageError(f"a report has {mechanism.report_bytes:,} bytes, more than {task.max_report_bytes:,}")
    asked, (rows, width) = task.domain or ASKED, mechanism.encoder.tally_shape(np.zeros(0, dtype=np.uint64))
    tally_mib = 8.0 * (asked if mechanism.encoder.by_item else rows * width) / 2**20
    if task.max_tally_mib is not None and tally_mib > task.max_tally_mib:
        raise UsageError(f"the tally takes {tally_mib:,.3g} MiB, more than {task.max_tally_mib:,g}")
    line = mechanism.encoder.line
    each = task.objective.loss(mechanism.law, task.domain) if line is None else line.weights.worst
    variance = reports * float(each)
    cost = mechanism.decode_cost(reports, asked)
    return Candidate(
        mechanism=name,
        parameters={key: value for key, value in parameters.items() if key != "seed"},
        p=mechanism.responder.p,
        q=mechanism.responder.q,
        variance_users2=variance,
        standard_error_users=math.sqrt(variance),
        collision_error_users=math.sqrt(float(mechanism.collision_variance(float(reports) ** 2))),
        report_bits=mechanism.report_bits,
        report_bytes=mechanism.report_bytes,
        sealed_bytes=bound_bytes(mechanism.report_bytes),
        tally_mib=tally_mib,
        decode_operations=cost.operations,
        decode_seconds=cost.seconds,
        epsilon_spent=mechanism.epsilon,
    )


@dataclass(frozen=True)
class Detection:
    """The item to detect: its share of the reports, the power of the test, and the rate of false detections."""

    share: float
    power: float
    rate: float

    def __post_init__(self) -> None:
        for name, value in (("want_share", self.share), ("power", self.power)):
            if not 0.0 < value < 1.0:
                raise UsageError(f"{name} is {value:g}, must be in (0, 1)")


def to_detect(task: Task, wanted: Detection, epsilon: float | None, reports: int | None) -> tuple[Plan, float]:
    """Return the plan of the fewest reports, or of the least epsilon, that detects an item, and the plan's power.

    Mechanisms with pools or blocks are left out, with the reason that detection then depends on the values of all other
    clients. UsageError if no plan detects the item.
    """
    shared = {name: _SHARED for name in task.mechanisms if CATALOGUE[name].seeded or CATALOGUE[name].blocks}
    names = tuple(name for name in task.mechanisms if name not in shared)
    if not names:
        raise UsageError(f"no mechanism is possible: {', '.join(shared)}: {_SHARED}")
    narrowed = replace(task, mechanisms=names)

    def chosen(plan: Plan) -> Mechanism:
        return build(plan.chosen.mechanism, plan.epsilon, task.domain, plan.chosen.parameters)

    def power(plan: Plan) -> float:
        reports = np.array([float(plan.reports)])
        return float(detection_power(chosen(plan), reports, wanted.share, wanted.rate)[0])

    if epsilon is not None:
        found = make_plan(narrowed, epsilon, reports or 1)
        enough = reports_to_detect(chosen(found), wanted.share, wanted.power, wanted.rate)
        if enough is None:
            raise UsageError(f"want_share is {wanted.share:g}: not detected with {MOST_REPORTS:,} reports")
        found = make_plan(narrowed, epsilon, enough)
    else:
        n = int(reports or 0)
        least = first_enough(narrowed, n, lambda plan: power(plan) >= wanted.power, halvings=16, digits=3)
        if least is None:
            raise UsageError(
                f"want_share is {wanted.share:g}: {n:,} reports do not show it at any epsilon up to 40; collect more "
                "reports or ask for a larger share"
            )
        found = least
    return replace(found, left_out=found.left_out | shared), power(found)
