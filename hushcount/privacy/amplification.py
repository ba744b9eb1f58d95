"""Amplification by shuffling: the epsilon of n shuffled reports, and the local epsilon for a wanted shuffled one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from hushcount.maths.odds import Point, of_group, points_about
from hushcount.maths.probability import LARGEST_EPSILON, LEAST_EPSILON
from hushcount.maths.roots import crossing
from hushcount.oracles.mechanism import Mechanism
from hushcount.privacy.blanket import BlanketLaw, blanket_law, general_law
from hushcount.privacy.divergence import divergence

Bound = Literal["general", "blanket"]
LEAST_GAIN = 0.01
"""A gain by shuffling below 1 % of the local epsilon is not claimed."""
LEAST_DELTA = 1e-200
"""At a smaller delta only the closed form's gain is claimed, because the smallest normal float is 2e-308."""
_CUT = 1e-8
_PRECISION = 1e-6
_LOCAL_PRECISION = math.log1p(1e-4)
_FLOOR = 1e-12
_FIRST_STEP = 1.01


@dataclass(frozen=True)
class Amplified:
    """The gain by shuffling: (epsilon, delta) of one report after shuffling, replace-one.

    Attributes:
        local: the local epsilon.
        general: the shuffled epsilon that holds for any mechanism with this local epsilon.
        blanket: the shuffled epsilon of this mechanism itself; None if this epsilon is not known.
        law: the blanket law of this mechanism; None if this law is not known.

    Privacy: against whoever sees only the shuffled reports, if n different honest clients sent them. All other clients
    may hold any values.
    """

    local: float
    reports: int
    delta: float
    general: float
    blanket: float | None
    law: BlanketLaw | None = None

    @property
    def bound(self) -> Bound | None:
        """The name of the smaller shuffled epsilon; None if it is not at least 1 % below the local epsilon."""
        if min(self.general, self.local if self.blanket is None else self.blanket) > (1.0 - LEAST_GAIN) * self.local:
            return None
        return "general" if self.blanket is None or self.general <= self.blanket else "blanket"

    @property
    def epsilon(self) -> float:
        """The smaller shuffled epsilon, or the local epsilon if shuffling gains nothing."""
        if self.bound is None:
            return self.local
        return self.general if self.blanket is None else min(self.general, self.blanket)

    def points(self, group: int = 1) -> tuple[Point, ...]:
        """Return guarantees for `group` reports of one client, near the best one for odds at a chance of delta."""
        law = self.law if self.bound == "blanket" else None
        return _points(law or general_law(self.local), self.reports, self.delta, group)


def amplify(mechanism: Mechanism, reports: int, delta: float) -> Amplified:
    """Return the gain by shuffling n reports of a mechanism; the computation takes well below a second.

    The mechanism's own bound exceeds the general one by rounding at most, because the general bound is that of the
    worst mechanism, binary randomised response. ValueError if reports or delta is out of range.
    """
    local, law = mechanism.epsilon, blanket_law(mechanism)
    general = shuffled_epsilon(general_law(local), reports, delta)
    return Amplified(local, reports, delta, general, shuffled_epsilon(law, reports, delta), law)


def amplify_any(epsilon: float, reports: int, delta: float) -> Amplified:
    """Return the gain by shuffling n reports of any mechanism with this local epsilon; ValueError as in `amplify`."""
    return Amplified(epsilon, reports, delta, shuffled_epsilon(general_law(epsilon), reports, delta), None)


@lru_cache(maxsize=64)
def shuffled_epsilon(law: BlanketLaw, reports: int, delta: float) -> float:
    """Return an epsilon such that n shuffled reports are (epsilon, delta)-private; at most the local one.

    The epsilon is at most 1e-6 of itself too large: it is the upper end of a bracket, where the divergence was checked
    to be at most delta. The cache serves a job with a ledger, which computes the epsilon before it reads reports and
    again after it has counted the reports.

    The law is `general_law(epsilon)` for any mechanism, or the mechanism's own. More than 10**10 reports count as
    10**10 reports.

    Reference: docs/mathematics.md section 7.
    """
    _require(reports, delta)
    if delta < LEAST_DELTA:
        return closed_form_epsilon(law.epsilon, reports, delta) or law.epsilon
    found = _divergence(law, reports, _CUT * delta)

    def over(logarithm: float) -> float:
        return _over(found.delta(law.epsilon * math.exp(logarithm)), delta)

    low, high = math.log(_FLOOR), -_PRECISION
    begins, ends = over(low), over(high)
    if ends > 0.0:
        return law.epsilon
    end = low if begins <= 0.0 else crossing(over, (low, begins), (high, ends), _PRECISION)[1]
    return law.epsilon * math.exp(end)


def _over(found: float, delta: float) -> float:
    """Return the logarithm of found / delta, clipped to finite bounds: it is above 0 if `found` exceeds delta."""
    return math.log1p(min(max((found - delta) / delta, _CUT - 1.0), 1.0 / LEAST_DELTA))


@lru_cache(maxsize=256)
def _needed(law: BlanketLaw, reports: int, delta: float, epsilon: float) -> float:
    return divergence(law, reports, _CUT * max(delta, LEAST_DELTA)).delta(epsilon)


@lru_cache(maxsize=64)
def _points(law: BlanketLaw, reports: int, delta: float, group: int) -> tuple[Point, ...]:
    if delta < LEAST_DELTA:
        return ((group * law.epsilon, 0.0),)
    found = _divergence(law, reports, _CUT * delta)
    start = group * shuffled_epsilon(law, reports, delta)
    return points_about(of_group(found.delta, group), delta, start, group * law.epsilon)


# The arrays of a law take some ten megabytes. The cache holds the two laws of one mechanism.
_divergence = lru_cache(maxsize=2)(divergence)


def largest_local_epsilon(
    wanted: float,
    reports: int,
    delta: float,
    law_at: Callable[[float], BlanketLaw | None] = general_law,
    near: float = LARGEST_EPSILON,
) -> float:
    """Return the largest local epsilon, to 1e-4 of itself, at which n shuffled reports have at most epsilon `wanted`.

    `law_at` returns the mechanism's law at a local epsilon, or None for the general law. The search takes few steps if
    the result is a little above `near`.

    Raises:
        ValueError: even a local epsilon of 0.0001 is too large, or an argument is out of range.
    """
    if not (math.isfinite(wanted) and wanted > 0.0):
        raise ValueError(f"shuffled_epsilon is {wanted}, must be above 0 and finite")
    _require(reports, delta)
    # The goal is below `wanted` by more than the precision of `shuffled_epsilon`, which then returns at most `wanted`.
    goal = wanted * (1.0 - 2.0 * _PRECISION)

    def room(epsilon: float) -> float:
        law = law_at(epsilon) or general_law(epsilon)
        return -_over(0.0 if law.epsilon <= wanted else _needed(law, reports, delta, goal), delta)

    low = min(max(wanted, LEAST_EPSILON), LARGEST_EPSILON)
    left = room(low)
    if left <= 0.0:
        raise ValueError(
            f"shuffled_epsilon is {wanted:g}, out of reach of {reports} reports at delta {delta:g} even at the least "
            "local epsilon: raise shuffled_epsilon or delta, or plan for more reports"
        )
    # `near` may be `wanted` itself, if the general bound gains nothing. The own bound of this mechanism may still gain.
    high, step = min(max(near, low * _FIRST_STEP), LARGEST_EPSILON), _FIRST_STEP
    while high > low and (over := room(high)) > 0.0:
        low, left = high, over
        high, step = min(high * step, LARGEST_EPSILON), step * step
    if low >= LARGEST_EPSILON:
        return low
    ends = (0.0, left), (math.log(high / low), over)
    return low * math.exp(crossing(lambda ratio: room(low * math.exp(ratio)), *ends, _LOCAL_PRECISION)[0])


def closed_form_epsilon(epsilon: float, reports: int, delta: float) -> float | None:
    """Return the shuffled epsilon of one report by a closed formula, or None if its theorem does not apply.

    `ln(1 + (e-1)(4 sqrt(2 ln(4/delta)) / sqrt((e+1) n) + 4/n))`, valid for `epsilon <= ln(n / (8 ln(2/delta)) - 1)`.
    The formula is for comparison, and for deltas below 1e-200. The bound of `shuffled_epsilon` is about four times
    tighter.

    Reference: [J] Theorem 1, eq. (1) and (2), after Feldman, McMillan, Talwar 2023.
    """
    _require(1, delta)
    if not (math.isfinite(epsilon) and epsilon > 0.0):
        raise ValueError(f"epsilon is {epsilon}, must be above 0 and finite")
    room = reports / (8.0 * math.log(2.0 / delta)) - 1.0
    if room <= 0.0 or epsilon > math.log(room):
        return None
    e = math.exp(epsilon)
    spread = 4.0 * math.sqrt(2.0 * math.log(4.0 / delta)) / math.sqrt((e + 1.0) * reports) + 4.0 / reports
    return min(epsilon, math.log1p((e - 1.0) * spread))


def _require(reports: int, delta: float) -> None:
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta}, must be in (0, 1)")
    if reports < 1:
        raise ValueError(f"reports is {reports}, must be at least 1")
