"""The planner's question of detection: how many reports, or which epsilon, show an item with a given share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hushcount.errors import UsageError
from hushcount.oracles.catalogue import CATALOGUE, build
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.power import detection_power, reports_to_detect
from hushcount.planning.planner import MOST_REPORTS, Plan, Task, first_enough, make_plan

_SHARED = "in a pool or a block, detection depends on what all others hold: try hushcount simulate with real values"


@dataclass(frozen=True)
class Detection:
    """The item to detect: its share, the power, and the rate of false detections of an item."""

    share: float
    power: float
    rate: float

    def __post_init__(self) -> None:
        for name, value in (("want_share", self.share), ("power", self.power)):
            if not 0.0 < value < 1.0:
                raise UsageError(f"{name} is {value:g}, must be in (0, 1)")


def to_detect(task: Task, wanted: Detection, epsilon: float | None, reports: int | None) -> tuple[Plan, float]:
    """Return the plan of the fewest reports, or of the least epsilon, that detects an item, and its power.

    It leaves out pools and blocks, in which detection depends on what all others hold, and says so.

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
            raise UsageError(f"want_share is {wanted.share:g}: {n:,} reports do not show it at any epsilon up to 40")
        found = least
    return replace(found, left_out=found.left_out | shared), power(found)
