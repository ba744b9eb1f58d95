"""Fisher's exact test of two proportions, two-sided by likelihood, for many pairs of counts at once."""

from __future__ import annotations

import math

import numpy as np

from hushcount.arrays import FloatArray, IntArray

_FAR = 40.0
"""Standard deviations from the mean beyond which no outcome is counted: these have probability below 1e-300."""
_ALIKE = 1e-9
"""Outcomes whose probabilities differ by such a part are equally likely: rounding tells them apart, nothing else."""


def fisher(before: IntArray, after: IntArray, n_before: IntArray, n_after: IntArray) -> FloatArray:
    """Return float64[g]: the p-value of each pair of counts if both come from trials of one probability.

    Given the sum of both counts, the second one is hypergeometric, whatever the probability is. The p-value is the
    probability of all outcomes that are no likelier than the one seen: exact, so that it is at most alpha with
    probability alpha at most. The law is summed by the ratios of neighbouring outcomes, of which every one is exact to
    a rounding; the logarithms of factorials of 10^12 reports would leave three digits.

    Args:
        before, after: int64[g], successes, in 0..n_before and 0..n_after.
        n_before, n_after: int64[g], trials, at least 1 each.

    Reference: Fisher 1935; docs/mathematics.md section 11.
    """
    asked = np.stack([before, after, n_before, n_after])
    different, places = np.unique(asked, axis=1, return_inverse=True)
    found = [_p_value(*one) for one in different.T.tolist()]
    return np.array(found, dtype=np.float64)[places.reshape(-1)]


def _p_value(before: int, after: int, n_before: int, n_after: int) -> float:
    total = before + after
    trials = n_before + n_after
    mean = total * n_after / trials
    spread = math.sqrt(mean * (1.0 - n_after / trials) * (trials - total) / max(1, trials - 1))
    reach = _FAR * spread + _FAR
    low = max(0, total - n_before, math.floor(mean - reach))
    high = min(total, n_after, math.ceil(mean + reach))
    if not low <= after <= high:
        return 0.0
    x = np.arange(low, high, dtype=np.float64)
    # P(x+1)/P(x); subtracted first, so that no difference of large numbers loses digits.
    ratios = np.log((total - x) / (x + 1.0)) + np.log((n_after - x) / ((n_before - total) + x + 1.0))
    logs = np.concatenate([[0.0], np.cumsum(ratios)])
    logs -= logs.max()
    weights = np.exp(logs)
    return min(1.0, float(weights[logs <= logs[after - low] + _ALIKE].sum() / weights.sum()))
