"""Changes between two sides (windows of one campaign, or results of two), and whether noise alone explains them.

Many groups give many p-values at once, so two methods adjust p-values for the number of groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from hushcount.arrays import BoolArray, FloatArray
from hushcount.oracles.estimates import Levels
from hushcount.questions.comparing import Compared, compared
from hushcount.questions.counted import Counted, Group
from hushcount.questions.forging import forged_moves
from hushcount.questions.power import level_of

_ABOVE = float(np.finfo(np.float64).tiny)
_NONE = np.empty(0)


def benjamini_hochberg(p: FloatArray) -> FloatArray:
    """Return float64[m]: adjusted p-values; of those at most alpha, a share of alpha at most is expected to be false.

    The i-th smallest p-value becomes `min over j >= i of m p_(j) / j`. The rate of false discoveries holds for
    independent tests, and for the weak dependence of items of one result (correlations of -1/(d-1)); the tests simulate
    it. For a proof under any dependence, multiply the p-values by `1 + 1/2 + ... + 1/m` (Benjamini and Yekutieli 2001).

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
    """Return float64[m]: p-values; with probability alpha at most, an unchanged group has one of alpha or less."""
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
        low_all, high_all: limits of the difference for a list of all these groups, at the level at which the list was
            tested (`level_of`): of the intervals of significant groups, a share `1 - confidence` is expected to miss
            (Benjamini and Yekutieli 2005). The interval excludes 0 if and only if `adjusted` is at most this share.
        ratio: after / before; inf if before is not above 0.
        ratio_low, ratio_high: limits of the ratio, from 0 to inf; ratio_high is inf where before may be 0.
        p_value: two-sided: the probability of so large a difference, or a larger one, if the share did not change.
        adjusted: p-values for a list of all these groups: of those at most alpha, a share of alpha is expected to be
            false (Benjamini and Hochberg).
        p_bonferroni: p-values for a list of all these groups: with probability alpha at most, any unchanged group has
            a p-value of alpha or less.
        exact: bool[g], whether the p-value comes from Fisher's test, or from the law of the mixes' dummies; if not, it
            comes from the normal law. Fisher's test is exact for items, and for groups in randomised response. For
            other groups a binomial law is matched to the sum's law.
        forged_down, forged_up: float64[g], how far 1 % of all clients, if they forge on both sides, could lower and
            raise the difference; positive.
        level: the level of the limits for a list.
        both: the two sides that all figures were computed from, for questions about power.
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
    low_all: FloatArray
    high_all: FloatArray
    ratio: FloatArray
    ratio_low: FloatArray
    ratio_high: FloatArray
    p_value: FloatArray
    adjusted: FloatArray
    p_bonferroni: FloatArray
    exact: BoolArray
    forged_down: FloatArray
    forged_up: FloatArray
    level: float
    both: Compared = field(repr=False)


def changes(
    before: Sequence[Counted],
    after: Sequence[Counted],
    groups: Sequence[Group],
    confidence: float = 0.95,
    beside: FloatArray = _NONE,
) -> Changes:
    """Return how the share of each group changed from one side to the other.

    The results of a side are added up. Clients count as a random sample of a population: the question is whether a
    share of the population changed, not whether other clients reported.

    - p-values: Fisher's exact test, two-sided by likelihood, if both sides have the same p* and q*, and fewer than
      1,000 reports of a side are expected to support a group, or fewer than 1,000 not to support it. Otherwise the
      normal law of `z = difference / error`, with the error at the pooled share f-, which both sides have if nothing
      changed.
      With noise of the mixes, fewer than 1,000 clients: the law of all dummies and of both samples of clients.
    - Results of pools with one seed have the same bias, which cancels if nothing changed. If other items changed, a
      part of the bias remains; it is estimated from both sketches and added to the error. Pools of different seeds each
      add their bias.
    - If clients have a memory, windows of one epoch have positively correlated errors. So the error of the difference
      is at most the error stated here, and often smaller.
    - Limits: the limits of each side (`Side.limits`) are combined in squares (MOVER, Zou and Donner 2008). The limits
      of the ratio are the r for which `after - r before` may be 0 (Donner and Zou 2012).

    Args:
        before, after: results of each side, at least one each.
        groups: at least one; of items that every result counted.
        confidence: of each interval alone, in (0, 1).
        beside: p-values of other reports' groups that are in the same list.

    Raises:
        UsageError: a side has no reports, or a result did not count an item.

    Reference: docs/mathematics.md section 11.
    """
    tail = (1.0 - Levels(confidence=confidence).confidence) / 2.0
    both = compared(before, after, groups)
    was, now, p = both.before.share, both.after.share, both.p_value
    low, high = both.difference(tail)
    listed = np.concatenate([p, beside])
    every = benjamini_hochberg(listed)
    adjusted, level = every[: len(p)], level_of(every, 2.0 * tail)
    limits = corrected(both.difference, now - was, adjusted <= 2.0 * tail, level)
    ratio_low, ratio_high = both.ratio(tail)
    down, up = forged_moves(before, after, groups, was, now)
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
        low_all=limits[0],
        high_all=limits[1],
        ratio=np.divide(np.maximum(now, 0.0), was, out=np.full(len(was), np.inf), where=was > 0.0),
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        p_value=p,
        adjusted=adjusted,
        p_bonferroni=bonferroni(listed)[: len(p)],
        exact=both.exact,
        forged_down=down,
        forged_up=up,
        level=level,
        both=both,
    )


def corrected(
    limits: Callable[[float], tuple[FloatArray, FloatArray]],
    difference: FloatArray,
    significant: BoolArray,
    level: float,
) -> tuple[FloatArray, FloatArray]:
    """Return (low, high) of the difference at the level at which the list was tested, on the side that the test says.

    Limits and p-values come from different laws, so near the border they disagree: then the test decides, because it is
    exact where few reports support a group.

    Args:
        limits: returns the limits that each miss the difference with a probability.
        difference: float64[g], the estimates.
        significant: bool[g], whether each is, among the list.
        level: at which the list was tested (`level_of`).
    """
    low, high = limits(level / 2.0)
    rises, falls = (significant & (sign * difference > 0.0) for sign in (1.0, -1.0))
    return (
        np.where(rises, np.maximum(low, _ABOVE), np.where(falls, low, np.minimum(low, 0.0))),
        np.where(falls, np.minimum(high, -_ABOVE), np.where(rises, high, np.maximum(high, 0.0))),
    )
