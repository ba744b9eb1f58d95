"""Probabilities as integer thresholds out of 2**64, and the epsilon that they spend.

A client decides with `word < threshold`, so the true probability is `threshold / 2**64`. A threshold that spends an
epsilon is rounded toward less loss: p is rounded down, q is rounded up. Every stated epsilon is computed from the
rounded probability, and is itself rounded up.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.maths.variance import Numbers
from hushcount.randomness import WORD_VALUES

_DIGITS = 60
LEAST_EPSILON = 1e-4
LARGEST_EPSILON = 40.0


def require_epsilon(epsilon: float, name: str = "epsilon") -> None:
    """Raise ValueError unless epsilon is in [0.0001, 40]; outside this range 64-bit thresholds are too coarse."""
    if not (math.isfinite(epsilon) and LEAST_EPSILON <= epsilon <= LARGEST_EPSILON):
        raise ValueError(f"{name} is {epsilon}, must be a finite number in [{LEAST_EPSILON}, {LARGEST_EPSILON}]")


def spending_threshold(epsilon: float, width: int, size: int) -> int:
    """Return the threshold of `p = e*s / (e*s + m - s)`: a report of s (size) of m (width) cells then spends epsilon.

    The threshold is rounded down, so that its loss never exceeds epsilon.

    Reference: docs/mathematics.md section 3, subset; [J] Theorem 2 solved for p.
    """
    require_epsilon(epsilon)
    return _spending(Decimal(epsilon), width, size)


def _spending(epsilon: Decimal, width: int, size: int) -> int:
    with localcontext() as context:
        context.prec = _DIGITS
        weight = epsilon.exp() * size
        share = weight / (weight + (width - size))
        return int((share * WORD_VALUES).to_integral_value(rounding=ROUND_FLOOR))


def spending_probability(epsilon: float, width: Numbers, size: Numbers) -> FloatArray:
    """Return the p of `spending_threshold` as floats, broadcast over widths and sizes; only for planning."""
    weight = math.exp(epsilon) * size
    return np.asarray(weight / (weight + (width - size)), dtype=np.float64)


def probability_threshold(probability: float, name: str = "probability") -> int:
    """Return the threshold of a probability given as a number, rounded down."""
    if not (math.isfinite(probability) and 0.0 <= probability <= 1.0):
        raise ValueError(f"{name} is {probability}, must be in [0, 1]")
    return math.floor(Fraction(probability) * WORD_VALUES)


def symmetric_threshold(epsilon: float) -> int:
    """Return the threshold of `p = e^(epsilon/2) / (e^(epsilon/2) + 1)`, the probability to keep a bit and not flip it.

    Two items differ in two bits, so the losses of the two bits add up to epsilon. The threshold is rounded down, toward
    less loss.
    """
    require_epsilon(epsilon)
    return _spending(Decimal(epsilon) / 2, 2, 1)


def spending_flip(epsilon: float, keep: int) -> int:
    """Return the least threshold of q with `odds(q) >= odds(p) / e`, for p of `keep`; p and q spend epsilon at most."""
    require_epsilon(epsilon)
    if not 0 < keep < WORD_VALUES:
        raise ValueError(f"p is {keep / WORD_VALUES:.6g}, must be above 0 and below 1")
    with localcontext() as context:
        context.prec = _DIGITS
        odds = Decimal(keep) / (WORD_VALUES - keep) / Decimal(epsilon).exp()
        return int((odds / (1 + odds) * WORD_VALUES).to_integral_value(rounding=ROUND_CEILING))


def odds_ratio(keep: int, flip: int) -> float:
    """Return `ln(p (1-q) / (q (1-p)))` of two thresholds, rounded up to the next float: the loss of unary responses."""
    return _log_rounded_up(keep * (WORD_VALUES - flip), flip * (WORD_VALUES - keep))


def epsilon_spent(threshold: int, width: int, size: int) -> float:
    """Return `ln(p(m-s) / ((1-p)s))` of the rounded probability, rounded up to the next float.

    Reference: [J] Theorem 2, eq. (5).
    """
    return _log_rounded_up(threshold * (width - size), (WORD_VALUES - threshold) * size)


def _log_rounded_up(numerator: int, denominator: int) -> float:
    with localcontext() as context:
        context.prec = _DIGITS
        exact = (Decimal(numerator) / Decimal(denominator)).ln()
    nearest = float(exact)
    return nearest if Decimal(nearest) >= exact else math.nextafter(nearest, math.inf)
