"""Whether the share of a group in one stratum is another than in a second one of the same reports.

Both shares come from one estimate, so their errors are correlated. Clients count as a random sample of a population.

Reference: docs/mathematics.md section 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushcount.arrays import FloatArray, IntArray
from hushcount.maths.noise_sums import NoiseSum, WeightedSum
from hushcount.oracles.noisy_counts import MixNoise
from hushcount.questions.comparing import graded, sampled
from hushcount.questions.counted import Counted, Group
from hushcount.questions.mover import Limited, difference_limits
from hushcount.questions.shares import StratumCells, StratumShares, noise_of, score_variance, shares_in
from hushcount.questions.sides import added_up

_NOTHING = 1e-9
_FEW = 1000.0
"""An error of a share below this is only rounding."""


@dataclass(frozen=True, eq=False)
class Dummies:
    """The dummies of the mixes in one result.

    Attributes:
        noise: their law.
        cells: d, the number of cells.
        sizes: int64[2, 2, g], the cells of each group and of its stratum: before, and after.
    """

    noise: MixNoise
    cells: int
    sizes: IntArray

    def parts(self, place: int, share: float, strata: Sequence[float]) -> list[tuple[float, NoiseSum]]:
        """Return the noise of a group's difference, as parts of a `WeightedSum`, if both strata have this share.

        `strata`: the reports of each stratum; of the first one they are negative.
        """
        sizes = self.sizes[:, :, place].tolist()
        # The counts of single items are not corrected by the number of all reports.
        found, less = [(0.0, self.cells - sum(all_ for _, all_ in sizes))], 0.0
        for (group, all_), n in zip(sizes, strata, strict=True):
            found += [((1.0 - share) / n, group), (-share / n, all_ - group)]
            less += ((group if group > 1 else 0) - share * all_) / n / self.cells
        return [(weight - less, self.noise.sum_of(size)) for weight, size in found if size]


@dataclass(frozen=True, eq=False)
class StratumPairs:
    """The shares of the same groups in two strata without common reports.

    Attributes:
        before, after: the shares in each stratum.
        covariances: float64[2, 2, g], of the counts of group and stratum after with those before.
        dummies: of each result, if all have noise of the mixes; else empty.
    """

    before: StratumShares
    after: StratumShares
    covariances: FloatArray
    dummies: tuple[Dummies, ...] = ()

    @property
    def error(self) -> FloatArray:
        """float64[g]: the standard error of the difference, at each stratum's own share."""
        return self._error(self.before.share, self.after.share)

    @cached_property
    def p_value(self) -> FloatArray:
        """float64[g]: of so large a difference, or a larger one, if both strata have the share of both together."""
        # A server's library.
        from scipy.special import ndtr

        both = self.before.stratum + self.after.stratum
        pooled = np.clip((self.before.group + self.after.group) / np.where(both > 0.0, both, np.nan), 0.0, 1.0)
        difference, error = self.after.share - self.before.share, self._error(pooled, pooled)
        found = np.asarray(2.0 * ndtr(-np.abs(difference) / error), dtype=np.float64)
        fewer = np.minimum(self.before.stratum, self.after.stratum) * np.minimum(pooled, 1.0 - pooled)
        few = np.isfinite(difference) & (fewer < _FEW) if self.dummies else np.zeros(len(found), dtype=np.bool_)
        if few.any():
            found[few] = self._by_noise(np.flatnonzero(few), graded(pooled, error), difference)
        return found

    def _by_noise(self, places: IntArray, shares: FloatArray, difference: FloatArray) -> FloatArray:
        """Return p-values by the law of all dummies and of both samples of clients, as `Compared.p_value` does."""
        laws: dict[tuple[object, ...], WeightedSum] = {}
        found = np.ones(len(places))
        for row, place in enumerate(places.tolist()):
            share, strata = float(shares[place]), (-self.before.stratum[place], self.after.stratum[place])
            key = share, strata, *(one.sizes[:, :, place].tobytes() for one in self.dummies)
            if key not in laws:
                parts = [(1.0 / n, sampled(max(1, round(abs(n))), share)) for n in strata]
                for one in self.dummies:
                    parts += one.parts(place, share, strata)
                laws[key] = WeightedSum.of(parts)
            found[row] = laws[key].two_sided(difference[place : place + 1])[0]
        return found

    def difference(self, tail: float) -> tuple[FloatArray, FloatArray]:
        """Return (low, high) of the difference; each limit misses it with probability `tail`.

        The limits of both shares are combined in squares, with their correlation.
        """
        before, after = (
            Limited(side.share, *side.sampled.interval(1.0 - 2.0 * tail)) for side in (self.before, self.after)
        )
        alone = [_deviation(side, side.share) for side in (self.before, self.after)]
        together = self._covariance(self.before.share, self.after.share) / np.maximum(alone[0] * alone[1], _NOTHING**2)
        return difference_limits(before, after, np.clip(together, -1.0, 1.0))

    def _error(self, before: FloatArray, after: FloatArray) -> FloatArray:
        own = _deviation(self.before, before) ** 2 + _deviation(self.after, after) ** 2
        return np.sqrt(np.maximum(own - 2.0 * self._covariance(before, after), _NOTHING**2))

    def _covariance(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return float64[g]: the covariance of both shares, if they are these."""
        (groups, group_whole), (whole_group, wholes) = self.covariances
        scores = groups - before * group_whole - after * whole_group + before * after * wholes
        return np.asarray(scores / (self.before.stratum * self.after.stratum), dtype=np.float64)


def _deviation(side: StratumShares, share: FloatArray) -> FloatArray:
    # A sample of clients has no variance of a share below 0 or above 1.
    held = np.clip(share, 0.0, 1.0)
    return np.asarray(np.sqrt(score_variance(held, *side.sampled.variances)) / side.stratum, dtype=np.float64)


def stratum_pairs(results: Sequence[Counted], before: Sequence[Group], after: Sequence[Group]) -> StratumPairs:
    """Return the shares of groups in two strata, of results added up.

    Args:
        results: at least one; of campaigns with axes.
        before, after: the same groups of items in one and in another stratum; no report is in both.

    Raises:
        UsageError: as in `hushcount.questions.shares.stratum_shares`.
    """
    found = [_pairs_in(one, before, after) for one in added_up(results)]
    return StratumPairs(
        StratumShares.added(one.before for one in found),
        StratumShares.added(one.after for one in found),
        np.sum([one.covariances for one in found], axis=0),
        tuple(part for one in found for part in one.dummies) if all(one.dummies for one in found) else (),
    )


def _pairs_in(one: Counted, before: Sequence[Group], after: Sequence[Group]) -> StratumPairs:
    """Return the shares in one result; covariances: `Cov(X, Y) = (Var(X + Y) - Var X - Var Y) / 2`."""
    sides = [StratumCells.of(one, each) for each in (after, before)]
    shares = [shares_in(one, each) for each in sides]
    kinds = np.concatenate([side.kinds for side in sides])
    _, first, kind = np.unique(kinds, axis=1, return_index=True, return_inverse=True)
    cells = [[[side.groups[row] for row in first], [side.strata[side.places[row]] for row in first]] for side in sides]
    counts, found = [(share.group, share.stratum) for share in shares], np.empty((2, 2, len(after)))
    for own, own_count, at in zip(cells[0], counts[0], found, strict=True):
        for place, (other, other_count) in enumerate(zip(cells[1], counts[1], strict=True)):
            both = [np.concatenate(pair) for pair in zip(own, other, strict=True)]
            asked = ((both, own_count + other_count), (own, own_count), (other, other_count))
            joint, *alone = (noise_of(one, groups, kind.reshape(-1), count) for groups, count in asked)
            at[place] = shares[0].repeats * (joint - alone[0] - alone[1]) / 2.0
    noise = one.campaign.require_frequency().encoder.noise
    if noise is None:
        return StratumPairs(shares[1], shares[0], found)
    wholes = [[side.strata[place] for place in side.places] for side in sides]
    sizes = [[[*map(len, side.groups)], [*map(len, whole)]] for side, whole in zip(sides, wholes, strict=True)]
    dummies = Dummies(noise.times(one.tally.batches), one.campaign.domain or 0, np.array(sizes[::-1]))
    return StratumPairs(shares[1], shares[0], found, (dummies,))
