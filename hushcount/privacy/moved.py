"""Counts with noise of the mixes, for one client that has other values: the privacy curve of one window."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.maths.count_laws import CountLaw
from hushcount.maths.odds import Curve


@dataclass(frozen=True)
class Moved:
    """The counts of one window, with the dummies of one mix; all reports of one client move to another item.

    Moving all reports from one item to one other item dominates every other change of these reports: the noise is
    log-concave, so a shift by s + t is no harder to detect than shifts by s and by t of two independent counts. The
    losses are the whole multiples of R + S from -l to l, and infinity.

    Args:
        law: of X; the mix adds B - X dummies to each item.
        reports: l, how many reports the client has in the window, at least 1.

    Reference: docs/mathematics.md section 13.
    """

    law: CountLaw
    reports: int

    @property
    def most(self) -> float:
        """The largest finite loss."""
        return self.reports * self.law.epsilon

    @property
    def hides(self) -> bool:
        """Whether an infinite loss has a probability of about one half at most; else nothing is worth stating."""
        return self.reports <= self.law.threshold

    @property
    def lost(self) -> float:
        """The probability of an infinite loss: the item that gains the reports shows fewer than l dummies."""
        return self._sum(self.law.most + 1 - self.reports, self.law.most)

    def curve(self) -> Curve:
        """Return the curve for any l reports, replace-one; both orders of two neighbours have the same curve."""
        losses, chances, lost = np.arange(1, self.reports + 1) * self.law.epsilon, self._chances, self.lost

        def divergence(epsilon: float) -> float:
            return lost + float(chances @ -np.expm1(np.minimum(epsilon - losses, 0.0)))

        return divergence

    @cached_property
    def _chances(self) -> FloatArray:
        """float64[l], the probabilities of the losses R + S, 2 (R + S), ..., l (R + S)."""
        law, number = self.law, self.reports
        # The item that loses l reports has the loss l S - j (R + S) at X = j, and that of j = 0 or j = l beyond.
        loses = [law.at_most(0), *(law.chance(j) for j in range(1, number)), self._sum(number, law.most)]
        # The item that gains them has the loss l R - k (R + S) at X = -k; where X is above B - l, it is infinite.
        most = law.most - number
        gains = [self._sum(0, most), *(law.chance(-k) if -k <= most else 0.0 for k in range(1, number))]
        both = np.convolve(loses, [*gains, law.at_most(-number)])
        return np.asarray(both[number - 1 :: -1])

    def _sum(self, first: int, last: int) -> float:
        return math.fsum(self.law.chance(noise) for noise in range(first, last + 1))

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """The integers that `Moved.of` takes."""
        return self.law.right, self.law.left, self.law.most, self.reports

    @classmethod
    def of(cls, right: int, left: int, most: int, reports: int) -> Moved:
        """Return the release with these integers."""
        return cls(CountLaw(right, left, most), reports)
