"""Composition: what several releases about the same client come to together."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import Literal

Bound = Literal["basic", "numerical", "joint"]
_LEAST_DELTA = 1e-10
_SLACK = 1e-11
_EXACT = Context(prec=60)
_STEPS = 1 << 15
_STEPS_A_LOSS = 64


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
    """The guarantee of several releases together; epsilon is infinite if they have none at this delta.

    The bound is "basic", sums; "numerical", by privacy loss distributions of pairs (epsilon, delta); or "joint", by
    those of whole curves (`privacy.joint`).
    """

    epsilon: float
    delta: float
    bound: Bound


def compose(losses: Iterable[Loss], delta: float | None = None, *, adaptive: bool = False) -> Composed:
    """Return the smaller of the two bounds on all releases together, for one client that is in each of them.

    `delta`, in [0, 1), is where to state epsilon; None for the sum of the deltas, and then basic composition. If losses
    may depend on what earlier releases told (`adaptive`), only sums hold, and these only if they keep within limits
    fixed beforehand (Rogers, Roth, Ullman, Vadhan 2016).
    """
    listed = list(losses)
    if delta is not None and not 0.0 <= delta < 1.0:
        raise ValueError(f"delta is {delta}, must be in [0, 1)")
    total = basic(listed)
    if delta is None:
        return total
    simple = Composed(total.epsilon if total.delta <= delta else math.inf, delta, "basic")
    if adaptive or len(listed) < 2 or delta < _LEAST_DELTA:
        return simple
    tight = Composed(numerical_epsilon(listed, delta), delta, "numerical")
    return tight if tight.epsilon < simple.epsilon else simple


def basic(losses: Iterable[Loss]) -> Composed:
    """Return the sums of the epsilons and of the deltas.

    Floats are added as the decimal numbers that they print as, so that three times 0.1 is 0.3 and not above it.

    Reference: Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, Theorem 1.
    """
    epsilon, delta = _sums(losses)
    return Composed(float(epsilon), float(delta), "basic")


def room_for(losses: Iterable[Loss], limit: Loss) -> Loss:
    """Return the largest loss that can join others within a limit by basic composition, rounded down; 0 if none can."""
    epsilon, delta = _sums(losses)
    if float(epsilon) > limit.epsilon or float(delta) > limit.delta:
        return Loss(0.0, 0.0)
    return Loss(_less(limit.epsilon, epsilon), _less(limit.delta, delta))


def grown(before: Iterable[Loss], after: Iterable[Loss]) -> Loss:
    """Return by how much the sums grew, rounded down; 0 for one that did not."""
    old, new = _sums(before), basic(after)
    return Loss(_less(new.epsilon, old[0]), _less(new.delta, old[1]))


def _sums(losses: Iterable[Loss]) -> tuple[Decimal, Decimal]:
    with localcontext(_EXACT):
        listed = list(losses)
        epsilon = sum((Decimal(repr(loss.epsilon)) for loss in listed), Decimal(0))
        return epsilon, sum((Decimal(repr(loss.delta)) for loss in listed), Decimal(0))


def _less(limit: float, spent: Decimal) -> float:
    """Return the difference, at least 0, rounded down: together with what was spent it never exceeds the limit."""
    with localcontext(_EXACT):
        left = max(Decimal(0), Decimal(repr(limit)) - spent)
    nearest = float(left)
    return nearest if Decimal(repr(nearest)) <= left else math.nextafter(nearest, 0.0)


def numerical_epsilon(losses: Iterable[Loss], delta: float) -> float:
    """Return an epsilon at `delta` for all releases together, from their privacy loss distributions; or infinity.

    Every (epsilon, delta)-private release is post-processing of one that tells all with probability delta and is
    otherwise randomised response; the losses of those add up. Losses are rounded up to a grid, of 64 steps for the mean
    release or finer, which costs at most 1/64 of epsilon. delta is 1e-10 or more: 1e-11 of it pays for the rounding
    errors of the convolutions.

    Reference: Kairouz, Oh, Viswanath 2017, Theorem 3.2; Murtagh, Vadhan 2018, section 1; Google's dp_accounting.
    """
    if not _LEAST_DELTA <= delta < 1.0:
        raise ValueError(f"delta is {delta}, must be in [{_LEAST_DELTA}, 1)")
    counted = [loss for loss in losses if loss.epsilon > 0.0 or loss.delta > 0.0]
    largest = max((loss.epsilon for loss in counted), default=0.0)
    if not largest:
        return 0.0 if basic(counted).delta <= delta else math.inf

    # A library that only servers have, and a second to import.
    from dp_accounting.pld import privacy_loss_distribution as distributions
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    step = basic(counted).epsilon / max(_STEPS, _STEPS_A_LOSS * len(counted))
    alike: dict[tuple[int, float], list[float]] = defaultdict(list)
    for loss in counted:
        alike[math.ceil(loss.epsilon / step), loss.delta].append(loss.epsilon)
    total = distributions.identity(step)
    for (_, part), epsilons in sorted(alike.items()):
        one = distributions.from_privacy_parameters(DifferentialPrivacyParameters(max(epsilons), part), step)
        total = total.compose(one.self_compose(len(epsilons)))
    return float(total.get_epsilon_for_delta(delta - _SLACK))
