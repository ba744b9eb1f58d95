"""The noise of counts that are released with discovered values: exact integers with an upper limit."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import cached_property

from hushcount.randomness import WORD_VALUES

_DIGITS = 60
_SLACK = Decimal("1e-40")
_FARTHEST = 1 << 62


@dataclass(frozen=True)
class CountLaw:
    """The law of the noise Z: a bin of c reports shows c + Z if c + Z is above B, and is dropped otherwise.

    `f(z) = Pr[Z = z]` is proportional to `a^z` for 0 <= z <= B, to `b^-z` for z < 0, and 0 for z > B. So one draw
    decides both whether a bin is kept and which count it shows. A bin without reports is never kept.

    If a bin loses t reports, `f(z) <= a^-t f(z + t)` except at the t values z > B - t, and the bin is at least as
    likely to be dropped as before. So t lost reports cost (epsilon, delta) = (-t ln a, Pr[Z > B - t]). If a bin gains t
    reports, `f(z) <= b^-t f(z - t)`. This inequality also bounds the probability of a drop, because that is a sum of f
    up to some z. So t gained reports cost epsilon = -t ln b and delta = 0. `Pr[Z > B - t]` grows faster than in
    proportion to t up to t = B + 1, so l reports in several independent bins cost no more than in one bin.

    Attributes:
        right: a in units of 2**-64, `e^-R` rounded up.
        left: b in units of 2**-64, `e^-S` rounded up.
        most: B, the greatest value of Z.
    """

    right: int
    left: int
    most: int

    @property
    def epsilon(self) -> float:
        """R + S, which a report costs that leaves one bin for another, rounded up."""
        return -(self._log_right + self._log_left) * (1.0 + 2.0**-50)

    @property
    def threshold(self) -> int:
        """The least count that is shown, B + 1."""
        return self.most + 1

    def chance(self, noise: int) -> float:
        """Return f."""
        if noise > self.most:
            return 0.0
        return math.exp(noise * self._log_right if noise >= 0 else -noise * self._log_left) / self._all[0]

    def at_least(self, noise: int) -> float:
        """Return Pr[Z >= noise]."""
        return self._sums(noise)[0] / self._all[0]

    def at_most(self, noise: int) -> float:
        """Return Pr[Z <= noise]; for negative noise it is summed directly, so that a small probability is exact."""
        if noise >= 0:
            return 1.0 - self.at_least(noise + 1)
        return _tail(self._log_left, -noise)[0] / self._all[0]

    def keep_probability(self, count: int) -> float:
        """Return the probability that a bin of `count` reports is kept."""
        return self.at_least(self.threshold - count) if count >= 1 else 0.0

    @property
    def mean(self) -> float:
        """E[Z], which analysts subtract from a shown count."""
        return self._all[1] / self._all[0]

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of Z, and so of the shown count of a bin that is almost certain to be kept."""
        mass, first, second = self._all
        return math.sqrt(second / mass - (first / mass) ** 2)

    def quantile(self, probability: float) -> int:
        """Return the least z with Pr[Z <= z] >= probability."""
        if not 0.0 < probability < 1.0:
            raise ValueError(f"probability is {probability}, must be in (0, 1)")
        lowest = -bisect_left(range(_FARTHEST), True, key=lambda depth: self.at_most(-depth) < probability)
        return bisect_left(range(lowest, self.most), probability, key=self.at_most) + lowest

    def bias(self, count: int) -> float:
        """Return by how much `shown - mean` is too high on average, among kept bins of `count` reports."""
        if count < 1:
            raise ValueError(f"count is {count}, must be at least 1")
        mass, first, _ = self._sums(self.threshold - count)
        return first / mass - self.mean

    def interval(self, shown: int, confidence: float) -> tuple[int, int]:
        """Return the limits of a confidence interval for the true count of a kept bin that shows `shown`.

        Given that the bin was kept, the interval contains its true count with at least this confidence. Low and high
        follow from the law of the count that a kept bin shows; this count grows with the true count, because f is
        log-concave.

        Raises:
            ValueError: `shown` is below the threshold, so no bin shows it, or the limits are beyond 2**62.
        """
        if shown < self.threshold:
            raise ValueError(f"shown count is {shown}, must be at least {self.threshold}")
        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence is {confidence}, must be in (0, 1)")
        error = (1.0 - confidence) / 2.0
        counts = range(1, _FARTHEST)
        low = bisect_left(counts, error, key=lambda count: self._shows_at_least(shown, count))
        beyond = bisect_left(counts, True, key=lambda count: 1.0 - self._shows_at_least(shown + 1, count) < error)
        if max(low, beyond) >= len(counts):
            raise ValueError(f"shown count is {shown}, must be smaller: its interval would exceed 2**62")
        return counts[low], max(counts[low], counts[beyond] - 1)

    def _shows_at_least(self, shown: int, count: int) -> float:
        return self.at_least(shown - count) / self.keep_probability(count)

    @cached_property
    def _log_right(self) -> float:
        return math.log1p(-(WORD_VALUES - self.right) / WORD_VALUES)

    @cached_property
    def _log_left(self) -> float:
        return math.log1p(-(WORD_VALUES - self.left) / WORD_VALUES)

    @cached_property
    def _all(self) -> tuple[float, float, float]:
        # The weights of all noise below -2**62 are 0.0 as floats.
        return self._sums(-_FARTHEST)

    def _sums(self, least: int) -> tuple[float, float, float]:
        """Return the sums of 1, z and z^2 times the weights of all z >= least."""
        if least > self.most:
            return 0.0, 0.0, 0.0
        start, cut = _tail(self._log_right, max(0, least)), _tail(self._log_right, self.most + 1)
        mass, first, second = (one - other for one, other in zip(start, cut, strict=True))
        if least >= 0:
            return mass, first, second
        near, far = _tail(self._log_left, 1), _tail(self._log_left, 1 - least)
        return mass + near[0] - far[0], first - near[1] + far[1], second + near[2] - far[2]


def _tail(log_ratio: float, start: int) -> tuple[float, float, float]:
    """Return the sums of `j^i ratio^j` over j >= start, for i = 0, 1, 2."""
    ratio, rest, weight = math.exp(log_ratio), -math.expm1(log_ratio), math.exp(log_ratio * start)
    mean, square = ratio / rest, ratio * (1.0 + ratio) / rest**2
    return (
        weight / rest,
        weight / rest * (start + mean),
        weight / rest * (start**2 + 2.0 * start * mean + square),
    )


def count_law(loss: Decimal, gain: Decimal, delta: Fraction, cap: int) -> CountLaw:
    """Return the law with the least B >= cap - 1 for which `f(B) <= delta`.

    Args:
        loss: R, the most epsilon that one report may cost in a bin that loses it.
        gain: S, the most epsilon that one report may cost in a bin that gains it.
        delta: of one report. `cap` reports that leave one bin then cost delta times the sum of `e^(i R)` over i < cap.
        cap: l, reports of one client.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        right, left = (geometric_ratio(each) for each in (loss, gain))
        a, b = Decimal(right) / WORD_VALUES, Decimal(left) / WORD_VALUES
        allowed = Decimal(delta.numerator) / Decimal(delta.denominator) * (1 - _SLACK)
        # f(B) = a^B / (b / (1 - b) + (1 - a^(B + 1)) / (1 - a)), solved for a^B.
        power = allowed * (b / (1 - b) + 1 / (1 - a)) / (1 + allowed * a / (1 - a))
        most = (power.ln() / a.ln()).to_integral_value(rounding=ROUND_CEILING)
    return CountLaw(right, left, max(cap - 1, int(most)))


def geometric_ratio(loss: Decimal) -> int:
    """Return `e^-loss` in units of 2**-64, rounded up, so that noise with this ratio costs at most `loss`."""
    return int(((-loss).exp() * WORD_VALUES).to_integral_value(rounding=ROUND_CEILING))
