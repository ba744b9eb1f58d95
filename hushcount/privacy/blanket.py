"""The privacy blanket: the part of a report that is the same whatever its client holds, and so hides other clients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from hushcount.designs.sources import load_design
from hushcount.maths.probability import LARGEST_EPSILON
from hushcount.oracles.encoders.affine import Affine
from hushcount.oracles.encoders.base import Encoder
from hushcount.oracles.encoders.nested import Nested
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.responders.base import Responder
from hushcount.oracles.responders.interval import Interval
from hushcount.oracles.responders.randomised_response import RandomisedResponse
from hushcount.oracles.responders.subset import Subset
from hushcount.oracles.responders.weighted_design import WeightedDesign

_ROUNDING = 2.0**-50


@dataclass(frozen=True)
class BlanketLaw:
    """What amplification needs of an extremal mechanism: one whose every report has probability `base * (e or 1)`.

    e if the report supports the item, else 1; base does not depend on the item. So whatever its client holds, a report
    is with probability `gamma`, the sum of all bases, drawn from the base law.

    Args:
        epsilon: above 0, at most 40; no less than the true local loss.
        single: that a report of the base law supports a given item, in (0, 1).
        pair: that it supports two given items, no more than for any two. The fewer, the worse: to move mass from both
            and neither to one of the two only widens the law of W (`divergence.Divergence`) in the convex order.
        excess: what is added to delta where the mechanism is extremal only up to rounding.

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
    """Return the law whose divergence bounds that of every local randomiser: binary randomised response.

    Every randomiser is a function of an extremal one, because the cone `v_x <= e v_y` is spanned by the vectors of 1
    and e. The law of W is linear in (one, both, neither), which `(e+1) one + e both + neither = 1` binds: a mixture of
    one = 1/(e+1), both = 1/e and neither = 1. The last has W constant; W of the second takes two values between which
    W of the first takes none; and all have the mean 1 - E. So the first is the widest in the convex order, as are sums.

    Reference: the bound is that of Feldman, McMillan, Talwar 2023; this proof is ours.
    """
    return BlanketLaw(epsilon, 0.5, 0.0)


def blanket_law(mechanism: Mechanism) -> BlanketLaw | None:
    """Return the law of a mechanism for the two items that it hides worst, or None where it is not extremal.

    Randomised response, subsets, windows and weighted designs are extremal with every encoder; unary responses, whose
    bits are randomised one by one, are not.

    Privacy: epsilon is the stated one, of the rounded probabilities. A pool's rows are public, so two items that share
    no cell in any row are the worst: sharing one makes a report support both or neither more often.
    """
    responder, encoder = mechanism.responder, mechanism.encoder
    excess = 0.0
    if isinstance(responder, RandomisedResponse):
        size = 1
    elif isinstance(responder, (Subset, Interval, WeightedDesign)):
        size = responder.size
    else:
        return None
    if isinstance(responder, WeightedDesign):
        excess = _imbalance_excess(responder, mechanism.epsilon)
    single = Fraction(size, responder.width)
    clash = _least_collision(encoder)
    pair = clash * single + (1 - clash) * _apart(responder, encoder, size)
    # Both are rounded: the pair by so much more that neither can hide it.
    return BlanketLaw(mechanism.epsilon, float(single), max(0.0, float(pair) - _ROUNDING * float(single)), excess)


def _least_collision(encoder: Encoder) -> Fraction:
    """Return the least probability, of all pairs of items, that they share a cell, over what is fresh in a report."""
    if isinstance(encoder, Nested):
        return encoder.inner.collision
    return Fraction(0) if encoder.pool is not None or encoder.blocks > 1 else encoder.collision


def _apart(responder: Responder, encoder: Encoder, size: int) -> Fraction:
    """Return the least probability that a report of the base law supports two given different cells."""
    width = responder.width
    scattered = isinstance(encoder, Affine) and not encoder.folded
    if isinstance(responder, Interval) and not scattered:
        return Fraction(max(0, 2 * size - width), width)
    return Fraction(size * (size - 1), width * (width - 1))


def _imbalance_excess(responder: WeightedDesign, epsilon: float) -> float:
    """Return what an imbalance i of a design may add to delta: at most `32 i (1 + e) m / (m - s)`.

    `E[(sum W)_+] / n` moves by no more than the mean of |W - W'| does, W' that of a perfectly balanced design: at most
    16 i E by the probabilities of W and 8 i (1 + E) by its values, both over 1 - s/m.
    """
    imbalance = load_design(f"{responder.width}-{responder.size}-{responder.digest}").imbalance
    return 32.0 * imbalance * (1.0 + math.exp(epsilon)) * responder.width / (responder.width - responder.size)
