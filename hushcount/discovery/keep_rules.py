"""Keep rules: the probability that the auxiliary server reveals a bin, by the bin's number of reports."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Literal

from hushcount.maths.count_laws import CountLaw, count_law, geometric_ratio
from hushcount.maths.probability import require_epsilon
from hushcount.randomness import WORD_VALUES

RuleName = Literal["optimal", "laplace"]
Relation = Literal["replace-one", "add-remove"]
_DIGITS = 60
_BITS = 160
"""Fractional bits of e^R and e^S, rounded down."""
_LOSS_SHARE = Fraction(3, 4)
"""The share of epsilon for bins that lose reports, under replace-one.

With this share a value needs the fewest clients to be kept with probability 1/2.
"""
_LOSS_SHARE_WITH_COUNTS = Fraction(3, 5)
"""The share for bins that lose reports if counts are shown.

A larger share of epsilon for these bins would reveal values of fewer clients, but add more noise to counts.
"""
_LEVELS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
MOST_CAP = 1000


@dataclass(frozen=True)
class KeepRule:
    """Keep or drop each bin by its count alone, so that the set of kept bins is (epsilon, delta)-private.

    pi(c) is the probability to keep a bin of c reports. A lost report makes it less likely that a bin is kept, and a
    gained report makes it less likely that a bin is dropped. A rule limits both changes: `pi(c) <= e^R pi(c-1) + d` and
    `1 - pi(c-1) <= e^S (1 - pi(c)) + d`. A client sends at most `cap` reports, so bins lose at most cap reports and
    gain at most cap. t lost reports of one bin cost (epsilon, delta) = `(t R, d (1 + e^R + ... + e^((t-1) R)))`, and t
    gained reports cost the same with S for R; t reports in several independent bins cost less. If a client is added or
    removed, bins only gain or only lose. If a client is replaced, some bins lose and other bins gain, so R and S add
    up; under replace-one the optimal rule spends all of delta on bins that lose.

        add-remove            R = S = epsilon / cap                             d = delta / sum over i < cap of e^(i R)
        replace-one, optimal  R = 3/4 epsilon / cap, S = 1/4 epsilon / cap      likewise; 0 for a bin that gains
        replace-one, laplace  R = S = epsilon / (2 cap)                         half of that, for each of the two
        replace-one, counts   R = 3/5 epsilon / cap, S = 2/5 epsilon / cap      as optimal

    With counts one draw decides both whether a bin is kept and the count that it shows (`CountLaw`). The bounds for
    kept bins then hold for every set of shown counts.

    Attributes:
        name: "optimal", the greatest keep probability that these bounds allow at every count; "laplace", keep a bin if
            its count plus discrete Laplace noise reaches a threshold.
        epsilon: in [0.0001, 40].
        delta: in (0, 1).
        relation: which data sets are neighbours; the unit is one client.
        cap: l, the most reports of one client, in 1..MOST_CAP.
        counts: whether kept bins show their count with noise; with rule "optimal" only.

    Reference: Desfontaines, Voss, Gipson 2020 (optimal, R = S); [J] Algorithm 6 and Theorem 4 (laplace). The (epsilon,
    delta) of [J] Theorem 4 holds for add-remove and one report of each client only (docs/mathematics.md sections 6 and
    8).
    """

    name: RuleName
    epsilon: float
    delta: float
    relation: Relation = "replace-one"
    cap: int = 1
    counts: bool = False

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        if not 0.0 < self.delta < 1.0:
            raise ValueError(f"delta is {self.delta}, must be in (0, 1)")
        if not 1 <= self.cap <= MOST_CAP:
            raise ValueError(f"cap is {self.cap}, must be in 1..{MOST_CAP}")
        if self.counts and self.name != "optimal":
            raise ValueError(f"rule is {self.name}, must be optimal if counts are released")
        if int(self.step_delta * WORD_VALUES) < 1:
            raise ValueError(
                f"delta is {self.delta}, its step {float(self.step_delta):.3g} is below 2**-64: raise delta"
            )
        if self._loss(Fraction(1, self._sides)) < Decimal("1e-4"):
            raise ValueError(f"epsilon is {self.epsilon} for cap {self.cap}, its step is below 1e-4: raise epsilon")

    @cached_property
    def loss_epsilon(self) -> Decimal:
        """R: one report may raise the keep probability of a bin by a factor e^R, apart from d."""
        return self._loss(self._shares[0])

    @cached_property
    def gain_epsilon(self) -> Decimal:
        """S: one report may lower the drop probability of a bin by a factor e^S, apart from d."""
        return self._loss(self._shares[1])

    @cached_property
    def step_delta(self) -> Fraction:
        """d, the probability with which a bin of one report may be kept."""
        with localcontext() as context:
            context.prec, context.rounding = _DIGITS, ROUND_CEILING
            # Horner's rule needs only one slow exponential; exp rounds to the nearest, so the next number up is used.
            factor, growth = self.loss_epsilon.exp().next_plus(), Decimal(0)
            for _ in range(self.cap):
                growth = growth * factor + 1
            return Fraction(self.delta) / (Fraction(growth) * (self._sides if self._symmetric else 1))

    def _loss(self, share: Fraction) -> Decimal:
        """Return a share of epsilon for one of the client's reports, rounded down."""
        with localcontext() as context:
            context.prec, context.rounding = _DIGITS, ROUND_FLOOR
            return Decimal(self.epsilon) * share.numerator / (share.denominator * self.cap)

    @property
    def _shares(self) -> tuple[Fraction, Fraction]:
        """The shares of epsilon for bins that lose reports, and for bins that gain them."""
        if self._symmetric:
            return Fraction(1, self._sides), Fraction(1, self._sides)
        loss = _LOSS_SHARE_WITH_COUNTS if self.counts else _LOSS_SHARE
        return loss, 1 - loss

    @property
    def _symmetric(self) -> bool:
        return self.name == "laplace" or self.relation == "add-remove"

    @property
    def _sides(self) -> int:
        return 2 if self.relation == "replace-one" else 1

    @property
    def replaced(self) -> tuple[float, float]:
        """(epsilon, delta) if one client is replaced."""
        return self.steps_replaced * self.epsilon, self.steps_replaced * self.delta

    @property
    def steps_replaced(self) -> int:
        """How many times (epsilon, delta) a replaced client costs: 2 under add-remove, a removal and an addition."""
        return 1 if self.relation == "replace-one" else 2

    @cached_property
    def laplace_ratio(self) -> int:
        """a, the ratio of the laplace rule's discrete noise, in units of 2**-64: `e^-R`, rounded up."""
        return geometric_ratio(self.loss_epsilon)

    @property
    def noise_scale(self) -> float:
        """Scale of the laplace rule's discrete noise, `-1/ln a`: `1/R`, or a little more."""
        with localcontext() as context:
            context.prec = _DIGITS
            return float(-1 / self._ratio.ln())

    @property
    def _ratio(self) -> Decimal:
        return Decimal(self.laplace_ratio) / WORD_VALUES

    @cached_property
    def laplace_threshold(self) -> int:
        """The least T with `Pr[1 + noise >= T] <= d`, of the laplace rule.

        The discrete Laplace law of ratio a has `Pr[noise >= t] = a^t / (1 + a)` for t >= 1.
        """
        with localcontext() as context:
            context.prec = _DIGITS
            bound = Decimal(self.step_delta.numerator) / Decimal(self.step_delta.denominator) * (1 + self._ratio)
            tail = (bound.ln() / self._ratio.ln()).to_integral_value(rounding=ROUND_CEILING)
        return 1 + max(1, int(tail))

    @cached_property
    def optimal_thresholds(self) -> tuple[int, ...]:
        """The optimal rule's `pi(c) 2**64` for counts c = 0, 1, ... up to the first count from which on it is constant.

        `pi(0) = 0`, `pi(c) = min(e^R pi(c-1) + d, 1 - e^-S (1 - pi(c-1) - d), 1)`; in the second term d is 0 under
        replace-one. Integers are rounded so that both bounds hold for the rounded probabilities. If d is 0 in the
        second term, no bin is certain to be kept: the probability of a drop never falls below about 2**-64 / S.
        """
        rise, fall = _growth(self.loss_epsilon), _growth(self.gain_epsilon)
        step = int(self.step_delta * WORD_VALUES)
        forgiven = step if self._symmetric else 0
        kept = [0]
        while True:
            rising = (rise * kept[-1] >> _BITS) + step
            missing = max(0, WORD_VALUES - kept[-1] - forgiven)
            following = min(rising, WORD_VALUES + (-(missing << _BITS) // fall))
            if following == kept[-1]:
                return tuple(kept)
            kept.append(following)

    @cached_property
    def count_law(self) -> CountLaw:
        """The law of the counts that are released; ValueError for a rule without counts."""
        if not self.counts:
            raise ValueError(f"rule {self.name} releases no counts")
        return count_law(self.loss_epsilon, self.gain_epsilon, self.step_delta, self.cap)

    @property
    def count_deviation(self) -> float | None:
        """The standard deviation of the counts that are released; None for a rule without counts."""
        return self.count_law.standard_deviation if self.counts else None

    def keep_probability(self, count: int) -> float:
        """Return the probability that a bin of `count` reports is kept."""
        if count < 1:
            return 0.0
        if self.counts:
            return self.count_law.keep_probability(count)
        if self.name == "optimal":
            kept = self.optimal_thresholds
            return kept[min(count, len(kept) - 1)] / WORD_VALUES
        short = self.laplace_threshold - count
        with localcontext() as context:
            context.prec = _DIGITS
            ratio = self._ratio
            if short >= 1:
                return float(ratio**short / (1 + ratio))
            return float(1 - ratio ** (1 - short) / (1 + ratio))

    def count_for(self, probability: float) -> int:
        """Return the least count that is kept with at least this probability."""
        if not 0.0 < probability < 1.0:
            raise ValueError(f"probability is {probability}, must be in (0, 1)")
        return bisect_left(range(1 << 62), probability, key=self.keep_probability)

    def keep_table(self) -> dict[int, float]:
        """Return keep probabilities by count: of 1 report, and of the counts that first reach each of `_LEVELS`."""
        counts = {1, *(self.count_for(level) for level in _LEVELS)}
        return {count: self.keep_probability(count) for count in sorted(counts)}


def _growth(loss: Decimal) -> int:
    with localcontext() as context:
        context.prec, context.rounding = _DIGITS, ROUND_FLOOR
        # exp rounds to the nearest, so the next number down is used.
        return int(loss.exp().next_minus() * (1 << _BITS))
