"""Planning: the integer parameter that minimises the exact variance, with p set to spend the whole budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hushcount.mechanism import Mechanism

ObjectiveName = Literal["l2", "mse", "target"]
OBJECTIVES: tuple[ObjectiveName, ...] = ("l2", "mse", "target")


@dataclass(frozen=True)
class Objective:
    """What is to be small.

    Attributes:
        name: "l2", the sum of the variances of all items; "mse", the variance of the worst share in [0, 1];
            "target", the variance of an item of the given share.
        share: the target share, in [0, 1]; only for "target".
    """

    name: ObjectiveName = "l2"
    share: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in OBJECTIVES:
            raise ValueError(f"objective is {self.name!r}, must be one of {', '.join(OBJECTIVES)}")
        if not 0.0 <= self.share <= 1.0:
            raise ValueError(f"target_share is {self.share}, must be in [0, 1]")

    def loss(self, mechanism: Mechanism) -> float:
        """Return the objective's variance for one report; it is linear in the share, so two ends tell all.

        Collisions in a pool are left out: they are no function of s.
        """
        if self.name == "mse":
            return float(np.max(mechanism.variance(1, np.array([0.0, 1.0]))))
        domain = mechanism.encoder.domain
        share = self.share if self.name == "target" else (1.0 / domain if domain else 0.0)
        return float(mechanism.variance(1, share))


def best_integer(
    low: int, high: int, make: Callable[[int], Mechanism], objective: Objective, start: float
) -> Mechanism:
    """Return the mechanism of least loss among `make(low) .. make(high)`, the smaller integer on a tie.

    The loss falls to one valley and rises after it, in s as in B; the walk goes downhill from the start in steps that
    halve, so a domain of millions takes a few dozen evaluations. The tests hold it against the full scan.
    """
    best = min(max(low, round(start) if math.isfinite(start) else low), high)
    best_loss = objective.loss(make(best))
    step = max(1, (high - low) // 4)
    while step:
        moved = False
        for candidate in (best - step, best + step):
            if low <= candidate <= high:
                loss = objective.loss(make(candidate))
                if (loss, candidate) < (best_loss, best):
                    best, best_loss, moved = candidate, loss, True
        if not moved:
            step //= 2
    return make(best)
