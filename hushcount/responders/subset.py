"""Subset selection: s distinct cells, the true one among them with probability p, the others uniform."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from hushcount.fields import Field, Reports
from hushcount.probability import epsilon_spent, spending_threshold
from hushcount.randomness import WORD_VALUES, UInt64Array, Words, below, uniform
from hushcount.responders.base import check_choice, supports

_CHUNK_CELLS = 1 << 24


@dataclass(frozen=True)
class Subset:
    """With probability `keep / 2**64` a uniform s-subset that holds the true cell, else a uniform one that does not.

    Args:
        width: m, the number of cells, at least 2.
        size: s, the number of reported cells, 1..m-1.
        keep: threshold out of 2**64 of `p`; `spending(epsilon, width, size)` gives the one that spends epsilon.

    Privacy: `ln(p (m-s) / ((1-p) s))` for one report, replace-one.
    Reference: [J] Algorithm 1 and eq. (3), (5); docs/mathematics.md section 3.
    """

    width: int
    size: int
    keep: int
    run_length: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_choice(self, self.size)

    @classmethod
    def spending(cls, epsilon: float, width: int, size: int) -> Subset:
        """Return the responder whose loss is epsilon, rounded toward less."""
        return cls(width, size, spending_threshold(epsilon, width, size))

    @property
    def fields(self) -> tuple[Field, ...]:
        return (Field("cells", self.width, count=self.size),)

    @property
    def support_size(self) -> int:
        return self.size

    @property
    def epsilon(self) -> float:
        return epsilon_spent(self.keep, self.width, self.size)

    def respond(self, reports: Reports, cells: UInt64Array, words: Words) -> None:
        rows = max(1, _CHUNK_CELLS // self.width)
        for start in range(0, len(cells), rows):
            own = cells[start : start + rows]
            chosen = _uniform_subsets(self.width - 1, self.size, len(own), words)
            # The others are 0..m-2: step over the own cell, so that a subset never holds it by accident.
            chosen += chosen >= own[:, None]
            kept = below(self.keep, len(own), words)
            # A uniform s-subset of the others less a uniform one of its members is a uniform (s-1)-subset.
            dropped = uniform(self.size, len(own), words)
            holders = np.flatnonzero(kept)
            chosen[holders, dropped[holders]] = own[holders]
            chosen.sort(axis=1)
            reports["cells"][start : start + rows] = chosen if self.size > 1 else chosen[:, 0]

    def log_prob(self, reports: Reports, cells: UInt64Array) -> npt.NDArray[np.float64]:
        held = math.log(self.keep / WORD_VALUES) - _log_choose(self.width - 1, self.size - 1)
        absent = math.log((WORD_VALUES - self.keep) / WORD_VALUES) - _log_choose(self.width - 1, self.size)
        return np.where(supports(self, reports, cells), held, absent)

    def run_starts(self, reports: Reports) -> UInt64Array:
        return reports["cells"].astype(np.uint64).reshape(len(reports), self.size)


def _uniform_subsets(population: int, size: int, count: int, words: Words) -> UInt64Array:
    """Return uint64[count, size]: uniform subsets of 0..population-1, by Floyd's method, all rows in step.

    Step j draws t from 0..j; a t that the row already holds is replaced by j, which no earlier step could draw.
    Exact, and one word a cell whatever the population.
    """
    chosen = np.empty((count, size), dtype=np.uint64)
    held = np.zeros((count, population), dtype=np.bool_)
    rows = np.arange(count)
    for column, last in enumerate(range(population - size, population)):
        drawn = uniform(last + 1, count, words)
        drawn[held[rows, drawn]] = last
        held[rows, drawn] = True
        chosen[:, column] = drawn
    return chosen


def _log_choose(population: int, size: int) -> float:
    return math.lgamma(population + 1) - math.lgamma(size + 1) - math.lgamma(population - size + 1)
