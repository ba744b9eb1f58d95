"""What changed between two sides: windows of one campaign, or results of two; and whether noise explains it.

Many groups give many p-values at once: two ways say which of them to believe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hushcount.arrays import BoolArray, FloatArray
from hushcount.oracles.estimates import Levels
from hushcount.questions.comparing import Compared, compared
from hushcount.questions.counted import Counted, Group


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


@dataclass(frozen=True, eq=False)
class Changes:
    """The change of the share of each group; all arrays by group.

    Attributes:
        names: of the groups.
        reports_before, reports_after: of each side.
        confidence: of each interval alone.
        before, after: float64[g], shares of the reports; unbiased, so they may lie outside 0..1.
        difference: after - before.
        standard_error: float64[g], of the difference: responses, the sample of clients, and collisions.
        low, high: limits of the difference.
        ratio: after / before; inf if before is not above 0.
        ratio_low, ratio_high: limits of the ratio, 0 and inf at the ends; inf where before may be 0.
        p_value: two-sided: the probability of so large a difference, or a larger one, if the share did not change.
        adjusted: p-values for a list of all these groups: of those at most alpha, alpha are expected to be false
            (Benjamini and Hochberg).
        p_bonferroni: p-values with which not even one of all is false but with probability alpha.
        exact: bool[g], p-values by Fisher's test; else by the normal law. It is exact for items, and for groups in
            randomised response; for other groups, of few supports, the sum's law is matched to a binomial one.
        both: what all this was computed from, for questions about power.
    """

    names: tuple[str, ...]
    reports_before: int
    reports_after: int
    confidence: float
    before: FloatArray
    after: FloatArray
    difference: FloatArray
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    ratio: FloatArray
    ratio_low: FloatArray
    ratio_high: FloatArray
    p_value: FloatArray
    adjusted: FloatArray
    p_bonferroni: FloatArray
    exact: BoolArray
    both: Compared = field(repr=False)


def changes(
    before: Sequence[Counted], after: Sequence[Counted], groups: Sequence[Group], confidence: float = 0.95
) -> Changes:
    """Return how the share of each group changed from one side to the other.

    The results of a side are added up. Clients count as a sample of those to come: the question is whether a share
    changed, not whether other people were asked.

    - p-values: Fisher's exact test, two-sided by likelihood, where fewer than 1,000 reports of a side are expected to
      support a group, or not to, and both sides have the same p* and q*. Else `z = difference / error`, the error at
      the pooled share f-, at which both sides are if nothing changed.
    - Pools of one seed share their bias, which cancels if nothing changed; what the rest's changes leave of it is
      estimated from both sketches and added. Pools of different seeds add theirs.
    - Clients that remember make windows of one epoch alike. Their errors are positively correlated, so the difference
      has no more error than is stated here, and often less.
    - Limits: of each side by itself (`Side.limits`), combined in squares (MOVER, Zou and Donner 2008); of the ratio,
      the r for which `after - r before` may be 0 (Donner and Zou 2012).

    Args:
        before, after: results of each side, at least one each.
        groups: at least one; of items that every result counted.
        confidence: of each interval alone, in (0, 1).

    Raises:
        UsageError: a side has no reports, or a result says nothing of an item.

    Reference: docs/mathematics.md section 11.
    """
    tail = (1.0 - Levels(confidence=confidence).confidence) / 2.0
    both = compared(before, after, groups)
    was, now, p = both.before.share, both.after.share, both.p_value
    low, high = both.difference(tail)
    ratio_low, ratio_high = both.ratio(tail)
    return Changes(
        names=tuple(group.name for group in groups),
        reports_before=both.before.reports,
        reports_after=both.after.reports,
        confidence=confidence,
        before=was,
        after=now,
        difference=now - was,
        standard_error=both.error,
        low=low,
        high=high,
        ratio=np.divide(np.maximum(now, 0.0), was, out=np.full(len(was), np.inf), where=was > 0.0),
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        p_value=p,
        adjusted=benjamini_hochberg(p),
        p_bonferroni=bonferroni(p),
        exact=both.exact,
        both=both,
    )
