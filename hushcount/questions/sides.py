"""One side of a comparison: results that are added up, as shares of groups with the laws that these follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from hushcount.arrays import FloatArray, IntArray
from hushcount.errors import UsageError
from hushcount.oracles.estimates import Estimate, SharedCells, Supports
from hushcount.questions.counted import Counted, Group
from hushcount.questions.windows import added_up, require_counted


@dataclass(frozen=True, eq=False)
class Law:
    """Reports that support a group or not: C is Bin(n, pi) if clients are a sample, `pi = q* + f (p* - q*)`.

    Attributes:
        supports: int64[g], C.
        own, other: p*, q*.
        repeats: l; each of l equal reports of a client counts as one answer, so that there are n/l.
    """

    supports: IntArray
    own: float
    other: float
    repeats: int


@dataclass(frozen=True, eq=False)
class Side:
    """Results of one side, one for each campaign file, and what they say of groups.

    Attributes:
        results: as `added_up` makes them.
        estimates: one for each result, of the groups, in users.
        sizes: int64[g], items of each group.
    """

    results: tuple[Counted, ...]
    estimates: tuple[Estimate, ...]
    sizes: IntArray

    @property
    def reports(self) -> int:
        """N, of all results."""
        return sum(result.reports for result in self.results)

    @cached_property
    def share(self) -> FloatArray:
        """float64[g]: unbiased, so it may lie outside 0..1."""
        return np.asarray(sum(one.count for one in self.estimates) / self.reports, dtype=np.float64)

    def variance(self, share: FloatArray | None = None) -> FloatArray:
        """Return float64[g]: the variance of the share by randomisation, and by who is in the sample of clients.

        `sum over results of l n (noise + f(1-f)) / N^2`, noise that of one answer, and f the result's own share; or
        `share` for all, if it is given. Noise is exact at any share where reports support a group or do not; elsewhere
        it is what the estimate states at its own, because it hardly depends on the share.
        """
        total = np.zeros(len(self.sizes))
        for result, one in zip(self.results, self.estimates, strict=True):
            answered = float(one.repeats * result.reports)
            held = np.clip(one.count / result.reports if share is None else share, 0.0, 1.0)
            if share is not None and isinstance(one, Supports):
                spread = held * one.own * (1.0 - one.own) + (1.0 - held) * one.other * (1.0 - one.other)
                noise = answered * spread / (one.own - one.other) ** 2
            else:
                noise = one.standard_error**2
            total += noise + answered * held * (1.0 - held)
        return np.asarray(total / self.reports**2, dtype=np.float64)

    @cached_property
    def law(self) -> Law | None:
        """The law of supports, if all results have one and the same; None otherwise."""
        found = [_law(one) for one in self.estimates]
        laws = [law for law in found if law is not None]
        if len(laws) < len(found) or not all(alike(law, laws[0]) for law in laws):
            return None
        supports = np.asarray(sum(law.supports for law in laws), dtype=np.int64)
        return Law(supports, laws[0].own, laws[0].other, max(law.repeats for law in laws))

    def limits(self, tail: float) -> tuple[FloatArray, FloatArray]:
        """Return (low, high), float64[g]: the share is below low with probability `tail`, as above high.

        Over the draw of the responses and of the clients, without collisions. Those of Clopper and Pearson where few
        reports support a group, else by the normal law.
        """
        error, law = np.sqrt(self.variance()), self.law
        if law is None:
            half = normal_quantile(tail) * error
            return self.share - half, self.share + half
        n, nothing = self.reports, np.zeros(len(error))
        users = Supports(n * self.share, n * error, nothing, law.supports, n, law.own, law.other, repeats=law.repeats)
        low, high = users.limits(tail)
        return low / n, high / n


def side_of(results: Sequence[Counted], groups: Sequence[Group]) -> Side:
    """Return results added up, with what they say of groups that are all single items, or all larger.

    UsageError as `added_up`, or if a result lacks an item.
    """
    added = added_up(results)
    require_counted(added, groups)
    sizes = np.array([len(group.items) for group in groups], dtype=np.int64)
    if (sizes == 1).all():
        # As items, so that the exact laws of single items hold.
        items = [group.items[0] for group in groups]
        return Side(added, tuple(result.estimate(items) for result in added), sizes)
    return Side(added, tuple(result.sums(groups) for result in added), sizes)


def parted(groups: Sequence[Group]) -> tuple[IntArray, ...]:
    """Return the places of the single items and those of the larger groups, int64[...] each, without empty ones.

    UsageError if there is no group.
    """
    if not groups:
        raise UsageError("0 groups were given, must be at least 1")
    single = np.array([len(group.items) == 1 for group in groups], dtype=np.bool_)
    return tuple(chosen for chosen in (np.flatnonzero(single), np.flatnonzero(~single)) if len(chosen))


def alike(one: Law, other: Law) -> bool:
    """Return whether two laws have the same probabilities."""
    return bool(np.array_equal(one.own, other.own) and np.array_equal(one.other, other.other))


def normal_quantile(tail: float) -> float:
    """Return the normal quantile that is exceeded with probability `tail`."""
    return -NormalDist().inv_cdf(tail)


def _law(one: Estimate) -> Law | None:
    if isinstance(one, Supports):
        return Law(one.supports, one.own, one.other, one.repeats)
    if isinstance(one, SharedCells):
        return Law(np.asarray(one.scores, dtype=np.int64), one.own, one.own - one.gain, one.repeats)
    return None
