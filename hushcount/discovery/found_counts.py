"""What the noisy count of a discovered value says of the true count: estimate, interval, and bias near the threshold.

The auxiliary server shows `c + Z` of a bin of c reports, and keeps the bin only if that is at least a threshold. The
law of Z is public and depends on no report, so every error here is exact (hushcount/discovery/count_laws.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushcount.arrays import FloatArray, IntArray
from hushcount.discovery.count_laws import CountLaw


@dataclass(frozen=True, eq=False)
class CountEstimates:
    """Estimates of the true counts of discovered values, one a value, in reports.

    Attributes:
        count: float64[v], the shown count less the mean of Z. Unbiased over all draws, also those that drop the bin.
        standard_error: float64[v], the standard deviation of Z, the same for every value.
        low, high: int64[v], the interval: of the draws that show a value, whatever its true count, at least the stated
            share show it with an interval that holds that count. Near the threshold low is far down: there a value is
            shown by luck, and its count tells little.
        bias: float64[v], by how much values with this true count that are kept are shown too large on average. Near 0
            where every such value is kept. It says nothing of values with fewer clients: a bin of c far below
            the threshold is shown too large by `threshold - c` and more. Only `low` tells that.
    """

    count: FloatArray
    standard_error: FloatArray
    low: IntArray
    high: IntArray
    bias: FloatArray


def kept_bias(law: CountLaw, counts: IntArray) -> FloatArray:
    """Return float64[v], `E[Z | Z >= threshold - c] - E[Z]`: how much too large kept bins of c reports are shown."""
    different, places = np.unique(np.maximum(counts, 1), return_inverse=True)
    # Never below 0, which rounding would give far above the threshold.
    bias = np.array([max(0.0, law.bias(int(count))) for count in different])
    return np.asarray(bias[places.reshape(-1)], dtype=np.float64)


def unbiased_from(law: CountLaw) -> int:
    """Return the least count whose bias is below a tenth of the standard deviation."""
    count = law.threshold
    while law.bias(count) >= 0.1 * law.standard_deviation:
        count += 1
    return count


def count_estimates(law: CountLaw, shown: IntArray, confidence: float = 0.95) -> CountEstimates:
    """Return what shown counts, int64[v], say of the true ones.

    The bias is that of the estimate itself taken as the true count.
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
    """Return (combined, its standard error), float64[v] each: two estimates of one number, by inverse variance.

        combined = w x1 + (1 - w) x2      w = v2/(v1 + v2)      variance = v1 v2/(v1 + v2)

    The noisy count x1 has variance v1, that of Z. The frequency estimate x2 has variance v2, of its clients'
    randomisation and, with a pool of hash functions, of the items that share its cells: both parts must be in
    `estimate_errors`, or the weights are wrong and the error too small. The two are independent given the true count:
    Z is drawn by the auxiliary server, the other by clients for another report. No other weight has less variance.

    Both must count the same reports. Where the frequency stream lost a report that the discovery stream has, or the
    other way round, the two differ by it. The bias of a kept count near the threshold enters with the weight w, and the
    error says nothing of it: combine only counts whose interval begins at `unbiased_from` or above.

    Args:
        counts, count_errors: float64[v], of the noisy counts.
        estimates, estimate_errors: float64[v], of the frequency estimates; standard and collision error together.

    Raises:
        ValueError: an error is not above 0.
    """
    if (count_errors <= 0.0).any() or (estimate_errors <= 0.0).any():
        raise ValueError("a standard error is 0 or below: the estimates cannot be weighed")
    first, second = count_errors**2, estimate_errors**2
    weight = second / (first + second)
    return weight * counts + (1.0 - weight) * estimates, np.sqrt(first * weight)
