"""Keep rules: the probability with which the auxiliary server reveals a bin, by its number of reports."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Literal

from hushcount.maths.probability import require_epsilon
from hushcount.randomness import WORD_VALUES

RuleName = Literal["optimal", "laplace"]
Relation = Literal["replace-one", "add-remove"]
_DIGITS = 60
_SLACK = Fraction(1, 10**50)
_LEVELS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
MOST_CAP = 1000


@dataclass(frozen=True)
class KeepRule:
    """Keep or drop each bin by its count alone, so that the set of kept bins is (epsilon, delta)-private.

    A client sends at most `cap` reports. Removing or adding them moves the counts by `cap` steps of one, each step
    `(e0, d0)`. All t steps in one bin are `(t e0, d0 (1 + e^e0 + ... + e^((t-1) e0)))`; in several independent bins,
    less. Replacing a client's reports is a removal and an addition: twice that.

        add-remove   e0 = epsilon / cap         d0 = delta / S        S = sum over i < cap of e^(i e0)
        replace-one  e0 = epsilon / (2 cap)     d0 = delta / (2 S)

    Attributes:
        name: "optimal", the greatest keep probability that (e0, d0) allows at every count; "laplace", the count with
            discrete Laplace noise against a threshold.
        epsilon: in [0.0001, 40].
        delta: in (0, 1).
        relation: which data sets are neighbours; the unit is one client.
        cap: l, reports of one client, in 1..MOST_CAP.

    Reference: Desfontaines, Voss, Gipson 2020 (optimal); [J] Algorithm 6 and Theorem 4 (laplace), whose (epsilon,
    delta) holds for add-remove and one report only (docs/mathematics.md section 8).
    """

    name: RuleName
    epsilon: float
    delta: float
    relation: Relation = "replace-one"
    cap: int = 1

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        if not 0.0 < self.delta < 1.0:
            raise ValueError(f"delta is {self.delta}, must be in (0, 1)")
        if not 1 <= self.cap <= MOST_CAP:
            raise ValueError(f"cap is {self.cap}, must be in 1..{MOST_CAP}")
        if int(self.step_delta * WORD_VALUES) < 1:
            raise ValueError(f"delta is {self.delta}: a step of {float(self.step_delta):.3g} is below 2**-64, raise it")
        if self.step_epsilon < Decimal("1e-4"):
            raise ValueError(f"epsilon is {self.epsilon} for cap {self.cap}: a step is below 1e-4, raise it")

    @cached_property
    def step_epsilon(self) -> Decimal:
        """e0, the loss that one report in a bin may cause."""
        with localcontext() as context:
            context.prec, context.rounding = _DIGITS, ROUND_FLOOR
            return Decimal(self.epsilon) / (self.cap * self._sides)

    @cached_property
    def step_delta(self) -> Fraction:
        """d0, the probability with which a bin of one report may be kept."""
        with localcontext() as context:
            context.prec, context.rounding = _DIGITS, ROUND_CEILING
            growth = sum((self.step_epsilon * step).exp() for step in range(self.cap))
            return Fraction(self.delta) / (Fraction(growth) * self._sides)

    @property
    def _sides(self) -> int:
        return 2 if self.relation == "replace-one" else 1

    @property
    def replaced(self) -> tuple[float, float]:
        """(epsilon, delta) of one client replaced."""
        return self.steps_replaced * self.epsilon, self.steps_replaced * self.delta

    @property
    def steps_replaced(self) -> int:
        """How often one client replaced costs (epsilon, delta): a removal and an addition cost add-remove twice."""
        return 1 if self.relation == "replace-one" else 2

    @property
    def noise_scale(self) -> float:
        """Scale of the laplace rule's discrete noise: `1/e0`, rounded up."""
        return math.nextafter(float(1 / self.step_epsilon), math.inf)

    @cached_property
    def laplace_threshold(self) -> int:
        """The least T with `Pr[1 + noise >= T] <= d0`, of the laplace rule.

        The discrete Laplace law of scale 1/e0 has `Pr[noise >= t] = a^t / (1 + a)` for t >= 1, `a = exp(-e0)`.
        """
        with localcontext() as context:
            context.prec = _DIGITS
            ratio = (-self.step_epsilon).exp()
            bound = Decimal(self.step_delta.numerator) / Decimal(self.step_delta.denominator) * (1 + ratio)
            tail = (bound.ln() / -self.step_epsilon).to_integral_value(rounding=ROUND_CEILING)
        return 1 + max(1, int(tail))

    @cached_property
    def optimal_thresholds(self) -> tuple[int, ...]:
        """The optimal rule's `pi(c) 2**64` for counts c = 0, 1, ... up to the first with pi(c) = 1.

        `pi(0) = 0`, `pi(c) = min(e pi(c-1) + d0, 1 - (1 - pi(c-1) - d0)/e, 1)`, in integers, rounded so that both
        inequalities of (e0, d0) hold for the rounded probabilities.
        """
        with localcontext() as context:
            context.prec = _DIGITS
            growth = Fraction(self.step_epsilon.exp()) - _SLACK
        step = int(self.step_delta * WORD_VALUES)
        kept = [0]
        while kept[-1] < WORD_VALUES:
            rising = int(growth * kept[-1]) + step
            missing = max(0, WORD_VALUES - kept[-1] - step)
            kept.append(min(rising, WORD_VALUES - math.ceil(missing / growth), WORD_VALUES))
        return tuple(kept)

    def keep_probability(self, count: int) -> float:
        """Return the probability that a bin of `count` reports is kept."""
        if count < 1:
            return 0.0
        if self.name == "optimal":
            kept = self.optimal_thresholds
            return kept[min(count, len(kept) - 1)] / WORD_VALUES
        short = self.laplace_threshold - count
        with localcontext() as context:
            context.prec = _DIGITS
            ratio = (-self.step_epsilon).exp()
            if short >= 1:
                return float(ratio**short / (1 + ratio))
            return float(1 - ratio ** (1 - short) / (1 + ratio))

    def count_for(self, probability: float) -> int:
        """Return the least count that is kept with at least this probability."""
        if not 0.0 < probability < 1.0:
            raise ValueError(f"probability is {probability}, must be in (0, 1)")
        return bisect_left(range(1 << 62), probability, key=self.keep_probability)

    def keep_table(self) -> dict[int, float]:
        """Return keep probabilities by count: of one report, and where they pass 0.1 % to 99.9 %."""
        counts = {1, *(self.count_for(level) for level in _LEVELS)}
        return {count: self.keep_probability(count) for count in sorted(counts)}
