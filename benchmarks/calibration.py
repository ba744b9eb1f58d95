"""How often 95 % intervals of sums hold the truth: python -m benchmarks.calibration.

For every mechanism that `hushcount plan` recommends, the same clients answer again and again. Each collection gives an
interval for a sum of 1, of 100 and of all listed items. The table shows the share of intervals that hold the truth.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from hushcount.arrays import BoolArray, FloatArray, IntArray, UInt64Array
from hushcount.maths.objectives import Objective, ObjectiveName
from hushcount.oracles.catalogue import ANY_SEED, build, plan
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.responders.subset import Subset
from hushcount.oracles.simulation import SeededWords
from hushcount.oracles.tally import Tally

CONFIDENCE = 0.95
RUNS = 5300
"""Intervals of each sum: a true coverage of 95 % is measured outside 93.5 to 96.5 % with probability 1e-6."""
_REPORTS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Setting:
    """A mechanism with parameters for which `hushcount plan` recommends it, and the number of clients.

    Attributes:
        domain: d, the number of items, "other" included; None for an open domain, of which 300 items are estimated.
        reports: n, enough for a thousand expected supports of each item: few supports are too discrete for 95 %.
        drawn: whether the tally is drawn from its own law, without making reports.
    """

    mechanism: str
    epsilon: float
    domain: int | None
    reports: int
    objective: ObjectiveName = "l2"
    drawn: bool = False

    @property
    def name(self) -> str:
        return f"{self.mechanism}-{self.epsilon:g}-{self.domain or 'open'}"

    def build(self) -> Mechanism:
        """Return the mechanism with the planned parameters."""
        parameters = plan(self.mechanism, self.epsilon, self.domain, {}, Objective(self.objective), ANY_SEED)
        return build(self.mechanism, self.epsilon, self.domain, parameters)


SETTINGS = (
    Setting("grr", 6.0, 203, 1_000_000, drawn=True),
    Setting("grr", 8.0, 1000, 12_000_000, drawn=True),
    Setting("ss", 1.0, 203, 4000, drawn=True),
    Setting("wss", 1.0, 203, 2000),
    Setting("ais", 0.5, 211, 3000),
    Setting("ais", 1.0, 203, 4000),
    Setting("ais", 2.0, 1000, 9000),
    Setting("ais", 1.0, None, 4000),
    Setting("ocms", 1.0, 203, 4500, "mse"),
    Setting("ocms", 2.0, 211, 9000, "mse"),
    Setting("he", 0.1, 1000, 3000, "mse"),
)


@dataclass(frozen=True, eq=False)
class Coverage:
    """The estimates of all runs, for the sum of each group.

    Attributes:
        sizes: int64[g], number of items in each group.
        held: int64[g], number of clients that hold an item of the group.
        count, error, low, high: float64[runs, g].
        summed_error: float64[g], square root of the items' summed exact variances, which is not the sum's error.
    """

    sizes: IntArray
    held: IntArray
    count: FloatArray
    error: FloatArray
    low: FloatArray
    high: FloatArray
    summed_error: FloatArray

    def hits(self, factor: float = 1.0) -> BoolArray:
        """Return bool[runs, g]: which intervals hold the truth; with another factor, intervals of a wrong law."""
        low = self.count - factor * (self.count - self.low)
        high = self.count + factor * (self.high - self.count)
        found: BoolArray = (low <= self.held) & (self.held <= high)
        return found

    def hits_of_summed_errors(self) -> BoolArray:
        """Return bool[runs, g]: the same for intervals from `summed_error`."""
        found: BoolArray = np.abs(self.count - self.held) <= 1.959964 * self.summed_error
        return found


def population(setting: Setting) -> tuple[UInt64Array, IntArray]:
    """Return the items and the number of clients that hold each: shares fall as 1/rank, and a fifth holds "other"."""
    size = setting.domain or 301
    items = np.arange(size, dtype=np.uint64)
    if setting.domain is None:
        from hushcount.maths.fingerprints import fingerprints

        items = fingerprints(f"item {number}" for number in range(size))
    weights = 1.0 / np.arange(1, size)
    # Ranks are at random places, so that sums have items of any rank.
    weights = np.append(np.random.default_rng(7).permutation(weights / weights.sum() * 0.8), 0.2)
    held = np.floor(weights * setting.reports).astype(np.int64)
    held[-1] += setting.reports - held.sum()
    return items, held


def groups_of(items: UInt64Array) -> list[UInt64Array]:
    """Return groups of 1, of 100 and of all listed items; the last item, "other", is not listed."""
    chosen = np.random.default_rng(8).permutation(items[:-1])
    return [chosen[:1], chosen[:100], items[:-1]]


def cover(setting: Setting, runs: int, seed: int = 1) -> Coverage:
    """Simulate `runs` collections, and return the intervals of all sums."""
    mechanism, (items, held) = setting.build(), population(setting)
    groups = groups_of(items)
    found = []
    for tally in islice(tallies(setting, mechanism, items, held, seed), runs):
        estimate = mechanism.sums(tally, groups)
        found.append([estimate.count, estimate.error, *estimate.interval(CONFIDENCE)])
    count, error, low, high = np.array(found).transpose(1, 0, 2)
    members = np.array([np.isin(items, group) for group in groups])
    errors = mechanism.variance(setting.reports, held / setting.reports)
    return Coverage(members.sum(axis=1), members @ held, count, error, low, high, np.sqrt(members @ errors))


def tallies(setting: Setting, mechanism: Mechanism, items: UInt64Array, held: IntArray, seed: int) -> Iterator[Tally]:
    """Yield the tally of each simulated collection."""
    n, words = setting.reports, SeededWords(seed, 0)
    if setting.drawn:
        draw = drawn_cells if setting.mechanism == "grr" else drawn_sums
        yield from draw(mechanism, items, held, seed)
        return
    at_once = max(1, _REPORTS_AT_ONCE // n)
    clients = np.tile(np.repeat(items, held), at_once)
    while True:
        reports = mechanism.encode(clients, words)
        for start in range(0, len(reports), n):
            counts = mechanism.new_tally(items)
            mechanism.accumulate(counts, reports[start : start + n], items)
            yield Tally(counts, n, items)


def drawn_cells(mechanism: Mechanism, items: UInt64Array, held: IntArray, seed: int) -> Iterator[Tally]:
    """Yield tallies of randomised response: a client's cell is kept, or replaced by a uniform other cell."""
    random, d = np.random.default_rng(seed), len(items)
    p = mechanism.responder.p
    # The same law: with probability d/(d-1) (1-p), draw from all cells, the client's own cell included.
    stay = 1.0 - (1.0 - p) * d / (d - 1.0)
    while True:
        kept = random.binomial(held, stay)
        counts = kept + random.multinomial(int((held - kept).sum()), np.full(d, 1.0 / d))
        yield Tally(counts[None, :].astype(np.int64), int(held.sum()), items)


def drawn_sums(mechanism: Mechanism, items: UInt64Array, held: IntArray, seed: int) -> Iterator[Tally]:
    """Yield tallies of subset selection with right sums for the groups of `groups_of`, but wrong counts of items.

    The items fall into four kinds: the first group, the rest of the second, the rest of the third, and "other". Given
    whether a report supports the client's own cell, its number of supported cells of each kind is hypergeometric. The
    first item of a kind gets the count of the whole kind.
    """
    random, responder = np.random.default_rng(seed), mechanism.responder
    if not isinstance(responder, Subset):
        raise TypeError("drawn sums are those of subset selection")
    members = np.array([np.isin(items, group) for group in groups_of(items)])
    kind = len(members) - members.sum(axis=0)
    cells, clients = np.bincount(kind), np.bincount(kind, held).astype(np.int64)
    firsts = np.array([np.flatnonzero(kind == one)[0] for one in range(len(cells))])
    while True:
        sums = np.zeros(len(cells), dtype=np.int64)
        for own, number in enumerate(clients):
            others = cells - (np.arange(len(cells)) == own)
            kept = int(random.binomial(number, responder.p))
            sums[own] += kept
            for size, reports in ((responder.size - 1, kept), (responder.size, number - kept)):
                sums += random.multivariate_hypergeometric(others, size, reports).sum(axis=0)
        counts = np.zeros((1, len(items)), dtype=np.int64)
        counts[0, firsts] = sums
        yield Tally(counts, int(held.sum()), items)


def main(arguments: list[str]) -> None:
    """Print the table of all settings, or of the named ones."""
    print("| mechanism | epsilon | items | reports | sum of | coverage | errors added in squares |")
    print("|---|---|---|---|---|---|---|")
    for setting in SETTINGS:
        if arguments and setting.name not in arguments:
            continue
        found = cover(setting, RUNS)
        hits, wrong = found.hits().mean(axis=0), found.hits_of_summed_errors().mean(axis=0)
        for place, size in enumerate(found.sizes):
            print(
                f"| {setting.mechanism} | {setting.epsilon:g} | {setting.domain or 'open'} | {setting.reports:,} | "
                f"{size} | {hits[place]:.2%} | {wrong[place]:.2%} |",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
