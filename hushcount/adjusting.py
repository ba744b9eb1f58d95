"""Adjust estimated counts, so that they are not negative or add up: each way has a bias, which it states.

Estimates are unbiased because they may be negative and need not add up to the reports. An adjustment pulls counts in
one direction; so no job adjusts, and no interval or error is valid for an adjusted count.

Counts go in and out as float64[c], users, in one order; `total` is the users that hold one of these items. A number
that is not finite, a total out of range or no count at all is a ValueError.

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

    The nearest counts with that sum in squared distance. No bias, if the counts are unbiased and `total` is the true
    sum or an unbiased estimate of it; else every item carries the same share of its error. Counts may still be
    negative. Little is gained: independent errors shrink by one part in 2c. Estimates of a whole dictionary with
    "other" already add up to the reports if every report supports equally many of its items: with grr and ss, and wss
    with a design of just as many cells; nearly with ais; not with sue, oue, or wss with spare cells.

    Reference: Wang et al., Norm.
    """
    counts = _checked(counts)
    _check_total(total, -np.inf)
    return counts + (total - counts.sum()) / len(counts)


def norm_sub(counts: FloatArray, total: float) -> FloatArray:
    """Return `max(count - t, 0)` for each item, with the one t that makes them add up to `total`.

    This is the end of shifting and clipping again and again, and also the Euclidean projection on the simplex
    `{x >= 0, sum x = total}`; sorting finds it directly. `total` is at least 0. Bias: upward for rare items, which
    clipping lifts; downward for frequent ones, by t each and by as much in sum. The more items are rare, the larger t:
    several standard errors among thousands that hardly anybody holds.

    Reference: Wang et al., Norm-Sub; J. Duchi, S. Shalev-Shwartz, Y. Singer, T. Chandra, "Efficient Projections onto
    the l1-Ball for Learning in High Dimensions", ICML 2008, Figure 1.
    """
    counts = _checked(counts)
    _check_total(total, 0.0)
    # Moving all counts together changes nothing; from the largest count, no kept count is farther than `total`.
    gap = counts - counts.max()
    falling = -np.sort(-gap)
    shift = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    # The j largest items stay, for the last j whose shift leaves the least of them at 0 or above.
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
