"""Joint composition: what several releases come to together, from the whole curve of each and not from one pair.

A release has a curve: for every epsilon at least 0 a delta, the same for both orders of two neighbours. Such a curve
fixes a pair of laws that is at least as easy to tell apart as the release on any neighbours (`dominating_pair`). The
product of the pairs dominates all releases together, also if what clients hold, and who the others are, is chosen by
whoever saw the earlier results. It holds if

- each release is drawn afresh: no client repeats an answer;
- the curves, and how many there are, do not depend on results: fixed parameters, fixed numbers of reports.

The losses of independent pairs add up: the law of their sum is a product of Fourier transforms.

Reference: Zhu, Dong, Wang 2022, Theorem 10 and Proposition 9; Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022, for
the grid; Gopi, Lee, Wutschitz 2021, for the transforms; docs/mathematics.md section 7.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.maths.odds import Curve, of_group
from hushcount.privacy.amplification import Amplified
from hushcount.privacy.blanket import BlanketLaw, general_law
from hushcount.privacy.composition import Composed, Loss
from hushcount.privacy.divergence import divergence

LEAST_DELTA = 1e-30
"""Nothing is composed at a smaller delta."""
MOST_PARTS = 100_000
_STEPS = 128
"""Of the grid, for the root mean square of what a release loses at most."""
_MOST_POINTS = 1 << 19
_POINTS = 64
"""Of a window's curve; between them it is bounded by chords."""
_TAIL = 1e-3
_CUT = 1e-4
_UNIT = 2.0**-53
_ABOVE = 2.0**-40
"""More than rounding can take from a curve, relative."""
_ROUNDS = 48
_LARGEST_EXPONENT = 300.0
_LARGEST_TILT = 2.5
"""Times ln(1/delta), over the longest loss: what is normal has its best tilt below."""


@dataclass(frozen=True)
class Window:
    """The mixed reports of one window, of which one client has a few.

    Args:
        law: of their mechanism, as `amplification.amplify` uses it.
        reports: honest ones, each by another client but for those of the one; fewer hide no better.
        of_client: how many of them the client has, drawn independently, at least 1.
    """

    law: BlanketLaw
    reports: int
    of_client: int = 1

    @property
    def most(self) -> float:
        """The local epsilon of all the client's reports: no loss is larger."""
        return self.of_client * self.law.epsilon

    def curve(self, cut: float) -> Curve:
        """Return a delta for each epsilon, replace-one, `cut` larger than needed at most."""
        found = divergence(self.law, self.reports, cut)
        return of_group(found.delta, self.of_client)


Part: TypeAlias = Window | Loss
"""A release: mixed reports, or any with one pair (epsilon, delta), whatever the rest of its curve is."""


def part_of(gained: Amplified, of_client: int = 1) -> Part:
    """Return the release of a batch that shuffling gains this for, with so many reports of one client."""
    if gained.bound is None:
        return Loss(of_client * gained.local, 0.0)
    blanket = gained.law if gained.bound == "blanket" else None
    return Window(blanket or general_law(gained.local), gained.reports, of_client)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two laws P and Q that dominate a release in both orders, given by the losses ln P/Q on a grid.

    Attributes:
        step: of the grid, in nats.
        masses: float64[2m + 1], P of the losses from -m to m steps; in sum at least 1, by rounding up.
        lost: P of an infinite loss.
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

    The divergence of any two laws is a convex function of exp(epsilon). So between two points of the grid it lies below
    their chord; beyond `most` below its value there. The pair's is a function with corners on the grid only, that is
    nowhere below the curve at its points: from the largest down, each mass is the least that reaches the curve at the
    next point. Every sum has terms of one sign, so that rounding is relative, and less than what is added to the curve.
    The other half of the pair is its mirror image, P exchanged with Q: it bounds the other order of the neighbours.

    Args:
        curve: a delta for each epsilon at least 0, never below the true one in either order.
        most: epsilon from which on the curve counts as constant, above 0.
        step: of the grid, above 0.
    """
    reach = max(1, math.ceil(most / step))
    wanted = np.array([curve(step * place) for place in range(reach + 1)]) * (1.0 + _ABOVE)
    shrink, gain = math.exp(-step), -math.expm1(-step)
    upper, reached, slope = np.zeros(reach + 1), wanted[reach], 0.0
    for place in range(reach, 0, -1):
        # Of the masses above: `reached` is their divergence here, `slope` its fall with exp(epsilon), times that.
        upper[place] = max(0.0, (wanted[place - 1] - reached) / gain - slope)
        slope += upper[place]
        reached += gain * slope
        slope *= shrink
    lower = upper[1:] * np.exp(-step * np.arange(1, reach + 1))
    rest = float(upper.sum() + lower.sum() + wanted[reach])
    upper[0] = max(0.0, 1.0 + _ABOVE - rest)
    return Pair(step, np.concatenate([lower[::-1], upper]), float(wanted[reach]))


def joint_epsilon(parts: Iterable[Part], delta: float) -> float:
    """Return an epsilon such that all releases together are (epsilon, delta)-private for one client; or infinity.

    For the conditions see the module. The number is not below the true one: curves are rounded up to a grid; what lies
    beyond it is added to delta, a thousandth of delta at most where curves fall so far; the transforms are long enough
    that nothing wraps around; and their rounding error is added, see `_Total`.

    Raises:
        ValueError: delta is not in [1e-30, 1), or there are more than 100,000 releases.
    """
    if not LEAST_DELTA <= delta < 1.0:
        raise ValueError(f"delta is {delta}, must be in [{LEAST_DELTA}, 1)")
    counted = Counter(part for part in parts if not (isinstance(part, Loss) and part.epsilon == part.delta == 0.0))
    if counted.total() > MOST_PARTS:
        raise ValueError(f"releases are {counted.total()}, must be at most {MOST_PARTS}")
    return _joint_epsilon(frozenset(counted.items()), delta)


def smaller(other: Composed, parts: Iterable[Part]) -> Composed:
    """Return the joint bound at another's delta if it is smaller, else the other."""
    listed = list(parts)
    if other.delta < LEAST_DELTA or len(listed) > MOST_PARTS:
        return other
    epsilon = joint_epsilon(listed, other.delta)
    return Composed(epsilon, other.delta, "joint") if epsilon < other.epsilon else other


@lru_cache(maxsize=64)
def _joint_epsilon(counted: frozenset[tuple[Part, int]], delta: float) -> float:
    if not counted:
        return 0.0
    # One order, so that sums do not depend on that of the releases.
    ordered = sorted(counted, key=repr)
    tail = _TAIL * delta / sum(times for _, times in ordered)
    curves = {part: _curve(part, tail) for part, _ in ordered}
    number = sum(times for _, times in ordered)
    squares = sum(times * curves[part][1] ** 2 for part, times in ordered)
    whole = 2.0 * sum(times * curves[part][1] for part, times in ordered)
    step = max(math.sqrt(squares / number) / _STEPS, whole / _MOST_POINTS)
    if step == 0.0:
        return 0.0 if sum(times * curves[part][0](0.0) for part, times in ordered) <= delta else math.inf
    pairs = {dominating_pair(*curves[part], step): times for part, times in ordered}
    lost = sum(times * pair.lost for pair, times in pairs.items()) * (1.0 + number * 2.0 * _ABOVE)
    if lost >= delta:
        return math.inf
    return _Total.of(pairs, lost, delta).epsilon(delta)


def _curve(part: Part, tail: float) -> tuple[Curve, float]:
    """Return the curve of a release, and an epsilon where it is at most `tail`, or as low as it comes."""
    if isinstance(part, Loss):
        return _of_loss(part), part.epsilon
    # Of windows that come one by one, each is computed once.
    places, deltas = _sampled(part, 1000.0 ** math.floor(math.log(tail, 1000.0)))
    end = float(places[-1])

    def chords(epsilon: float) -> float:
        # A convex function of exp(epsilon) is nowhere above its chords.
        if epsilon >= end:
            return float(deltas[-1])
        left = int(np.searchsorted(places, epsilon, side="right")) - 1
        share = math.expm1(epsilon - places[left]) / math.expm1(places[left + 1] - places[left])
        return float((1.0 - share) * deltas[left] + share * deltas[left + 1])

    return chords, end


@lru_cache(maxsize=512)
def _sampled(window: Window, tail: float) -> tuple[FloatArray, FloatArray]:
    """Return epsilons from 0 on, and the curve of a window there; the last is at most `tail`, or as low as it comes."""
    curve, high = window.curve(_CUT * tail), window.most
    least = max(tail, 2.0 * curve(high * (1.0 - 1e-9)))
    low = 1e-9 * high
    while high > 1.02 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if curve(middle) <= least else (middle, high)
    places = np.linspace(0.0, high, _POINTS + 1)
    return places, np.array([curve(float(place)) for place in places])


def _of_loss(loss: Loss) -> Curve:
    """Return the largest curve of what is (epsilon, delta)-private: Kairouz, Oh, Viswanath 2017, Theorem 3.2."""

    def curve(epsilon: float) -> float:
        if epsilon >= loss.epsilon:
            return loss.delta
        hidden = math.exp(epsilon - loss.epsilon)
        return loss.delta + (1.0 - loss.delta) * (1.0 - hidden) / (1.0 + math.exp(-loss.epsilon))

    return curve


@dataclass(frozen=True, eq=False)
class _Total:
    """The law of the sum of all losses, tilted by exp(tilt loss) so that what matters for delta is not small.

    The tilted law y is right to `error` in its 2-norm. For a transform of N = 2^b points the relative error is 8 b
    units at most (Higham 2002, Theorem 24.2); a factor of absolute value at most 1 carries it on unchanged; so with
    z_t the tilted law of the t-th kind of release, of k_t, the error is at most `2 u (sum k_t (8 b + 4) |z_t| + 8 b max
    |z_t|)`. What that can change in delta is at most `error` times the 2-norm of the weights, and is added.

    Attributes:
        losses: float64[m + 1], those of 0 and more.
        masses: float64[m + 1], tilted.
        tilt: at least 0.
        scale: logarithm of what the masses were divided by.
        lost: mass of an infinite loss.
        relative: bounds the rounding of masses and weights, relative to delta.
    """

    losses: FloatArray
    masses: FloatArray
    tilt: float
    scale: float
    lost: float
    error: float
    relative: float

    @classmethod
    def of(cls, pairs: Mapping[Pair, int], lost: float, delta: float) -> _Total:
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
        """Return a delta at an epsilon at least 0, not below that of the pairs together."""
        first = int(np.searchsorted(self.losses, epsilon, side="right"))
        losses = self.losses[first:]
        exponents = self.scale - self.tilt * losses
        if len(losses) and exponents[0] > _LARGEST_EXPONENT:
            return 1.0
        weights = np.exp(exponents) * -np.expm1(epsilon - losses)
        inside = float(weights @ self.masses[first:]) + float(np.linalg.norm(weights)) * self.error
        return min(1.0, self.lost + inside * (1.0 + self.relative))

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon with a delta of at most `delta`, from above."""
        low, high = 0.0, float(self.losses[-1])
        if not self.delta(high) <= delta:
            return math.inf
        if self.delta(low) <= delta:
            return 0.0
        for _ in range(_ROUNDS):
            middle = (low + high) / 2.0
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high * (1.0 + _ABOVE)


def _log_moment(pair: Pair, tilt: float) -> float:
    """Return the logarithm of the sum of masses times exp(tilt loss)."""
    exponents = tilt * pair.losses
    top = float(exponents[-1])
    return top + math.log(float(pair.masses @ np.exp(exponents - top)))


def _best_tilt(pairs: Mapping[Pair, int], delta: float) -> float:
    """Return the tilt that proves the least epsilon by Markov's inequality: near it no mass that matters is small."""
    longest = max(float(pair.losses[-1]) for pair in pairs)

    def epsilon(logarithm: float) -> float:
        tilt = math.exp(logarithm)
        return (sum(times * _log_moment(pair, tilt) for pair, times in pairs.items()) - math.log(delta)) / tilt

    low, high = math.log(1e-6 / longest), math.log(_LARGEST_TILT * (1.0 - math.log(delta)) / longest)
    for _ in range(_ROUNDS):
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (low, right) if epsilon(left) <= epsilon(right) else (left, high)
    return math.exp(low)
