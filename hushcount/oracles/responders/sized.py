"""What responders share whose reports always support s cells: their parameters and two probabilities."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy.typing as npt

from hushcount.arrays import BoolArray, Counts, Reports, UInt64Array
from hushcount.oracles.costs import CountCost
from hushcount.oracles.responders.base import BaseLaw, check_choice, choice_law
from hushcount.oracles.responders.runs import Runs
from hushcount.randomness import WORD_VALUES


@dataclass(frozen=True)
class Sized:
    """A report supports `size` of `width` cells, the client's own among them with probability `keep / 2**64`.

    Args:
        width: m, the number of cells, at least 2.
        size: s, how many cells a report supports, 1..m-1.
        keep: threshold out of 2**64 of p.
    """

    width: int
    size: int
    keep: int
    size_variance: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_choice(self.width, self.size, self.keep)

    @property
    def p(self) -> float:
        return self.keep / WORD_VALUES

    @property
    def q(self) -> float:
        """`(s-p)/(m-1)`, [J] eq. (3): the mean over the other cells, and what each has where all are treated alike."""
        return (self.size - self.p) / (self.width - 1)

    def supports(self, reports: Reports, cells: UInt64Array) -> BoolArray:
        return self.runs(reports).support(cells)

    def count_cells(self, tally: Counts, reports: Reports, rows: npt.NDArray[Any] | None) -> None:
        self.runs(reports).count(tally, rows)

    def count_cost(self, reports: int) -> CountCost:
        return CountCost.of_cells(reports * (self.p + (self.width - 1) * self.q))

    @abstractmethod
    def runs(self, reports: Reports) -> Runs: ...

    def base_law(self, scattered: bool) -> BaseLaw | None:
        return choice_law(self.width, self.size)
