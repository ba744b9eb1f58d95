"""Amplification by shuffling: the closed form of [J] Theorem 1."""

from __future__ import annotations

import math


def closed_form_epsilon(epsilon: float, reports: int, delta: float) -> float | None:
    """Return the shuffled epsilon of one report among `reports`, or None where the theorem does not apply.

    `ln(1 + (e-1)(4 sqrt(2 ln(4/delta)) / sqrt((e+1) n) + 4/n))`, valid for `epsilon <= ln(n / (8 ln(2/delta)) - 1)`.

    Args:
        epsilon: the local epsilon, above 0.
        reports: n, honest reports that were shuffled together.
        delta: in (0, 1).

    Privacy: (result, delta) for one report, replace-one, against who sees the shuffled reports only.
    Reference: [J] Theorem 1, eq. (1) and (2), after Feldman, McMillan, Talwar 2023. Numerical bounds
    (docs/mathematics.md section 7) are about four times tighter; this one is merely safe.
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta}, must be in (0, 1)")
    if not (math.isfinite(epsilon) and epsilon > 0.0):
        raise ValueError(f"epsilon is {epsilon}, must be above 0 and finite")
    room = reports / (8.0 * math.log(2.0 / delta)) - 1.0
    if room <= 0.0 or epsilon > math.log(room):
        return None
    e = math.exp(epsilon)
    spread = 4.0 * math.sqrt(2.0 * math.log(4.0 / delta)) / math.sqrt((e + 1.0) * reports) + 4.0 / reports
    return min(epsilon, math.log1p((e - 1.0) * spread))
