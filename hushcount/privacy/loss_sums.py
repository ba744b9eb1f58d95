"""Sums of privacy losses: a pair of laws that dominates a curve, on a grid, and the law of many such losses together.

Reference: Zhu, Dong, Wang 2022, Proposition 9; Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022, for the grid; Gopi,
Lee, Wutschitz 2021, for the transforms; docs/mathematics.md section 7.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.maths.odds import Curve

ABOVE = 2.0**-40
"""A relative margin, larger than the rounding error of a curve."""
_UNIT = 2.0**-53
_ROUNDS = 32
_TILT_ROUNDS = 20
_LARGEST_EXPONENT = 300.0
_LARGEST_TILT = 2.5
"""The search for a tilt ends at this times `(1 + ln(1/delta)) / longest loss`, above a normal law's best tilt."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two laws P and Q that dominate a release in both orders, given by the losses ln P/Q on a grid.

    Attributes:
        step: of the grid, in nats.
        masses: float64[2m + 1], the probabilities under P of the losses from -m to m steps; rounded up, so that their
            sum is at least 1.
        lost: the probability under P of an infinite loss.
    """

    step: float
    masses: FloatArray
    lost: float

    @property
    def reach(self) -> int:
        """How many steps the grid has on each side: m."""
        return len(self.masses) // 2

    @property
    def losses(self) -> FloatArray:
        return self.step * np.arange(-self.reach, self.reach + 1, dtype=np.float64)

    def delta(self, epsilon: float) -> float:
        """Return the divergence of P and Q at an epsilon, which may be negative."""
        return self.lost + float(self.masses @ np.maximum(-np.expm1(np.minimum(epsilon - self.losses, 0.0)), 0.0))


def dominating_pair(curve: Curve, most: float, step: float) -> Pair:
    """Return a pair on the grid that dominates every release with this curve.

    The divergence of any two laws is a convex function of exp(epsilon). So the divergence of a release lies below its
    chord between two grid points, and beyond `most` below its value at `most`. The divergence of the pair has corners
    only at grid points, and at grid points it is nowhere below the curve: from the largest loss down, each mass is the
    least that reaches the curve at the next point. Every sum has terms of one sign, so its rounding error is relative,
    and smaller than the margin that is added to the curve. The negative losses mirror the positive losses, with P and Q
    exchanged, and so bound the other order of the neighbours.

    Args:
        curve: a delta for each epsilon at least 0, never below the true one in either order.
        most: epsilon from which on the curve counts as constant, above 0.
        step: of the grid, above 0.
    """
    reach = max(1, math.ceil(most / step))
    wanted = np.array([curve(step * place) for place in range(reach + 1)]) * (1.0 + ABOVE)
    shrink, gain = math.exp(-step), -math.expm1(-step)
    upper, reached, slope = np.zeros(reach + 1), wanted[reach], 0.0
    for place in range(reach, 0, -1):
        # `reached` is the divergence, at this point, of the masses above; `slope` is how fast the divergence falls with
        # exp(epsilon), times exp(epsilon).
        upper[place] = max(0.0, (wanted[place - 1] - reached) / gain - slope)
        slope += upper[place]
        reached += gain * slope
        slope *= shrink
    lower = upper[1:] * np.exp(-step * np.arange(1, reach + 1))
    rest = float(upper.sum() + lower.sum() + wanted[reach])
    upper[0] = max(0.0, 1.0 + ABOVE - rest)
    return Pair(step, np.concatenate([lower[::-1], upper]), float(wanted[reach]))


@dataclass(frozen=True, eq=False)
class Total:
    """The law of the sum of all losses, tilted by exp(tilt loss) so that masses that matter for delta are not small.

    The computed tilted law differs from the true one by at most `error` in the 2-norm. A transform of N = 2^b points
    has a relative error of 8 b units at most (Higham 2002, Theorem 24.2). A factor of absolute value at most 1 does not
    enlarge the error. Let z_t be the tilted law of the t-th kind of release, and k_t the number of these releases. The
    error is at most `2 u (sum k_t (8 b + 4) |z_t| + 8 b max |z_t|)`. The error changes delta by at most `error` times
    the 2-norm of the weights, and this product is added to delta.

    Attributes:
        losses: float64[m + 1], the losses of 0 and more.
        masses: float64[m + 1], tilted.
        tilt: at least 0.
        scale: logarithm of the number by which the masses were divided.
        lost: mass of an infinite loss.
        relative: a bound of the rounding error of masses and weights, relative to delta.
    """

    losses: FloatArray
    masses: FloatArray
    tilt: float
    scale: float
    lost: float
    error: float
    relative: float

    @classmethod
    def of(cls, pairs: Mapping[Pair, int], lost: float, delta: float) -> Total:
        tilt = _best_tilt(pairs, delta - lost)
        longest = sum(times * pair.reach for pair, times in pairs.items())
        bits = max(1, math.ceil(math.log2(2 * longest + 1)))
        spectrum = np.ones((1 << bits) // 2 + 1, dtype=np.complex128)
        scale = error = largest = rounding = 0.0
        for pair, times in pairs.items():
            exponents = tilt * pair.losses
            summed = _log_moment(pair, tilt)
            tilted = pair.masses * np.exp(exponents - summed)
            spectrum = spectrum * np.fft.rfft(tilted, 1 << bits) ** times
            norm = float(np.linalg.norm(tilted))
            error += 2.0 * _UNIT * times * (8.0 * bits + 4.0) * norm
            largest, scale = max(largest, norm), scale + times * summed
            rounding += 4.0 * _UNIT * times * (float(exponents[-1]) + abs(summed) + 16.0)
        masses = np.fft.irfft(spectrum, 1 << bits)[longest : 2 * longest + 1]
        (step,) = {pair.step for pair in pairs}
        error += 16.0 * _UNIT * bits * largest
        losses = step * np.arange(longest + 1, dtype=np.float64)
        rounding += 4.0 * _UNIT * (tilt * float(losses[-1]) + abs(scale) + len(losses))
        return cls(losses, np.maximum(masses, 0.0), tilt, scale, lost, error, rounding)

    def delta(self, epsilon: float) -> float:
        """Return a delta at an epsilon of at least 0; this delta is not below the delta of all pairs together."""
        first = int(np.searchsorted(self.losses, epsilon, side="right"))
        losses = self.losses[first:]
        exponents = self.scale - self.tilt * losses
        if len(losses) and exponents[0] > _LARGEST_EXPONENT:
            return 1.0
        weights = np.exp(exponents) * -np.expm1(epsilon - losses)
        inside = float(weights @ self.masses[first:]) + float(np.linalg.norm(weights)) * self.error
        return min(1.0, self.lost + inside * (1.0 + self.relative))

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon with a delta of at most `delta`, rounded up."""
        low, high = 0.0, float(self.losses[-1])
        if not self.delta(high) <= delta:
            return math.inf
        if self.delta(low) <= delta:
            return 0.0
        for _ in range(_ROUNDS):
            middle = (low + high) / 2.0
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high * (1.0 + ABOVE)


def _log_moment(pair: Pair, tilt: float) -> float:
    """Return the logarithm of the sum of masses times exp(tilt loss)."""
    exponents = tilt * pair.losses
    top = float(exponents[-1])
    return top + math.log(float(pair.masses @ np.exp(exponents - top)))


def _best_tilt(pairs: Mapping[Pair, int], delta: float) -> float:
    """Return the tilt that proves the least epsilon by Markov's inequality; near it no mass that matters is small."""
    longest = max(float(pair.losses[-1]) for pair in pairs)

    def epsilon(logarithm: float) -> float:
        tilt = math.exp(logarithm)
        return (sum(times * _log_moment(pair, tilt) for pair, times in pairs.items()) - math.log(delta)) / tilt

    low, high = math.log(1e-6 / longest), math.log(_LARGEST_TILT * (1.0 - math.log(delta)) / longest)
    for _ in range(_TILT_ROUNDS):
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (low, right) if epsilon(left) <= epsilon(right) else (left, high)
    return math.exp(low)
