"""Randomised response: one cell, the true one with probability p, else a uniform other one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hushcount.arrays import BoolArray, Counts, FloatArray, Reports, UInt64Array
from hushcount.maths.probability import epsilon_spent, spending_threshold
from hushcount.oracles.costs import CountCost
from hushcount.oracles.responders.base import BaseLaw, check_choice, choice_law
from hushcount.oracles.responders.runs import Runs
from hushcount.randomness import WORD_VALUES, Words, below, uniform
from hushcount.wire.fields import Field, Number


@dataclass(frozen=True)
class RandomisedResponse:
    """`Pr[report c | true cell c] = keep / 2**64`; every other cell has the same share of the rest.

    Args:
        width: m, the number of cells, at least 2.
        keep: threshold out of 2**64; `spending(epsilon, width)` gives the one that spends epsilon.

    Privacy: `ln(p (m-1) / (1-p))` for one report, replace-one.
    Reference: docs/mathematics.md section 3; Warner 1965, for m cells Kairouz et al. 2016.
    """

    width: int
    keep: int
    size_variance: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_choice(self.width, 1, self.keep)

    @classmethod
    def spending(cls, epsilon: float, width: int) -> RandomisedResponse:
        """Return the responder whose loss is epsilon, rounded toward less."""
        return cls(width, spending_threshold(epsilon, width, 1))

    @property
    def p(self) -> float:
        return self.keep / WORD_VALUES

    @property
    def q(self) -> float:
        return (1.0 - self.p) / (self.width - 1)

    @property
    def fields(self) -> tuple[Field, ...]:
        return (Number("cell", self.width),)

    @property
    def epsilon(self) -> float:
        return epsilon_spent(self.keep, self.width, 1)

    def respond(self, reports: Reports, cells: UInt64Array, words: Words) -> None:
        kept = below(self.keep, len(cells), words)
        step = uniform(self.width - 1, len(cells), words) + np.uint64(1)
        reports["cell"] = np.where(kept, cells, (cells + step) % np.uint64(self.width))

    def log_prob(self, reports: Reports, cells: UInt64Array) -> FloatArray:
        kept = math.log(self.keep / WORD_VALUES)
        changed = math.log((WORD_VALUES - self.keep) / WORD_VALUES / (self.width - 1))
        return np.where(self.supports(reports, cells), kept, changed)

    def supports(self, reports: Reports, cells: UInt64Array) -> BoolArray:
        result: BoolArray = reports["cell"] == cells
        return result

    def count_cells(self, tally: Counts, reports: Reports, rows: npt.NDArray[Any] | None) -> None:
        self.runs(reports).count(tally, rows)

    def count_cost(self, reports: int) -> CountCost:
        return CountCost.of_cells(reports * (self.p + (self.width - 1) * self.q))

    def runs(self, reports: Reports) -> Runs:
        return Runs(reports["cell"].astype(np.uint64)[:, None], 1, self.width)

    def base_law(self, scattered: bool) -> BaseLaw:
        return choice_law(self.width, 1)
