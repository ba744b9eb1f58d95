"""The share that a group has of its stratum: a ratio of two sums that the same reports give.

Of a stratum of A reports in the group and C outside it, the share is the r at which `T = (1 - r) A - r C` is 0. The
interval has all r at which T is not significantly different from 0 (Fieller 1954), so no ratio is assumed to be normal.
If not even the stratum's own count, A + C, is significantly above 0, its shares are unknown.

Reference: docs/mathematics.md section 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushcount.arrays import BoolArray, FloatArray
from hushcount.oracles.estimates import Levels, quantile
from hushcount.privacy.unit import repeats_of
from hushcount.questions.counted import Counted, Group
from hushcount.questions.sides import added_up


def score_variance(
    share: FloatArray | np.float64, group: FloatArray, rest: FloatArray, both: FloatArray | float
) -> FloatArray:
    """Return the variance of T from the variances of A, of C and of their sum.

    `Var T = (1-r) Var A + r Var C - r (1-r) Var(A+C)`, since `2 Cov(A, C) = Var(A+C) - Var A - Var C`.
    """
    variance = (1.0 - share) * group + share * rest - share * (1.0 - share) * both
    return np.maximum(np.asarray(variance, dtype=np.float64), 0.0)


@dataclass(frozen=True, eq=False)
class StratumShares:
    """The share of each group in its stratum, of the clients that reported; float64[g] each, counts in users.

    Attributes:
        group, stratum: the counts of reports in the group, and in all of the stratum.
        variances: of the group, of the rest of the stratum, and of the stratum.
    """

    group: FloatArray
    stratum: FloatArray
    variances: tuple[FloatArray, FloatArray, FloatArray]

    @property
    def share(self) -> FloatArray:
        """float64[g]: may lie outside 0..1; NaN if the stratum's count is 0 or less."""
        nothing = np.full(len(self.group), np.nan)
        return np.asarray(np.divide(self.group, self.stratum, out=nothing, where=self.stratum > 0.0), dtype=np.float64)

    @property
    def standard_error(self) -> FloatArray:
        """float64[g]: of the share, to first order; NaN as in `share`."""
        share = self.share
        return np.asarray(np.sqrt(score_variance(share, *self.variances)) / self.stratum, dtype=np.float64)

    def known(self, confidence: float, looks: int = 1) -> BoolArray:
        """Return bool[g]: whether the stratum's count is significantly above 0, so that its interval has two ends."""
        return self.stratum > _quantile(confidence, looks) * np.sqrt(self.variances[2])

    def interval(self, confidence: float, looks: int = 1) -> tuple[FloatArray, FloatArray]:
        """Return (low, high) in 0..1, float64[g] each; all of 0..1 if the share is not known.

        Args:
            confidence: in (0, 1); UsageError otherwise.
            looks: number of intervals that hold together (Bonferroni).
        """
        square = _quantile(confidence, looks) ** 2
        group, rest, both = self.variances
        # T^2 <= z^2 Var T is a quadratic inequality in r.
        first = self.stratum**2 - square * both
        half = self.stratum * self.group - square * (both + group - rest) / 2.0
        last = self.group**2 - square * group
        root, known = np.sqrt(np.maximum(half**2 - first * last, 0.0)), self.known(confidence, looks)
        ends = [np.divide(half + sign * root, first, out=at.copy(), where=known) for sign, at in _whole(len(first))]
        return np.clip(ends[0], 0.0, 1.0), np.clip(ends[1], 0.0, 1.0)


def stratum_shares(results: Sequence[Counted], groups: Sequence[Group]) -> StratumShares:
    """Return the share of each group in its stratum, of results added up.

    Args:
        results: at least one; of campaigns with axes.
        groups: at least one; of items that every result counted, each a part of its stratum.

    Raises:
        UsageError: there are no reports, or a campaign lacks axes, an axis or a coordinate.
    """
    counts, variances = np.zeros((2, len(groups))), np.zeros((3, len(groups)))
    for one in added_up(results):
        each = _sums(one, groups)
        counts += each[:2]
        variances += each[2:]
    return StratumShares(counts[0], counts[1], (variances[0], variances[1], variances[2]))


def _sums(one: Counted, groups: Sequence[Group]) -> FloatArray:
    """Return float64[5, g]: counts of groups and strata, then the variances of groups, rests and strata."""
    campaign, tally, where = one.campaign, one.tally, [group.where for group in groups]
    mechanism, repeats = campaign.require_frequency(), repeats_of(campaign, tally.senders)
    listed, strata = np.arange(campaign.other + 1, dtype=np.uint64), list(dict.fromkeys(where))
    wholes, cells = campaign.cells_of([listed] * len(strata), strata), campaign.cells_of(one.numbers(groups), where)
    found = mechanism.sums(tally, [*cells, *wholes]).repeated(repeats)
    places = np.array([strata.index(each) for each in where])
    group, stratum = found.count[: len(cells)], found.count[len(cells) + places]
    variances = found.error**2
    # Rests of one stratum and size have one law, so it is computed once: a rest has nearly all cells of its stratum.
    _, first, chosen = np.unique([places, [*map(len, cells)]], axis=1, return_index=True, return_inverse=True)
    rests = [np.setdiff1d(wholes[places[row]], cells[row], assume_unique=True) for row in first]
    law, n = mechanism.group_law(tally, rests), tally.reports
    none, all_ = (law.noise(n, share)[chosen.reshape(-1)] for share in (0.0, 1.0))
    held = np.clip(stratum - group, 0.0, n) / n
    rest = repeats * (none + held * (all_ - none))
    return np.stack([group, stratum, variances[: len(cells)], rest, variances[len(cells) + places]])


def _quantile(confidence: float, looks: int) -> float:
    return quantile((1.0 - Levels(confidence=confidence).confidence) / (2.0 * max(looks, 1)))


def _whole(size: int) -> tuple[tuple[float, FloatArray], ...]:
    return (-1.0, np.zeros(size)), (1.0, np.ones(size))
