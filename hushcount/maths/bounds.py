"""The least losses that any unbiased estimator can have under local differential privacy, [P26] section 3."""

from __future__ import annotations

import math


def least_l2(epsilon: float, domain: int, n: int) -> float:
    """Return the lower bound, for any n, of the l2 loss of frequencies estimated from n reports, in shares squared.

    Reference: [P26] Proposition 1, Theorem 3.8 and Corollary 3.3, for d = `domain` of at least 2 items.
    """
    e, d = math.exp(epsilon), domain
    if d >= e + 1.0:
        return (d - 1) * (4.0 * d * e - (e + 1.0) ** 2) / (n * d * math.expm1(epsilon) ** 2)
    return (d - 1) * (d + 2.0 * e - 2.0) / (n * math.expm1(epsilon) ** 2)


def largest_l1(l2: float, domain: int) -> float:
    """Return `sqrt(2 d l2 / pi)`, the l1 loss at this l2 loss if all items have the same variance and n is large.

    If variances differ, the l1 loss is smaller. At the l2 loss of `least_l2` the result is the asymptotic lower bound
    of the l1 loss in the worst case.

    Reference: [P26] Corollary 2.1; Proposition 1 of [P26] prints the root without d.
    """
    return math.sqrt(2.0 * domain * l2 / math.pi)
