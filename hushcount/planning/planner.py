"""The planner: every frequency oracle at its best parameters, ranked by exact error, and the inverse questions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from hushcount.campaigns.campaign import BINDING_BYTES
from hushcount.errors import UsageError
from hushcount.maths.objectives import Objective
from hushcount.maths.probability import LARGEST_EPSILON, LEAST_EPSILON
from hushcount.oracles.catalogue import ANY_SEED, CATALOGUE, build, plan
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.parameters import Value
from hushcount.wire.sealing import SEAL_BYTES

ASKED = 1000
"""Items that an open domain is assumed to be asked for, in the cost of decoding."""
MOST_REPORTS = 10**12
_WHOLE_REPORT = 1 << 18
NEGLIGIBLE = 1e-3
"""Candidates whose error exceeds the least by no more than this are as good: then the shorter report decides."""


@dataclass(frozen=True)
class Task:
    """What is to be planned.

    Attributes:
        domain: d, how many items the mechanism tells apart; None for an open domain.
        objective: what is to be small.
        max_report_bytes: limit of the plain report, or None.
        max_tally_mib: limit of the tally's memory, or None.
        mechanisms: names that may be chosen.
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
        mechanism, parameters: as a campaign file holds them; a pool's seed is drawn when the campaign is made.
        p, q: that a report supports its own cell, another given cell.
        variance_users2: of the count that the objective names, by randomisation, users squared, exact.
        standard_error_users: its root.
        collision_error_users: the largest that the bias of a fixed pool can be: all other clients hold one item.
        report_bits: information of a plain report; report_bytes on the wire, sealed_bytes as it is sent.
        tally_mib: memory of the tally.
        decode_operations, decode_seconds: of tally and estimates, one thread.
        epsilon_spent: exact, of the rounded probabilities.
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
        """What candidates are ranked by, in users: noise and the largest collision error, added in squares."""
        return math.hypot(self.standard_error_users, self.collision_error_users)


@dataclass(frozen=True)
class Plan:
    """The outcome: candidates in order of their error, least first, and why others are left out."""

    epsilon: float
    reports: int
    candidates: tuple[Candidate, ...]
    left_out: dict[str, str]

    @property
    def chosen(self) -> Candidate:
        """The shortest report, then the cheapest decoding, of those whose error is as good as the least."""
        limit = self.candidates[0].error * (1.0 + NEGLIGIBLE)
        good = [candidate for candidate in self.candidates if candidate.error <= limit]
        return min(good, key=lambda one: (one.report_bytes, one.decode_seconds, one.error))

    @property
    def reason(self) -> str:
        """Why it is chosen, in one sentence."""
        best, least = self.chosen, self.candidates[0]
        if len(self.candidates) == 1:
            return f"{best.mechanism} is the only one that is possible"
        if best is least:
            second = self.candidates[1]
            return f"{best.mechanism} has the least error: that of {second.mechanism} is {_excess(second, best)} larger"
        return (
            f"{best.mechanism} has an error {_excess(best, least)} above the least, that of {least.mechanism}, with "
            f"{best.report_bytes} bytes a report against {least.report_bytes} and {best.decode_seconds:.2g} s of "
            f"decoding against {least.decode_seconds:.2g}"
        )


def _excess(one: Candidate, other: Candidate) -> str:
    # At the largest epsilons an error may be 0 in floating point.
    excess = one.error - other.error
    return "less than 0.001%" if excess < 1e-5 * other.error or not other.error else f"{excess / other.error:.3%}"


def make_plan(task: Task, epsilon: float, reports: int) -> Plan:
    """Plan every frequency oracle, leave out what exceeds the limits, and rank the rest.

    Raises:
        UsageError: none is possible; the reason of each is given.
        ValueError: epsilon or reports is out of range.
    """
    if not 1 <= reports <= MOST_REPORTS:
        raise ValueError(f"reports is {reports}, must be in 1..{MOST_REPORTS}")
    found, left_out = [], {}
    for name in task.mechanisms:
        reason = _impossible(name, task)
        if reason is None:
            try:
                candidate = _candidate(name, task, epsilon, reports)
            except UsageError as error:
                reason = str(error)
            else:
                reason = _too_large(candidate, task)
        if reason is None:
            found.append(candidate)
        else:
            left_out[name] = reason
    if not found:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise UsageError(f"no mechanism is possible: {reasons}")
    # At equal error the shorter report, then the cheaper decoding.
    found.sort(key=lambda one: (float(f"{one.error:.9e}"), one.report_bytes, one.decode_seconds))
    return Plan(epsilon, reports, tuple(found), left_out)


def least_epsilon(task: Task, reports: int, error: float) -> Plan:
    """Return the plan of the least epsilon, to four digits, at which the chosen error is at most `error` users.

    Raises:
        UsageError: no epsilon up to 40 is enough.
    """

    def enough(epsilon: float) -> bool:
        return make_plan(task, epsilon, reports).chosen.error <= error

    if not enough(LARGEST_EPSILON):
        raise UsageError(f"want_error is {error:g} users: not reached with {reports} reports at any epsilon up to 40")
    low, high = math.log(LEAST_EPSILON), math.log(LARGEST_EPSILON)
    for _ in range(24):
        middle = (low + high) / 2.0
        low, high = (low, middle) if enough(math.exp(middle)) else (middle, high)
    digits = 10.0 ** (3 - math.floor(high / math.log(10.0)))
    for steps in count(math.ceil(math.exp(high) * digits)):
        found = make_plan(task, min(LARGEST_EPSILON, steps / digits), reports)
        # Rounding epsilon up may change which of those that are as good is chosen.
        if found.chosen.error <= error:
            break
    return found


def most_reports(task: Task, epsilon: float, error: float) -> Plan:
    """Return the plan of the most reports with which the chosen error is at most `error` users.

    The error of a count grows with the square root of the reports, that of a share falls: more reports are always
    better for shares.

    Raises:
        UsageError: one report is too many already.
    """

    def enough(reports: int) -> bool:
        return make_plan(task, epsilon, reports).chosen.error <= error

    if not enough(1):
        raise UsageError(f"want_error is {error:g} users: a single report has more at epsilon {epsilon:g}")
    low, high = 1, 2
    while high <= MOST_REPORTS and enough(high):
        low, high = high, min(2 * high, MOST_REPORTS + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return make_plan(task, epsilon, low)


def _impossible(name: str, task: Task) -> str | None:
    if task.domain is None and not CATALOGUE[name].open_domain:
        return "it needs a dictionary"
    if task.domain is not None and task.domain > _WHOLE_REPORT and CATALOGUE[name].bit_for_each_item:
        return f"a report would have a bit for each of {task.domain:,} items"
    return None


def _too_large(candidate: Candidate, task: Task) -> str | None:
    if task.max_report_bytes is not None and candidate.report_bytes > task.max_report_bytes:
        return f"a report has {candidate.report_bytes:,} bytes, more than {task.max_report_bytes:,}"
    if task.max_tally_mib is not None and candidate.tally_mib > task.max_tally_mib:
        return f"the tally takes {candidate.tally_mib:,.3g} MiB, more than {task.max_tally_mib:,g}"
    return None


def _candidate(name: str, task: Task, epsilon: float, reports: int) -> Candidate:
    parameters = plan(name, epsilon, task.domain, {}, task.objective, ANY_SEED)
    mechanism = build(name, epsilon, task.domain, parameters)
    parameters.pop("seed", None)
    variance = float(task.objective.loss(mechanism.law, task.domain, reports))
    candidates = task.domain or ASKED
    cost = mechanism.decode_cost(reports, candidates)
    return Candidate(
        mechanism=name,
        parameters=parameters,
        p=mechanism.responder.p,
        q=mechanism.responder.q,
        variance_users2=variance,
        standard_error_users=math.sqrt(variance),
        collision_error_users=math.sqrt(float(mechanism.collision_variance(float(reports) ** 2))),
        report_bits=mechanism.report_bits,
        report_bytes=mechanism.report_bytes,
        sealed_bytes=BINDING_BYTES + mechanism.report_bytes + SEAL_BYTES,
        tally_mib=tally_mib(mechanism, candidates),
        decode_operations=cost.operations,
        decode_seconds=cost.seconds,
        epsilon_spent=mechanism.epsilon,
    )


def tally_mib(mechanism: Mechanism, candidates: int) -> float:
    """Return the memory of a tally in MiB; of one made for `candidates` items where it has a column for each."""
    rows, width = mechanism.encoder.tally_shape(np.zeros(0, dtype=np.uint64))
    return 8.0 * (candidates if mechanism.encoder.by_item else rows * width) / 2**20
