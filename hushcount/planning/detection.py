"""The planner's question of detection: how many reports, or which epsilon, show an item of a share."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from hushcount.errors import UsageError
from hushcount.maths.probability import LARGEST_EPSILON, LEAST_EPSILON
from hushcount.oracles.catalogue import CATALOGUE, build
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.power import detection_power, reports_to_detect
from hushcount.planning.planner import MOST_REPORTS, Plan, Task, make_plan

_SHARED = "in a pool or a block, detection depends on what all others hold: try hushcount simulate with real values"


@dataclass(frozen=True)
class Detection:
    """An item that is to be seen: its share, the power, and the rate of false detections of an item."""

    share: float
    power: float
    rate: float

    def __post_init__(self) -> None:
        for name, value in (("want_share", self.share), ("power", self.power)):
            if not 0.0 < value < 1.0:
                raise UsageError(f"{name} is {value:g}, must be in (0, 1)")


def to_detect(task: Task, wanted: Detection, epsilon: float | None, reports: int | None) -> tuple[Plan, float]:
    """Return the plan of the fewest reports, or of the least epsilon, that detects an item, and its power.

    Pools and blocks are left out, and the plan says so: there it depends on what all others hold.

    Args:
        task: what is to be planned.
        wanted: what is to be detected.
        epsilon: if the reports are asked for.
        reports: if epsilon is.

    Raises:
        UsageError: nothing is enough.
    """
    shared = {name: _SHARED for name in task.mechanisms if CATALOGUE[name].seeded or CATALOGUE[name].blocks}
    names = tuple(name for name in task.mechanisms if name not in shared)
    if not names:
        raise UsageError(f"no mechanism is possible: {', '.join(shared)}: {_SHARED}")
    narrowed = replace(task, mechanisms=names)

    def chosen(plan: Plan) -> Mechanism:
        return build(plan.chosen.mechanism, plan.epsilon, task.domain, plan.chosen.parameters)

    if epsilon is not None:
        found = make_plan(narrowed, epsilon, reports or 1)
        enough = reports_to_detect(chosen(found), wanted.share, wanted.power, wanted.rate)
        if enough is None:
            raise UsageError(f"want_share is {wanted.share:g}: not detected with {MOST_REPORTS:,} reports")
        found = make_plan(narrowed, epsilon, enough)
    else:
        n = int(reports or 0)
        low, high = math.log(LEAST_EPSILON), math.log(LARGEST_EPSILON)
        if _power(chosen(make_plan(narrowed, LARGEST_EPSILON, n)), n, wanted) < wanted.power:
            raise UsageError(f"want_share is {wanted.share:g}: {n:,} reports do not show it at any epsilon up to 40")
        for _ in range(16):
            middle = (low + high) / 2.0
            enough_now = _power(chosen(make_plan(narrowed, math.exp(middle), n)), n, wanted) >= wanted.power
            low, high = (low, middle) if enough_now else (middle, high)
        digits = 10.0 ** (2 - math.floor(high / math.log(10.0)))
        for steps in count(math.ceil(math.exp(high) * digits)):
            found = make_plan(narrowed, min(LARGEST_EPSILON, steps / digits), n)
            if _power(chosen(found), n, wanted) >= wanted.power:
                break
    return replace(found, left_out=found.left_out | shared), _power(chosen(found), found.reports, wanted)


def _power(mechanism: Mechanism, reports: int, wanted: Detection) -> float:
    return float(detection_power(mechanism, np.array([float(reports)]), wanted.share, wanted.rate)[0])
