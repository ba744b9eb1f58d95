"""Interval: a cyclic window of s consecutive cells, sent as its start alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hushcount.arrays import FloatArray, Reports, UInt64Array
from hushcount.maths.probability import epsilon_spent, spending_threshold
from hushcount.oracles.responders.base import BaseLaw, choice_law
from hushcount.oracles.responders.runs import Runs
from hushcount.oracles.responders.sized import Sized
from hushcount.randomness import WORD_VALUES, Words, below, uniform
from hushcount.wire.fields import Field, Number


@dataclass(frozen=True)
class Interval(Sized):
    """With probability `keep / 2**64` a uniform window that holds the true cell, else a uniform one that does not.

    Args:
        width: m, the number of cells on the circle, at least 2.
        size: s, the length of the window, 1..m-1.
        keep: threshold out of 2**64 of `p`; `spending(epsilon, width, size)` gives the one that spends epsilon.

    Privacy: `ln(p (m-s) / ((1-p) s))` for one report, replace-one.
    Reference: docs/mathematics.md section 4. Neighbouring cells are reported together, so the encoder must scatter the
    items: the affine encoder does, and only with it is `q` the same for every pair of items.
    """

    @classmethod
    def spending(cls, epsilon: float, width: int, size: int) -> Interval:
        """Return the responder whose loss is epsilon, rounded toward less."""
        return cls(width, size, spending_threshold(epsilon, width, size))

    @property
    def fields(self) -> tuple[Field, ...]:
        return (Number("start", self.width),)

    @property
    def epsilon(self) -> float:
        return epsilon_spent(self.keep, self.width, self.size)

    def respond(self, reports: Reports, cells: UInt64Array, words: Words) -> None:
        width = np.uint64(self.width)
        kept = below(self.keep, len(cells), words)
        holding = cells + width - uniform(self.size, len(cells), words)
        missing = cells + np.uint64(1) + uniform(self.width - self.size, len(cells), words)
        reports["start"] = np.where(kept, holding, missing) % width

    def log_prob(self, reports: Reports, cells: UInt64Array) -> FloatArray:
        held = math.log(self.keep / WORD_VALUES / self.size)
        absent = math.log((WORD_VALUES - self.keep) / WORD_VALUES / (self.width - self.size))
        return np.where(self.supports(reports, cells), held, absent)

    def runs(self, reports: Reports) -> Runs:
        return Runs(reports["start"].astype(np.uint64)[:, None], self.size, self.width)

    def base_law(self, scattered: bool) -> BaseLaw:
        if scattered:
            return choice_law(self.width, self.size)
        return BaseLaw(Fraction(self.size, self.width), Fraction(max(0, 2 * self.size - self.width), self.width))
