"""Privacy figures as text for people, rounded so that no figure claims more privacy than is guaranteed."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal, localcontext

from hushcount.maths.odds import Odds

LARGEST = 700.0
"""From this epsilon on, no factor bounds the odds that a double can hold: exp(710) is infinite."""


def rounded_up(value: float) -> str:
    """Return the value in four significant digits, rounded up, so that a stated loss is not below the true one."""
    return f"{float(_ceiling(value, 4)):.4g}"


def rounded_down(value: float) -> str:
    """Return the value, at least 0, in four significant digits, rounded down."""
    return f"{abs(float(_ceiling(-value, 4))):.4g}"


def users(number: float) -> str:
    """Return a number of users in four significant digits, from 1,000 on as a whole number: 9.099, 43,098."""
    return f"{number:,.0f}" if number >= 1000.0 else f"{number:.4g}"


def odds_of(epsilon: float) -> str:
    """Return the largest change of odds, rounded up: in per cent below a factor of two, else as a factor."""
    gain = math.expm1(epsilon) if epsilon < LARGEST else math.inf
    if gain < 1.0:
        return f"{_ceiling(100.0 * gain, 2):f} % at most"
    return f"a factor of {_ceiling(gain + 1.0, 3):f} at most" if math.isfinite(gain) else "any factor"


def within(odds: Odds) -> str:
    """Return the largest change of odds, and the chance of a larger change."""
    chance = f", except with a chance of {_chance(odds.chance)}" if odds.chance else ""
    return f"{odds_of(odds.epsilon)}{chance}"


def _chance(chance: float) -> str:
    """Return a chance as 1 in N, rounded up; N has two significant digits, because 1 in 9,090,909 would seem exact."""
    whole = math.floor(1.0 / chance)
    scale = 10 ** max(0, len(str(whole)) - 2)
    return f"1 in {whole // scale * scale:,}"


def _ceiling(value: float, digits: int) -> Decimal:
    with localcontext() as context:
        context.prec, context.rounding = digits, ROUND_CEILING
        return +Decimal(repr(value))
