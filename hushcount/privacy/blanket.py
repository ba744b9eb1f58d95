"""The privacy blanket: the part of a report's law that is the same for every value, and so hides other clients."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hushcount.maths.probability import LARGEST_EPSILON
from hushcount.oracles.mechanism import Mechanism

_ROUNDING = 2.0**-50


@dataclass(frozen=True)
class BlanketLaw:
    """The law of an extremal mechanism: a report has probability `base * e` if it supports the item, else `base`.

    e is exp(epsilon), and base does not depend on the item. So with probability `gamma`, the sum of all bases, the
    report of any client is drawn from the base law.

    Args:
        epsilon: above 0, at most 40; no less than the true local loss.
        single: the probability that a report of the base law supports a fixed item, in (0, 1).
        pair: the probability that a report of the base law supports both of two fixed items, for the worst two items. A
            smaller pair is worse: moving mass from "both" and "neither" to one of the two items widens the law of W
            (`divergence.Divergence`) in the convex order.
        excess: an addition to delta, for a mechanism that is extremal only up to rounding.

    Reference: Balle, Bell, Gascon, Nissim 2019, section 5; docs/mathematics.md section 7.
    """

    epsilon: float
    single: float
    pair: float
    excess: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.epsilon <= LARGEST_EPSILON:
            raise ValueError(f"epsilon is {self.epsilon}, must be above 0 and at most {LARGEST_EPSILON}")
        if not 0.0 < self.single < 1.0:
            raise ValueError(f"single is {self.single}, must be in (0, 1)")
        least = max(0.0, 2.0 * self.single - 1.0)
        if not least - _ROUNDING <= self.pair < self.single:
            raise ValueError(f"pair is {self.pair}, must be in [{least:.6g}, {self.single:.6g})")
        if not 0.0 <= self.excess < math.inf:
            raise ValueError(f"excess is {self.excess}, must be at least 0 and finite")

    @property
    def gamma(self) -> float:
        """The probability that a report is drawn from the base law: `1 / (1 + (e-1) single)`."""
        return 1.0 / (1.0 + math.expm1(self.epsilon) * self.single)

    @property
    def one(self) -> float:
        """The probability that a report is drawn from the base law and supports the first of two items only."""
        return self.gamma * (self.single - self.pair)

    @property
    def both(self) -> float:
        return self.gamma * max(0.0, self.pair)

    @property
    def neither(self) -> float:
        return self.gamma * max(0.0, 1.0 - 2.0 * self.single + self.pair)

    @property
    def nothing(self) -> float:
        """`1 - gamma`."""
        return math.expm1(self.epsilon) * self.single * self.gamma


def general_law(epsilon: float) -> BlanketLaw:
    """Return the law of binary randomised response; its divergence bounds that of every local randomiser.

    Every randomiser is a function of an extremal one, because the vectors with entries 1 and e span the cone
    `v_x <= e v_y`. The law of W is linear in (one, both, neither), and `(e+1) one + e both + neither = 1`. So the law
    of W is a mixture of three laws: one = 1/(e+1), both = 1/e, and neither = 1. If neither = 1, W is constant. If both
    = 1/e, W takes two values, and if one = 1/(e+1), W takes no value between these two. In all three laws W has the
    mean 1 - E. So the law with one = 1/(e+1) is the widest in the convex order, and sums of its W are the widest sums.

    Reference: the bound is that of Feldman, McMillan, Talwar 2023; this proof is ours.
    """
    return BlanketLaw(epsilon, 0.5, 0.0)


def blanket_law(mechanism: Mechanism) -> BlanketLaw:
    """Return the law of a mechanism for the two items that it hides worst.

    Privacy: epsilon is the mechanism's stated epsilon, computed from the rounded probabilities. A pool's rows are
    public, so the worst two items share no cell in any row: sharing a cell makes a report support both or neither more
    often.
    """
    base, clash = mechanism.responder.base_law(mechanism.encoder.scatters), mechanism.encoder.least_collision
    single = float(base.single)
    pair = clash * base.single + (1 - clash) * base.apart
    # `pair` is lowered by more than the rounding error of `single` and `pair`.
    return BlanketLaw(mechanism.epsilon, single, max(0.0, float(pair) - _ROUNDING * single), base.excess)
