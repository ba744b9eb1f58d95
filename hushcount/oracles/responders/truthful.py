"""The responder of campaigns with noise of the mixes: a report holds the client's own cell, and no noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hushcount.arrays import BoolArray, Counts, FloatArray, Reports, UInt64Array
from hushcount.oracles.decoding import CELL_NS, CountCost
from hushcount.oracles.groups import Groups
from hushcount.oracles.responders.base import BaseLaw, Runs
from hushcount.randomness import Words
from hushcount.wire.fields import Field, Number


@dataclass(frozen=True)
class Truthful:
    """A report is the client's cell, one of `width`.

    Privacy: none. Whoever opens a report reads its value; only dummies of the mixes hide it (docs/adr/0061).
    """

    width: int
    p: ClassVar[float] = 1.0
    q: ClassVar[float] = 0.0
    size_variance: ClassVar[float] = 0.0
    epsilon: ClassVar[float] = math.inf
    log_greatest: ClassVar[float] = 0.0
    most_cells: ClassVar[int] = 1

    @property
    def fields(self) -> tuple[Field, ...]:
        return (Number("cell", self.width),)

    def respond(self, reports: Reports, cells: UInt64Array, words: Words) -> None:
        reports["cell"] = cells

    def log_prob(self, reports: Reports, cells: UInt64Array) -> FloatArray:
        return np.where(self.supports(reports, cells), 0.0, -math.inf)

    def supports(self, reports: Reports, cells: UInt64Array) -> BoolArray:
        return self.runs(reports).support(cells)

    def count_cells(self, tally: Counts, reports: Reports, rows: npt.NDArray[Any] | None) -> None:
        self.runs(reports).count(tally, rows)

    def count_cost(self, reports: int) -> CountCost:
        return CountCost(reports, reports * CELL_NS)

    def group_spreads(self, groups: Groups, held: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(groups)), np.zeros(len(groups))

    def runs(self, reports: Reports) -> Runs:
        return Runs(reports["cell"].astype(np.uint64)[:, None], 1, self.width)

    def base_law(self, scattered: bool) -> BaseLaw:
        raise ValueError("a report without noise has no base law: nothing is gained by shuffling")
