"""Which changes would have been significant: the power of the comparison that `changes` makes."""

from __future__ import annotations

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.errors import UsageError
from hushcount.oracles.estimates import quantile
from hushcount.questions.comparing import Compared

_STEPS = 60


def power_of(both: Compared, ratio: float, level: float = 0.05) -> FloatArray:
    """Return float64[g]: the probability that a change of each share by this ratio would have been significant.

    The probability is `P(|z| > z_(level/2))` by the normal law, with the reports of both sides. The share changes from
    the estimate before (0 if negative) to `ratio` times this estimate. If hardly any client held an item of the group
    before, no ratio is significant.

    Args:
        both: sides that were compared: `Changes.both`.
        ratio: above 0: 1.2 is a rise of 20 %.
        level: of the test: alpha for one group that was chosen beforehand; alpha/m for m groups by Bonferroni;
            alpha R/m if R of m groups were significant by Benjamini and Hochberg (`level_of`).

    Raises:
        UsageError: a ratio or level out of range.

    Reference: docs/mathematics.md section 11.
    """
    if not 0.0 < ratio < np.inf:
        raise UsageError(f"ratio is {ratio}, must be above 0 and finite: 1.2 for a rise of 20 %")
    return _power(both, np.full(len(both.before.share), ratio), level)


def least_of(both: Compared, power: float = 0.8, level: float = 0.05) -> FloatArray:
    """Return float64[g]: the least ratio above 1 that would have been significant with this probability, or inf.

    Args:
        both, level: as in `power_of`.
        power: in (level, 1).
    """
    if not level < power < 1.0:
        raise UsageError(f"power is {power}, must be above the level, {level}, and below 1")
    share = np.clip(both.before.share, 0.0, 1.0)
    # No share is above 1.
    most = np.divide(1.0, share, out=np.full(len(share), np.inf), where=share > 0.0)
    low, high = np.ones(len(share)), np.where(np.isfinite(most), most, 1.0)
    seen = _power(both, high, level) >= power
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        enough = _power(both, middle, level) >= power
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(seen, high, np.inf)


def level_of(adjusted: FloatArray, alpha: float = 0.05) -> float:
    """Return the level at which a list of m groups was tested by Benjamini and Hochberg: `alpha max(R, 1)/m`.

    Args:
        adjusted: float64[m], `Changes.adjusted`; R of these p-values are at most alpha.
        alpha: the rate of false discoveries.
    """
    return alpha * max(1, int((adjusted <= alpha).sum())) / max(1, len(adjusted))


def _power(both: Compared, ratios: FloatArray, level: float) -> FloatArray:
    # A server's library.
    from scipy.special import ndtr

    if not 0.0 < level < 1.0:
        raise UsageError(f"level is {level}, must be in (0, 1)")
    share = np.clip(both.before.share, 0.0, 1.0)
    changed = np.minimum(ratios * share, 1.0)
    # The share of both sides together after the change.
    pooled = (both.before.reports * share + both.after.reports * changed) / (both.before.reports + both.after.reports)
    null = np.sqrt(both.before.variance(pooled) + both.after.variance(pooled) + both.collisions)
    true = np.sqrt(both.before.variance(share) + both.after.variance(changed) + both.collisions)
    critical, true = quantile(level / 2.0) * null, np.maximum(true, np.finfo(np.float64).tiny)
    difference = np.abs(changed - share)
    return np.asarray(ndtr((difference - critical) / true) + ndtr((-difference - critical) / true), dtype=np.float64)
