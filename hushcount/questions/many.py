"""Many p-values at once: which of them to believe."""

from __future__ import annotations

import numpy as np

from hushcount.arrays import FloatArray


def benjamini_hochberg(p: FloatArray) -> FloatArray:
    """Return float64[m]: adjusted p-values; of those at most alpha, a share of alpha at most is expected to be false.

    `min over j >= i of m p_(j) / j` for the i-th smallest. The rate of false discoveries holds for independent tests,
    and for the weak dependence of items of one result (correlations of -1/(d-1)); simulated in the tests. Where a proof
    for any dependence is wanted, multiply by `1 + 1/2 + ... + 1/m` (Benjamini and Yekutieli 2001).

    Args:
        p: float64[m], p-values.

    Reference: Benjamini and Hochberg 1995; docs/mathematics.md section 11.
    """
    m = len(p)
    order = np.argsort(p, kind="stable")
    steps = p[order] * m / np.arange(1, m + 1)
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0)
    return adjusted


def bonferroni(p: FloatArray) -> FloatArray:
    """Return float64[m]: adjusted p-values; with probability alpha at most any of them is falsely at most alpha."""
    return np.asarray(np.minimum(len(p) * p, 1.0), dtype=np.float64)
