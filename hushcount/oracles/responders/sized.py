"""What responders share whose reports always support s cells: their parameters and two probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hushcount.oracles.costs import CountCost
from hushcount.oracles.responders.base import check_choice
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

    def count_cost(self, reports: int) -> CountCost:
        return CountCost.of_cells(reports * (self.p + (self.width - 1) * self.q))
