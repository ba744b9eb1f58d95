"""One side of a comparison: results that are added up to shares of groups, with the laws of these shares.

The windows of one campaign file are added up to one tally.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from hushcount.arrays import FloatArray, IntArray
from hushcount.errors import UsageError
from hushcount.maths.noise_sums import NoiseSum
from hushcount.oracles.estimates import Estimate, quantile
from hushcount.oracles.noisy_counts import CountError
from hushcount.oracles.tally import Tally
from hushcount.questions.counted import Counted, Group
from hushcount.questions.laws import Law, added, errors_of, law_of
from hushcount.questions.mover import Limited, sum_limits
from hushcount.senders import Senders, weakest


def added_up(results: Sequence[Counted]) -> tuple[Counted, ...]:
    """Return one result for each campaign file: its windows' tallies are added.

    Added-up windows are treated by the methods for one result: exact laws of few supports, collisions that all windows
    of a pool share, and answers that clients repeat from window to window. A client with a memory may have sent one
    answer in every window of the file, so its equal reports add up over the windows: the variance of their sum is at
    most l^2 times the variance of one report, and exactly l^2 times if all windows repeat the answer.

    The column of an item is left out unless all windows have this column.

    Raises:
        UsageError: there are no results, or no reports.
    """
    files: dict[bytes, list[Counted]] = {}
    for one in results:
        if one.reports:
            files.setdefault(one.campaign.fingerprint, []).append(one)
    if not files:
        raise UsageError(f"{len(results)} results hold 0 reports, must hold at least 1: choose windows with reports")
    return tuple(_added(same) for same in files.values())


def require_counted(results: Sequence[Counted], groups: Sequence[Group]) -> None:
    """Raise UsageError if a result did not count an item of a group."""
    for result in results:
        missing = result.lacks([item for group in groups for item in group.items])
        if missing:
            group = next(group for group in groups if missing[0] in group.items)
            where = f"campaign {result.campaign.id}, epoch {result.campaign.epoch}"
            raise UsageError(
                f"item {missing[0]!a} of group {group.name!a} was not counted in {where}: leave it out, or ask for "
                "windows that counted it"
            )


def _added(same: list[Counted]) -> Counted:
    first = same[0]
    if len(same) == 1:
        return same[0]
    items = reduce(np.intersect1d, (one.tally.items for one in same))
    counts = sum(_columns(one.tally, items) for one in same)
    reports, tallies = sum(one.reports for one in same), [one.tally for one in same]
    batches = sum(tally.batches for tally in tallies)
    added = Tally(np.asarray(counts), reports, items, _senders(tallies), batches=batches)
    result = replace(first, tally=added, window=f"{same[0].window} to {same[-1].window}")
    # The dictionary may be large, so it is read only once for the file.
    result.__dict__.update({name: value for name, value in first.__dict__.items() if name == "dictionary"})
    return result


def _columns(tally: Tally, items: np.ndarray) -> np.ndarray:
    if len(items) == len(tally.items) and np.array_equal(items, tally.items):
        return tally.counts
    order = np.argsort(tally.items)
    return tally.counts[:, order[np.searchsorted(tally.items, items, sorter=order)]]


def _senders(tallies: Sequence[Tally]) -> Senders:
    way = weakest(tally.senders.way for tally in tallies)
    reports, discovery = (
        sum(tally.senders.allotments(stream) for tally in tallies) for stream in ("reports", "discovery")
    )
    return Senders(way, reports, discovery)


@dataclass(frozen=True, eq=False)
class Side:
    """Results of one side, one for each campaign file, and their estimates of groups.

    Attributes:
        results: as `added_up` makes them.
        estimates: one for each result, of the groups, in users.
        sizes: for each result int64[g], how many of its items each group is (`Counted.sizes`).
    """

    results: tuple[Counted, ...]
    estimates: tuple[Estimate, ...]
    sizes: tuple[IntArray, ...]

    @property
    def reports(self) -> int:
        """N, of all results."""
        return sum(result.reports for result in self.results)

    @property
    def answers(self) -> float:
        """N/l, the number of answers if clients sent each answer l times."""
        return self.reports / max(one.repeats for one in self.estimates)

    @cached_property
    def share(self) -> FloatArray:
        """float64[g]: the unbiased share of each group, which may lie outside 0..1."""
        return np.asarray(sum(one.count for one in self.estimates) / self.reports, dtype=np.float64)

    @cached_property
    def counted(self) -> tuple[tuple[FloatArray, FloatArray], ...]:
        """For each result (users, items), float64[g] each, of the items that K counts: a group, or all other items."""
        found = []
        for result, one, law, own in zip(self.results, self.estimates, self._laws, self.sizes, strict=True):
            listed = result.dictionary
            items = 0 if listed is None else (len(listed.items) + 1) * result.campaign.cells_an_item
            sizes = np.where(law.turned, np.maximum(items - own, 1), own).astype(np.float64)
            found.append((np.where(law.turned, result.reports - one.count, one.count), sizes))
        return tuple(found)

    def variance(self, share: FloatArray | None = None) -> FloatArray:
        """Return float64[g]: the variance of the share from randomisation and from the sampling of clients.

        The variance is `sum over results of l n (noise + f(1-f)) / N^2`. Noise is the variance from the randomisation
        of one answer. f is the result's own share, or `share` for all results if it is not None. If scores count
        supports, a `Law` gives the noise at any share. Otherwise the estimate's noise at its own share is used, because
        noise hardly depends on the share.
        """
        total = np.zeros(len(self.share))
        for result, one, law in zip(self.results, self.estimates, self._laws, strict=True):
            answered = float(one.repeats * result.reports)
            held = np.clip(one.count / result.reports if share is None else share, 0.0, 1.0)
            noise = one.standard_error**2
            if share is not None:
                exact = law.noise(held)
                noise = np.where(np.isfinite(exact), answered * exact, noise)
            total += noise + answered * held * (1.0 - held)
        return np.asarray(total / self.reports**2, dtype=np.float64)

    @cached_property
    def law(self) -> Law:
        """The law of the supports of all results together, if they have one."""
        return added(self._laws, [result.reports for result in self.results])

    @cached_property
    def errors(self) -> list[tuple[tuple[float, NoiseSum], ...]]:
        """For each group the noise of the mixes in the share, as parts of a `WeightedSum`; empty without such noise."""
        rows = zip(*map(errors_of, self.estimates), strict=True)
        return [self._parts_of([error for error in row if error is not None]) for row in rows]

    def _parts_of(self, errors: Sequence[CountError]) -> tuple[tuple[float, NoiseSum], ...]:
        if len(errors) < len(self.estimates):
            return ()
        weighted = [part for one in errors for part in ((1.0 - one.part, one.inside), (-one.part, one.outside))]
        return tuple((weight / self.reports, law) for weight, law in weighted if weight)

    def limits(self, tail: float, drawn: bool = True) -> tuple[FloatArray, FloatArray]:
        """Return (low, high), float64[g]: each limit misses the share with probability `tail`.

        The probability is over the draw of the responses, and also of the clients if these are a sample of a population
        (`drawn`). Collisions are left out. The limits follow from the law of the supports of all results together, if
        there is such a law. Otherwise each result has limits from its own law of supports or from the normal law, and
        these limits are added in squares.
        """
        law = self.law
        low, high = law.limits(self.answers, tail, drawn)
        if law.there.all():
            return low, high
        each_low, each_high = sum_limits([self._part(number, tail, drawn) for number in range(len(self.results))])
        return np.where(law.there, low, each_low), np.where(law.there, high, each_high)

    def _part(self, number: int, tail: float, drawn: bool) -> Limited:
        """Return one result's part of the share."""
        one, law, result = self.estimates[number], self._laws[number], self.results[number]
        reports = result.reports
        share, noise = one.count / reports, (one.standard_error / reports) ** 2
        held = np.clip(share, 0.0, 1.0)
        sample = one.repeats * held * (1.0 - held) / reports if drawn else np.zeros(len(share))
        half = quantile(tail) * np.sqrt(noise + sample)
        low, high = law.limits(reports / law.repeats, tail, drawn)
        values = share, np.where(law.there, low, share - half), np.where(law.there, high, share + half)
        if result.campaign.noise is not None:
            among = Limited(share, *(limit / reports for limit in one.limits(tail)))
            widened = among.widened(quantile(tail) * np.sqrt(sample))
            values = share, widened.low, widened.high
        return Limited(*(value * (reports / self.reports) for value in values))

    @cached_property
    def _laws(self) -> tuple[Law, ...]:
        return tuple(law_of(one) for one in self.estimates)


def side_of(results: Sequence[Counted], groups: Sequence[Group]) -> Side:
    """Return results added up, with their estimates of groups.

    UsageError as in `added_up`, or if a result lacks an item.
    """
    if not groups:
        raise UsageError("0 groups were given, must be at least 1")
    whole = added_up(results)
    require_counted(whole, groups)
    return Side(whole, tuple(one.sums(groups) for one in whole), tuple(one.sizes(groups) for one in whole))
