"""Planning: the integer parameter that minimises the exact variance, with p set to spend the whole budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from hushcount.arrays import FloatArray
from hushcount.maths.probability import spending_probability
from hushcount.maths.variance import SupportLaw, supporting

ObjectiveName = Literal["l2", "mse", "target"]
OBJECTIVES: tuple[ObjectiveName, ...] = ("l2", "mse", "target")
_SCANNED = 1 << 20


@dataclass(frozen=True)
class Objective:
    """The quantity that planning minimises.

    Attributes:
        name: "l2", the sum of the variances of all items; "mse", the largest variance at any share up to `largest`;
            "target", the variance of an item with the share `share`.
        share: the target share, in [0, 1]; only for "target".
        largest: an upper bound on the share of an item of interest, in (0, 1], known in advance; only for "mse". [P25]
            section 3.4 calls it the prior f*.
    """

    name: ObjectiveName = "l2"
    share: float = 0.0
    largest: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in OBJECTIVES:
            raise ValueError(f"objective is {self.name!r}, must be one of {', '.join(OBJECTIVES)}")
        if not 0.0 <= self.share <= 1.0:
            raise ValueError(f"target_share is {self.share}, must be in [0, 1]")
        if not 0.0 < self.largest <= 1.0:
            raise ValueError(f"f is {self.largest}, must be in (0, 1]")

    def loss(self, law: SupportLaw, domain: int | None, n: float = 1.0) -> FloatArray:
        """Return the variance of an item's count that the objective names, for each candidate law, in users squared.

        The count is estimated from n reports. The variance is linear in the share, so the l2 loss is d times the
        variance at share 1/d, and the largest variance is at share 0 or at share `largest`. Collisions in a pool are
        left out, because they do not depend on s. In an open domain (None), "l2" uses the variance at share 0.
        """
        if self.name == "mse":
            return np.maximum(law.noise(n, 0.0), law.noise(n, self.largest))
        return law.noise(n, self.share if self.name == "target" else (1.0 / domain if domain else 0.0))


SizedLaw = Callable[[FloatArray, FloatArray], SupportLaw]
"""A function from (p, q) of the cells to the law of an item's score."""


def best_size(epsilon: float, width: int, domain: int | None, objective: Objective, law: SizedLaw = supporting) -> int:
    """Return the s in 1..width-1 of least loss for a responder that reports s of `width` cells, collisions left out."""

    def loss(sizes: npt.NDArray[np.int64]) -> FloatArray:
        p = spending_probability(epsilon, width, sizes)
        return objective.loss(law(p, (sizes - p) / (width - 1)), domain)

    return _least(1, width - 1, loss)


def best_buckets(epsilon: float, prime: int, domain: int | None, objective: Objective) -> int:
    """Return the B in 2..prime of least loss for randomised response over residues folded into B buckets.

    The exact collision probability rises and falls with `prime mod B`, so the loss may have several local minima.
    """

    def loss(buckets: npt.NDArray[np.int64]) -> FloatArray:
        p = spending_probability(epsilon, buckets, 1)
        least, larger = prime // buckets, prime % buckets
        pairs = larger * ((least + 1.0) * least) + (buckets - larger) * (least * (least - 1.0))
        return objective.loss(supporting(p, (1.0 - p) / (buckets - 1), pairs / prime / (prime - 1.0)), domain)

    return _least(2, prime, loss)


def _least(low: int, high: int, loss: Callable[[npt.NDArray[np.int64]], FloatArray]) -> int:
    """Return the integer of least loss, the smallest on a tie.

    Up to about a million candidates are all tried. If there are more candidates, the search tries a logarithmic grid of
    candidates, then finer linear grids around the best candidate.
    """
    spaced: Callable[[int, int, int], FloatArray] = np.geomspace
    while True:
        every = high - low < _SCANNED
        points = np.arange(low, high + 1) if every else np.unique(spaced(low, high, _SCANNED // 8).astype(np.int64))
        losses = loss(points)
        # If p and q are equal in floating point, there is no estimate, and the loss is infinite or NaN.
        best = int(np.argmin(np.where(np.isfinite(losses), losses, np.inf)))
        if every:
            return int(points[best])
        low, high, spaced = int(points[max(0, best - 4)]), int(points[min(len(points) - 1, best + 4)]), np.linspace
