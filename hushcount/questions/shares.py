"""The share that a group has of its stratum: a ratio of two sums that the same reports give.

Of a stratum of A reports in the group and C outside it, the share is the r at which `T = (1 - r) A - r C` is 0. The
interval has all r at which T is not significantly different from 0 (Fieller 1954), so no ratio is assumed to be normal.
If not even the stratum's own count, A + C, is significantly above 0, its shares are unknown.

Reference: docs/mathematics.md section 11.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hushcount.arrays import BoolArray, FloatArray, IntArray, UInt64Array
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
        repeats: l, how often a client may have sent the same answer.
    """

    group: FloatArray
    stratum: FloatArray
    variances: tuple[FloatArray, FloatArray, FloatArray]
    repeats: int = 1

    @classmethod
    def added(cls, parts: Iterable[StratumShares]) -> StratumShares:
        """Return the shares of the same groups in several results together, at least one."""
        every = [*parts]
        group, stratum = (np.sum([getattr(one, name) for one in every], axis=0) for name in ("group", "stratum"))
        of_group, of_rest, of_stratum = np.sum([one.variances for one in every], axis=0)
        return cls(group, stratum, (of_group, of_rest, of_stratum), max(one.repeats for one in every))

    @property
    def sampled(self) -> StratumShares:
        """The same shares as estimates of those of all clients, of whom those that reported are a sample.

        T of a sample of N clients has the variance `N r (1 - r)` besides, so N is taken from the stratum's variance.
        """
        group, rest, both = self.variances
        return replace(self, variances=(group, rest, both - self.repeats * np.maximum(self.stratum, 0.0)))

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
        return self.stratum > _quantile(confidence, looks) * np.sqrt(np.maximum(self.variances[2], 0.0))

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
    return StratumShares.added(shares_in(one, StratumCells.of(one, groups)) for one in added_up(results))


@dataclass(frozen=True, eq=False)
class StratumCells:
    """The cells of groups and of their strata in one result.

    Attributes:
        groups: uint64[size] each.
        strata: uint64[size] each, all different.
        places: int64[g], of each group's stratum.
    """

    groups: Sequence[UInt64Array]
    strata: Sequence[UInt64Array]
    places: IntArray

    @classmethod
    def of(cls, one: Counted, groups: Sequence[Group]) -> StratumCells:
        """Return the cells of groups; UsageError: the campaign lacks axes, an axis or a coordinate."""
        where = [group.where for group in groups]
        listed, strata = np.arange(one.campaign.other + 1, dtype=np.uint64), list(dict.fromkeys(where))
        wholes = one.campaign.cells_of([listed] * len(strata), strata)
        cells = one.campaign.cells_of(one.numbers(groups), where)
        return cls(cells, wholes, np.array([strata.index(each) for each in where], dtype=np.int64))

    @property
    def kinds(self) -> IntArray:
        """int64[2, g]: stratum and size; the sum of a group, or of the rest of its stratum, has one law for a kind."""
        return np.stack([self.places, [*map(len, self.groups)]])


def shares_in(one: Counted, cells: StratumCells) -> StratumShares:
    """Return the shares of groups in one result, at least one report."""
    tally, mechanism, many = one.tally, one.campaign.require_frequency(), len(cells.groups)
    repeats = repeats_of(one.campaign, tally.senders)
    found = mechanism.sums(tally, [*cells.groups, *cells.strata]).repeated(repeats)
    group, stratum = found.count[:many], found.count[many + cells.places]
    variances = found.error**2
    # The law of a rest is computed once for a kind, because a rest has nearly all cells of its stratum.
    _, first, kind = np.unique(cells.kinds, axis=1, return_index=True, return_inverse=True)
    rests = [np.setdiff1d(cells.strata[cells.places[row]], cells.groups[row], assume_unique=True) for row in first]
    rest = repeats * noise_of(one, rests, kind.reshape(-1), stratum - group)
    return StratumShares(group, stratum, (variances[:many], rest, variances[many + cells.places]), repeats)


def noise_of(one: Counted, groups: Sequence[UInt64Array], kinds: IntArray, counts: FloatArray) -> FloatArray:
    """Return float64[g], users squared: the variance by noise of the sum of a group's cells, at each count.

    Args:
        groups: cells, one group of each kind.
        kinds: int64[g], place of the group whose law a count has.
        counts: float64[g].
    """
    mechanism = one.campaign.require_frequency()
    n, law, dummies = one.reports, mechanism.group_law(one.tally, groups), np.zeros(len(groups))
    if (noise := mechanism.encoder.noise) is not None:
        sizes = np.array([*map(len, groups)], dtype=np.float64)
        # A sum is corrected by the number of reports. The count of one item is not, so a rest errs a little more.
        part = (sizes - 1.0) / mechanism.encoder.cells
        dummies = noise.times(one.tally.batches).variance * sizes * (1.0 - part)
    # The variance is linear in the count.
    none, all_ = (law.noise(n, share)[kinds] for share in (0.0, 1.0))
    return np.asarray(none + np.clip(counts, 0.0, n) / n * (all_ - none) + dummies[kinds], dtype=np.float64)


def _quantile(confidence: float, looks: int) -> float:
    return quantile((1.0 - Levels(confidence=confidence).confidence) / (2.0 * max(looks, 1)))


def _whole(size: int) -> tuple[tuple[float, FloatArray], ...]:
    return (-1.0, np.zeros(size)), (1.0, np.ones(size))
