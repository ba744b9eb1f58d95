"""Epsilon to integer thresholds, by every rule of `hushcount/maths/probability.py`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hushcount.maths.field61 import PRIME
from hushcount.maths.probability import (
    probability_threshold,
    spending_flip,
    spending_threshold,
    symmetric_threshold,
)
from hushcount.oracles.responders.interval import Interval
from hushcount.oracles.responders.unary import Unary
from tests.vectors.subjects.script import require_refused

_EPSILONS = (1e-4, 0.1, 0.6931471805599453, 1.0, 1.0000000000000002, 2.5, 12.0, 40.0)
_SHAPES = ((2, 1), (3, 2), (10, 3), (1024, 275), (65_537, 17_000), (2_147_483_647, 1), (PRIME, 620_136_698_185_898_879))
_OUTSIDE = (
    0.0, -0.0, 5e-324, 1e-5, 9.999999999999999e-5, 40.00000000000001, 41.0, 100.0, 1e21, 1e308, -1e-4, -1.0,
    -40.0,
)  # fmt: skip
_PROBABILITIES = (0.0, 5e-324, 5e-20, 5.5e-20, 0.1, 0.25, 0.5, 0.9999999999999999, 1.0)


def _spending() -> list[dict[str, Any]]:
    made = []
    for epsilon in _EPSILONS:
        for width, size in _SHAPES:
            # A threshold that says nothing is among the refused.
            with suppress(ValueError):
                keep = Interval.spending(epsilon, width, size).keep
                made.append(_rule("spending", keep, epsilon=epsilon, width=str(width), size=str(size)))
    return made


def _flips() -> list[dict[str, Any]]:
    keeps = [1 << 63, 1, (1 << 64) - 1, probability_threshold(0.75), 12_345_678_901_234_567_890]
    return [
        _rule("flip", spending_flip(epsilon, keep), epsilon=epsilon, keep=str(keep))
        for epsilon in (1e-4, 1.0, 3.0, 40.0)
        for keep in keeps
    ]


def _rule(rule: str, threshold: int, **given: float | str) -> dict[str, Any]:
    return {"rule": rule, **given, "threshold": str(threshold)}


def _refused() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    rules: tuple[tuple[str, Callable[[float], int], dict[str, str]], ...] = (
        ("spending", lambda epsilon: spending_threshold(epsilon, 10, 3), {"width": "10", "size": "3"}),
        ("symmetric", symmetric_threshold, {}),
        ("flip", lambda epsilon: spending_flip(epsilon, 1 << 63), {"keep": str(1 << 63)}),
    )
    for rule, call, given in rules:
        for epsilon in _OUTSIDE:
            require_refused(ValueError, call, epsilon)
            made.append({"rule": rule, "epsilon": epsilon, **given, "reason": "epsilon_out_of_range"})
    for probability in (-5e-324, -0.5, 1.0000000000000002, 2.0, 1e308, -1.0):
        require_refused(ValueError, probability_threshold, probability)
        made.append({"rule": "probability", "probability": probability, "reason": "probability_out_of_range"})
    for epsilon in (1e-4, 1.0, 40.0):
        for keep in (0, 1 << 64, (1 << 64) + 1, -1):
            require_refused(ValueError, spending_flip, epsilon, keep)
            made.append({"rule": "flip", "epsilon": epsilon, "keep": str(keep), "reason": "keep_out_of_range"})
        for width, size, reason in (
            (1, 1, "width_out_of_range"),
            (1, 0, "width_out_of_range"),
            (10, 0, "size_out_of_range"),
            (10, 10, "size_out_of_range"),
            (10, 11, "size_out_of_range"),
            (10, -1, "size_out_of_range"),
            (2, 2, "size_out_of_range"),
            (PRIME, PRIME, "size_out_of_range"),
        ):
            require_refused(ValueError, Interval.spending, epsilon, width, size)
            given = {"epsilon": epsilon, "width": str(width), "size": str(size)}
            made.append({"rule": "spending", **given, "reason": reason})
    for width, size in ((PRIME, 1), (PRIME, 3), (PRIME, 7), (PRIME, 100)):
        for epsilon in (1e-4, 1e-3):
            with suppress(ValueError):
                Interval.spending(epsilon, width, size)
                continue
            given = {"epsilon": epsilon, "width": str(width), "size": str(size)}
            made.append({"rule": "spending", **given, "reason": "says_nothing"})
    return made


def data() -> dict[str, Any]:
    """Return the file's content."""
    symmetric = [_rule("symmetric", Unary.symmetric(epsilon, 2).keep, epsilon=epsilon) for epsilon in _EPSILONS]
    plain = [_rule("probability", probability_threshold(one), probability=one) for one in _PROBABILITIES]
    return {
        "subject": "thresholds",
        "about": "A rule and its numbers to a threshold out of 2**64",
        "accept": [*_spending(), *symmetric, *_flips(), *plain],
        "refuse": _refused(),
    }
