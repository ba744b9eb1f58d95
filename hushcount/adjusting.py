"""Adjust estimated counts: make them non-negative, or make them add up to a total; each function states its bias.

Unadjusted estimates are unbiased because they may be negative and need not add up to the number of reports. An
adjustment shifts counts in one direction. So no job adjusts counts, and no interval or error is valid for an adjusted
count.

Functions take and return counts as float64[c], in users and in the same order. `total` is the number of users that
hold one of these items. ValueError if a number is not finite, the total is out of range, or there is no count.

Reference: T. Wang, M. Lopuhaa-Zwakenberg, Z. Li, B. Skoric, N. Li, "Locally Differentially Private Frequency Estimation
with Consistency", NDSS 2020; each function names the method.
"""

from __future__ import annotations

import numpy as np

from hushcount.arrays import FloatArray


def non_negative(counts: FloatArray) -> FloatArray:
    """Return `max(count, 0)` for each item.

    Bias: upward, and only for rare items. With a true count F and normal noise of standard deviation v it is
    `v phi(F/v) - F Phi(-F/v)`: 0.4 v if nobody holds the item, below 0.01 v from F = 2 v on. The sum over many rare
    items is far too large.

    Reference: Wang et al., Base-Pos.
    """
    return np.maximum(_checked(counts), 0.0)


def sum_to(counts: FloatArray, total: float) -> FloatArray:
    """Return the counts, each shifted by the same amount so that they add up to `total`.

    Of all counts with that sum, these are the nearest in squared distance. Bias: none if the counts are unbiased and
    `total` is the true sum or an unbiased estimate of it. Otherwise every item gets the same share of the error of
    `total`. Counts may still be negative. The gain is small: independent errors shrink by one part in 2c. Estimates of
    a whole dictionary with "other" already add up to the number of reports if every report supports equally many of
    its items. This holds for grr and ss, and for wss with a design of exactly as many cells; it nearly holds for ais;
    it does not hold for sue, oue, or wss with spare cells.

    Reference: Wang et al., Norm.
    """
    counts = _checked(counts)
    _check_total(total, -np.inf)
    return counts + (total - counts.sum()) / len(counts)


def norm_sub(counts: FloatArray, total: float) -> FloatArray:
    """Return `max(count - t, 0)` for each item, with the only t that makes the results add up to `total`.

    This is the limit of repeated shifting and clipping, and also the Euclidean projection on the simplex
    `{x >= 0, sum x = total}`. Sorting finds it directly. `total` is at least 0. Bias: upward for rare items, because
    clipping raises them; downward for each frequent item by t. The two biases cancel in the sum. t grows with the
    number of rare items: among thousands of items that hardly anybody holds, it is several standard errors.

    Reference: Wang et al., Norm-Sub; J. Duchi, S. Shalev-Shwartz, Y. Singer, T. Chandra, "Efficient Projections onto
    the l1-Ball for Learning in High Dimensions", ICML 2008, Figure 1.
    """
    counts = _checked(counts)
    _check_total(total, 0.0)
    # Adding a constant to all counts changes nothing. No kept count is farther than `total` below the largest count.
    gap = counts - counts.max()
    falling = -np.sort(-gap)
    shift = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    # The j largest items are kept, for the largest j at which the shift leaves the smallest of them at 0 or above.
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
