"""Composition: the guarantee of several releases about the same client together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import Literal

Bound = Literal["basic", "joint"]
_EXACT = Context(prec=60)


@dataclass(frozen=True)
class Loss:
    """The guarantee of one release: epsilon in nats, 0 or more and finite; delta in [0, 1)."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0.0):
            raise ValueError(f"epsilon is {self.epsilon}, must be 0 or more and finite")
        if not 0.0 <= self.delta < 1.0:
            raise ValueError(f"delta is {self.delta}, must be in [0, 1)")


@dataclass(frozen=True)
class Composed:
    """The guarantee of several releases together; epsilon is infinite if no finite epsilon is proved at delta.

    The bound is "basic", by sums; or "joint", by the privacy loss distributions of all releases (`privacy.joint`).
    """

    epsilon: float
    delta: float
    bound: Bound


def compose(losses: Iterable[Loss], delta: float | None = None) -> Composed:
    """Return the guarantee of all releases together by sums, for one client that is in each of them.

    `delta`, in [0, 1), is the delta at which epsilon is stated; epsilon is infinite if the deltas add up to more. A
    delta of None stands for the sum of the deltas. If losses may depend on results of earlier releases, only the sums
    are proved, and only if the sums stay within limits that were fixed beforehand (Rogers, Roth, Ullman, Vadhan 2016).
    """
    if delta is not None and not 0.0 <= delta < 1.0:
        raise ValueError(f"delta is {delta}, must be in [0, 1)")
    total = basic(losses)
    if delta is None:
        return total
    return Composed(total.epsilon if total.delta <= delta else math.inf, delta, "basic")


def basic(losses: Iterable[Loss]) -> Composed:
    """Return the sums of the epsilons and of the deltas.

    Each float is added as the decimal number that it prints as, so that three times 0.1 is 0.3 and not more than 0.3.

    Reference: Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, Theorem 1.
    """
    epsilon, delta = _sums(losses)
    return Composed(float(epsilon), float(delta), "basic")


def room_for(losses: Iterable[Loss], limit: Loss) -> Loss:
    """Return the largest loss that can be added to other losses within a limit, by sums, rounded down, or 0."""
    epsilon, delta = _sums(losses)
    if float(epsilon) > limit.epsilon or float(delta) > limit.delta:
        return Loss(0.0, 0.0)
    return Loss(_less(limit.epsilon, epsilon), _less(limit.delta, delta))


def grown(before: Iterable[Loss], after: Iterable[Loss]) -> Loss:
    """Return the growth of both sums, of epsilons and of deltas, rounded down; 0 for a sum that did not grow."""
    old, new = _sums(before), basic(after)
    return Loss(_less(new.epsilon, old[0]), _less(new.delta, old[1]))


def _sums(losses: Iterable[Loss]) -> tuple[Decimal, Decimal]:
    with localcontext(_EXACT):
        listed = list(losses)
        epsilon = sum((Decimal(repr(loss.epsilon)) for loss in listed), Decimal(0))
        return epsilon, sum((Decimal(repr(loss.delta)) for loss in listed), Decimal(0))


def _less(limit: float, spent: Decimal) -> float:
    """Return the difference, at least 0, rounded down: `spent` plus the difference never exceeds the limit."""
    with localcontext(_EXACT):
        left = max(Decimal(0), Decimal(repr(limit)) - spent)
    nearest = float(left)
    return nearest if Decimal(repr(nearest)) <= left else math.nextafter(nearest, 0.0)
