"""Adjust estimated counts: make counts non-negative, or make them add up to a total; each function states its bias.

Unadjusted estimates are unbiased, because they may be negative and need not add up to the number of reports. An
adjustment shifts counts in one direction. So no job adjusts counts, and no confidence interval or error that a job
states is valid for an adjusted count.

The functions of this module take and return counts as float64[c], in users and in the same order. `total` is the number
of users that hold one of the items that are counted. Each function raises ValueError if a number is not finite, the
total is out of range, or there is no count.

Reference: T. Wang, M. Lopuhaa-Zwakenberg, Z. Li, B. Skoric, N. Li, "Locally Differentially Private Frequency Estimation
with Consistency", NDSS 2020; each function names the method.
"""

from __future__ import annotations

import numpy as np

from hushcount.arrays import FloatArray


def non_negative(counts: FloatArray) -> FloatArray:
    """Return `max(count, 0)` for the count of each item.

    Bias: upward, and only for rare items. With a true count F and normal noise of standard deviation v, the bias is `v
    phi(F/v) - F Phi(-F/v)`: 0.4 v if nobody holds the item, and below 0.01 v if F is at least 2 v. Because of this
    bias, the sum of the adjusted counts of many rare items is far too large.

    Reference: Wang et al., Base-Pos.
    """
    return np.maximum(_checked(counts), 0.0)


def sum_to(counts: FloatArray, total: float) -> FloatArray:
    """Return the counts, each shifted by the same amount so that they add up to `total`.

    Of all lists of counts with the sum `total`, the result is the nearest one in squared distance. Bias: none if the
    counts are unbiased and `total` is the true sum or an unbiased estimate of the true sum. Otherwise every item gets
    the same share of the error of `total`. Adjusted counts may still be negative. The gain in precision is small:
    independent errors of c counts shrink by a factor of about 1 - 1/(2c). Estimates of a whole dictionary with "other"
    already add up to the number of reports if every report supports the same number of items. The reports of grr and ss
    all support the same number of items, and so do the reports of wss if the design has exactly as many cells as there
    are items. The reports of ais support nearly the same number of items. With sue, oue, and wss with spare cells, the
    number of items that a report supports varies.

    Reference: Wang et al., Norm.
    """
    counts = _checked(counts)
    _check_total(total, -np.inf)
    return counts + (total - counts.sum()) / len(counts)


def norm_sub(counts: FloatArray, total: float) -> FloatArray:
    """Return `max(count - t, 0)` for each count, with the only number t for which the results add up to `total`.

    The result is the limit of repeated shifting and clipping, and also the Euclidean projection on the simplex `{x >=
    0, sum x = total}`. Sorting the counts finds t directly. `total` is at least 0. Bias: upward for rare items, because
    clipping raises their counts; downward by t for each frequent item. The upward and the downward bias cancel in the
    sum over all items. t grows with the number of rare items: with thousands of items that hardly anybody holds, t is
    several standard errors.

    Reference: Wang et al., Norm-Sub; J. Duchi, S. Shalev-Shwartz, Y. Singer, T. Chandra, "Efficient Projections onto
    the l1-Ball for Learning in High Dimensions", ICML 2008, Figure 1.
    """
    counts = _checked(counts)
    _check_total(total, 0.0)
    # Adding a constant to all counts does not change the result. A count that remains above 0 after the shift is at
    # most `total` below the largest count.
    gap = counts - counts.max()
    falling = -np.sort(-gap)
    shift = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    # The j largest counts are kept, where j is the largest number for which none of the j shifted counts is below 0.
    kept = int(np.flatnonzero(falling >= shift)[-1])
    return np.maximum(gap - shift[kept], 0.0)


def _checked(counts: FloatArray) -> FloatArray:
    counts = np.asarray(counts, dtype=np.float64)
    if counts.ndim != 1 or not len(counts):
        raise ValueError(f"counts has shape {counts.shape}, must be one row of at least one count")
    wrong = counts[~np.isfinite(counts)]
    if wrong.size:
        raise ValueError(f"counts holds {wrong[0]}, must be finite numbers")
    return counts


def _check_total(total: float, least: float) -> None:
    if not (np.isfinite(total) and total >= least):
        bound = "" if least == -np.inf else f" of at least {least:g}"
        raise ValueError(f"total is {total}, must be a finite number{bound}")
