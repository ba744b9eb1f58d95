"""Estimate, interval, and bias near the threshold for the true count of a discovered value, from its noisy count.

For a bin of c reports the auxiliary server draws `c + Z`. The server keeps the bin, and shows the sum, only if the sum
reaches a threshold. The law of Z is public and depends on no report, so every error here is exact
(maths/count_laws.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushcount.arrays import FloatArray, IntArray
from hushcount.maths.count_laws import CountLaw


@dataclass(frozen=True, eq=False)
class CountEstimates:
    """Estimates of the true counts of discovered values, one for each value, in reports.

    Attributes:
        count: float64[v], the shown count minus the mean of Z. The estimate is unbiased over all draws of Z, also the
            draws that drop the bin.
        standard_error: float64[v], the standard deviation of Z, the same for every value.
        low, high: int64[v], the interval. For any true count of a value: among the draws that show the value, at least
            the stated share give an interval that contains the true count. Near the threshold low is far below the
            count, because a value with few reports may be shown by chance.
        bias: float64[v], by how much kept values with this true count are shown too large on average; the bias is near
            0 if almost every value with this count is kept. The bias is no bound for values with fewer reports: a bin
            of c reports far below the threshold is shown too large by `threshold - c` or more. Only `low` shows this.
    """

    count: FloatArray
    standard_error: FloatArray
    low: IntArray
    high: IntArray
    bias: FloatArray


def kept_bias(law: CountLaw, counts: IntArray) -> FloatArray:
    """Return float64[v], `E[Z | Z >= threshold - c] - E[Z]`: the mean excess that kept bins of c reports show."""
    different, places = np.unique(np.maximum(counts, 1), return_inverse=True)
    # Far above the threshold, rounding could make the bias negative.
    bias = np.array([max(0.0, law.bias(int(count))) for count in different])
    return np.asarray(bias[places.reshape(-1)], dtype=np.float64)


def unbiased_from(law: CountLaw) -> int:
    """Return the least count with a bias below a tenth of the standard deviation."""
    count = law.threshold
    while law.bias(count) >= 0.1 * law.standard_deviation:
        count += 1
    return count


def count_estimates(law: CountLaw, shown: IntArray, confidence: float = 0.95) -> CountEstimates:
    """Return estimates of the true counts from the shown counts, int64[v].

    The bias is computed as if the estimate were the true count.
    """
    count = shown.astype(np.float64) - law.mean
    different, places = np.unique(shown, return_inverse=True)
    limits = [law.interval(int(each), confidence) for each in different]
    low, high = np.array(limits, dtype=np.int64).reshape(-1, 2)[places.reshape(-1)].T
    bias = kept_bias(law, np.rint(count).astype(np.int64))
    return CountEstimates(count, np.full(len(shown), law.standard_deviation), low, high, bias)


def combine(
    counts: FloatArray, count_errors: FloatArray, estimates: FloatArray, estimate_errors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return (combined, its standard error), float64[v] each, of two estimates, weighted by inverse variance.

        combined = w x1 + (1 - w) x2      w = v2/(v1 + v2)      variance = v1 v2/(v1 + v2)

    The noisy count x1 has the variance v1 of Z. The frequency estimate x2 has variance v2, from its clients'
    randomisation and, with a pool of hash functions, from items that share its cells. `estimate_errors` must contain
    both parts of v2, or the weights are wrong and the error is too small. x1 and x2 are independent given the true
    count, because the auxiliary server draws Z for discovery reports, and clients randomise their frequency reports. No
    other weight w gives `combined` a smaller variance.

    Both estimates must be of the same number: each report that is in only one of the two streams makes the true counts
    differ by 1. The bias of a kept count near the threshold is in `combined` with weight w, and the standard error does
    not include this bias. So combine only counts with an interval that begins at `unbiased_from` or above.

    Args:
        counts, count_errors: float64[v], of the noisy counts.
        estimates, estimate_errors: float64[v], of the frequency estimates; standard and collision error together.

    Raises:
        ValueError: a standard error is not above 0.
    """
    if (count_errors <= 0.0).any() or (estimate_errors <= 0.0).any():
        raise ValueError("a standard error is 0 or below, must be above 0 to weigh the estimates")
    first, second = count_errors**2, estimate_errors**2
    weight = second / (first + second)
    return weight * counts + (1.0 - weight) * estimates, np.sqrt(first * weight)
