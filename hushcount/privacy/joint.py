"""Joint composition: the guarantee of several releases together, from the whole curve of each, not from one pair.

The curve of a release is a delta for every epsilon at least 0, the same for both orders of two neighbours. A curve
fixes a pair of laws that are at least as easy to tell apart as the release on any neighbours (`loss_sums`). The
product of the pairs dominates all releases together, even if an adversary who saw the earlier results chooses the
values and the other clients. The product dominates if

- each release is drawn afresh: no client repeats an answer;
- the curves and their number do not depend on results: parameters and numbers of reports are fixed.

The losses of independent pairs add up: the Fourier transform of the law of the sum is the product of the transforms of
their laws.

Reference: Zhu, Dong, Wang 2022, Theorem 10; docs/mathematics.md section 7; docs/adr/0039-joint-composition.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
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
from hushcount.privacy.loss_sums import ABOVE, Total, dominating_pair
from hushcount.privacy.moved import Moved

LEAST_DELTA = 1e-30
"""Nothing is composed jointly at a smaller delta."""
MOST_PARTS = 100_000
_STEPS = 128
"""Steps of the grid in the root mean square of the largest losses of the releases."""
_LEAST_STEP = 1e-15
"""The finest grid: with finer ones a tilt would be no float. A larger step only rounds epsilon up further."""
_MOST_POINTS = 1 << 19
_POINTS = 64
"""Intervals of a window's curve; within each, a chord bounds the curve."""
_TAIL = 1e-3
_CUT = 1e-4


@dataclass(frozen=True)
class Window:
    """The mixed reports of one window; one client sent `of_client` of them.

    Args:
        law: of the mechanism that made the reports, as `amplification.amplify` uses it.
        reports: the number of honest reports, each from another client except for the reports of the one client. Fewer
            reports hide no better.
        of_client: how many reports the client sent, drawn independently, at least 1.
    """

    law: BlanketLaw
    reports: int
    of_client: int = 1

    @property
    def most(self) -> float:
        """The local epsilon of all the client's reports: no loss is larger."""
        return self.of_client * self.law.epsilon

    def curve(self, cut: float) -> Curve:
        """Return the curve, replace-one; the mass that is cut adds about `cut` to the delta of one report."""
        found = divergence(self.law, self.reports, cut)
        return of_group(found.delta, self.of_client)


Curved: TypeAlias = Window | Moved
"""A release of counts with a known curve: of mixed reports, or with noise of the mixes."""
Part: TypeAlias = Curved | Loss
"""A release: with a known curve, or with one known pair (epsilon, delta) and any curve through that pair."""


def part_of(gained: Amplified, of_client: int = 1) -> Part:
    """Return the release of a batch with this gain by shuffling and `of_client` reports of one client."""
    if gained.bound is None:
        return Loss(of_client * gained.local, 0.0)
    blanket = gained.law if gained.bound == "blanket" else None
    return Window(blanket or general_law(gained.local), gained.reports, of_client)


def joint_epsilon(parts: Iterable[Part], delta: float) -> float:
    """Return an epsilon, or infinity, such that all releases together are (epsilon, delta)-private for one client.

    The docstring of the module states the conditions. The epsilon is not below the true one, because curves are rounded
    up to a grid, and mass beyond the grid is added to delta. This mass is at most a thousandth of delta if the curves
    fall that far. The transforms are long enough that nothing wraps around, and their rounding error is added, see
    `loss_sums.Total`.

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
    """Return the joint bound at the delta of `other` if its epsilon is smaller, else `other`."""
    listed = list(parts)
    if other.delta < LEAST_DELTA or len(listed) > MOST_PARTS:
        return other
    epsilon = joint_epsilon(listed, other.delta)
    return Composed(epsilon, other.delta, "joint") if epsilon < other.epsilon else other


@lru_cache(maxsize=64)
def _joint_epsilon(counted: frozenset[tuple[Part, int]], delta: float) -> float:
    if not counted:
        return 0.0
    # The releases are sorted, so that sums do not depend on their order.
    ordered = sorted(counted, key=repr)
    tail = _TAIL * delta / sum(times for _, times in ordered)
    curves = {part: _curve(part, tail) for part, _ in ordered}
    number = sum(times for _, times in ordered)
    squares = sum(times * curves[part][1] ** 2 for part, times in ordered)
    whole = 2.0 * sum(times * curves[part][1] for part, times in ordered)
    step = max(math.sqrt(squares / number) / _STEPS, whole / _MOST_POINTS, _LEAST_STEP)
    pairs = {dominating_pair(*curves[part], step): times for part, times in ordered}
    lost = sum(times * pair.lost for pair, times in pairs.items()) * (1.0 + number * 2.0 * ABOVE)
    if lost >= delta:
        return math.inf
    return Total.of(pairs, lost, delta).epsilon(delta)


def _curve(part: Part, tail: float) -> tuple[Curve, float]:
    """Return the curve of a release, and an epsilon at which delta is at most `tail`, or near the least delta."""
    if isinstance(part, Loss):
        return _of_loss(part), part.epsilon
    if isinstance(part, Moved):
        return part.curve(), part.most
    # The tail is rounded down to a power of 1000, so a window's cached curve is used again when other releases are
    # added.
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
    """Return epsilons from 0 on, and a window's deltas there; the last is at most `tail`, or near the least value."""
    curve, high = window.curve(_CUT * tail), window.most
    least = max(tail, 2.0 * curve(high * (1.0 - 1e-9)))
    low = 1e-9 * high
    while high > 1.02 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if curve(middle) <= least else (middle, high)
    places = np.linspace(0.0, high, _POINTS + 1)
    return places, np.array([curve(float(place)) for place in places])


def _of_loss(loss: Loss) -> Curve:
    """Return the largest curve of any (epsilon, delta)-private release: Kairouz, Oh, Viswanath 2017, Theorem 3.2."""

    def curve(epsilon: float) -> float:
        if epsilon >= loss.epsilon:
            return loss.delta
        hidden = math.exp(epsilon - loss.epsilon)
        return loss.delta + (1.0 - loss.delta) * (1.0 - hidden) / (1.0 + math.exp(-loss.epsilon))

    return curve
