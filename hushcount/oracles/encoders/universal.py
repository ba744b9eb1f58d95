"""What encoders share under which any two items share a cell with the same probability, afresh for each report."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hushcount.arrays import FloatArray, UInt64Array
from hushcount.maths.variance import Numbers, SupportLaw, supporting
from hushcount.oracles.encoders.base import Encoder, Scored
from hushcount.oracles.estimates import Estimate
from hushcount.oracles.evidence import Supports


class Universal:
    """A universal family of functions: `collision` says all that estimates need."""

    @property
    def scatters(self) -> bool:
        return False

    @property
    def least_collision(self: Encoder) -> Fraction:
        return self.collision

    def law(self: Encoder, p: Numbers, q: Numbers) -> SupportLaw:
        return supporting(p, q, float(self.collision))

    def near_users(self, items: UInt64Array, held: FloatArray) -> FloatArray | None:
        return None

    def estimate(self, scored: Scored) -> Estimate:
        law, noise = scored.law, scored.noise()
        own, other = float(law.own), float(law.other)
        evidence = Supports(scored.scores, scored.tally.reports, own, other, scored.count, noise)
        return Estimate(scored.count, noise, np.zeros(len(scored.count)), evidence)
