"""Subset selection: s distinct cells, the true one among them with probability p, the others uniform."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushcount.arrays import FloatArray, Reports, UInt64Array
from hushcount.oracles.responders.base import Sized
from hushcount.oracles.responders.runs import Runs
from hushcount.oracles.subsets import draw_subsets
from hushcount.randomness import WORD_VALUES, Words, below, uniform
from hushcount.wire.fields import MOST_BYTES, Field, SubsetOf

LARGEST_SIZE = 1 << 16
"""Most cells of a report: a client takes a second to draw them."""


@dataclass(frozen=True)
class Subset(Sized):
    """With probability `keep / 2**64` a uniform s-subset that holds the true cell, else a uniform one that does not.

    Privacy: `ln(p (m-s) / ((1-p) s))` for one report, replace-one.
    Reference: [J] Algorithm 1 and eq. (3), (5); docs/mathematics.md section 3.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        # The shorter of a list and a bitmap; a rank is shorter than both.
        octets = min(self.size * (self.width - 1).bit_length(), self.width) / 8
        if octets > MOST_BYTES or self.size > LARGEST_SIZE:
            raise ValueError(
                f"{self.size} of {self.width} cells in a report are too many: at most {LARGEST_SIZE} in at most "
                f"{MOST_BYTES} bytes; mechanism ais has short reports"
            )

    @property
    def fields(self) -> tuple[Field, ...]:
        return (SubsetOf("cells", self.width, self.size),)

    def respond(self, reports: Reports, cells: UInt64Array, words: Words) -> None:
        kept = below(self.keep, len(cells), words)
        # A uniform s-subset of the others, less a uniform one of its members, is a uniform (s-1)-subset.
        dropped = np.where(kept, uniform(self.size, len(cells), words), np.uint64(self.size))
        draw_subsets(reports["cells"], self.width, cells, dropped, words)

    def log_prob(self, reports: Reports, cells: UInt64Array) -> FloatArray:
        held = math.log(self.keep / WORD_VALUES) - _log_choose(self.width - 1, self.size - 1)
        absent = math.log((WORD_VALUES - self.keep) / WORD_VALUES) - _log_choose(self.width - 1, self.size)
        return np.where(self.supports(reports, cells), held, absent)

    def runs(self, reports: Reports) -> Runs:
        return Runs(reports["cells"].astype(np.uint64), 1, self.width)


def _log_choose(population: int, size: int) -> float:
    return math.lgamma(population + 1) - math.lgamma(size + 1) - math.lgamma(population - size + 1)
