"""Figures of a guarantee for people: rounded up, so that none claims more than what holds."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, localcontext


def ceiling(value: float, digits: int) -> Decimal:
    """Return a number of so many significant digits, not below the value."""
    with localcontext() as context:
        context.prec, context.rounding = digits, ROUND_CEILING
        return +Decimal(repr(value))


def rounded_up(value: float) -> str:
    """Return a number in four significant digits, not below the value."""
    return f"{float(ceiling(value, 4)):.4g}"
