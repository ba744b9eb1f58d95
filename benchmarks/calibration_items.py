"""How often intervals of few or many supports hold the truth, and how wide they are.

    python -m benchmarks.calibration_items [RUNS]

The first table is exact: for an item that F clients hold, it adds up the probabilities of all numbers of supports. The
width is the mean width over the width from the item's own standard deviation. The columns beside it are for Clopper and
Pearson's limits, which treat the sum of two binomial numbers as one. The second table is simulated: changes of groups
that few reports support.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.calibration_changes import Scene, compared, zipf
from hushcount.arrays import FloatArray
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import ANY_SEED, build, plan
from hushcount.oracles.estimates import Supports, quantile

TAIL = 0.025
RUNS = 200
_REACH = 9.0


@dataclass(frozen=True)
class Item:
    """An item that `held` of `clients` clients hold; each client may have sent its answer `repeats` times."""

    oracle: str
    epsilon: float
    domain: int
    clients: int
    held: int
    repeats: int = 1


ITEMS = (
    *(Item("grr", 9.694, 100, 1_000_000, held) for held in (600_000, 77_259, 15_451, 825)),
    Item("grr", 9.694, 100, 1_000_000, 0),
    Item("grr", 5.0, 1000, 2000, 3),
    Item("grr", 12.0, 300, 100_000, 90_000),
    Item("ss", 4.0, 100, 50_000, 20_000),
    Item("oue", 4.0, 100, 20_000, 10),
    Item("oue", 8.0, 1000, 1_000_000, 400_000),
    Item("sue", 8.0, 50, 10_000, 7000),
    Item("ais", 6.0, 1000, 5000, 1500),
    Item("ais", 1.0, 203, 20_000, 2000),
    Item("ocms", 7.0, 26_000, 200_000, 5),
    Item("he", 3.0, 100, 3000, 1000),
    Item("ais", 6.0, 100, 500, 40, repeats=2),
)
GROUPS = (
    Scene("grr, all but one", "grr", 10.0, np.full(300, 1 / 300), (1000, 20_000), size=299),
    Scene("grr, zipf, all but one", "grr", 8.0, zipf(300), (500, 20_000), size=299),
    Scene("ss, all but one", "ss", 5.0, np.full(60, 1 / 60), (300, 5000), size=59),
    Scene("oue, all but two", "oue", 6.0, np.full(100, 0.01), (300, 3000), size=98),
    Scene("sue, pairs", "sue", 8.0, zipf(100), (200, 200), size=2),
    Scene("ais, pairs", "ais", 6.0, zipf(100), (200, 400), size=2),
    Scene("ocms, of five", "ocms", 6.0, zipf(100), (200, 200), size=5),
)


def probabilities(item: Item, p: float, q: float) -> tuple[FloatArray, FloatArray]:
    """Return the possible numbers of answers that support the item, and their law, without the far tails."""
    from scipy.stats import binom

    parts, first = [], 0
    for trials, chance in ((item.held, p), (item.clients - item.held, q)):
        reach = _REACH * np.sqrt(trials * chance * (1.0 - chance)) + _REACH
        low = max(0, int(trials * chance - reach))
        numbers = np.arange(low, min(trials, int(trials * chance + reach)) + 1)
        parts.append(binom.pmf(numbers, trials, chance))
        first += low
    law = np.convolve(*parts)
    return np.arange(first, first + len(law), dtype=np.float64), law


def clopper_pearson(item: Item, supports: FloatArray, p: float, q: float) -> FloatArray:
    """Return float64[2, c]: Clopper and Pearson's limits of the share of supports, in users."""
    from scipy.special import betaincinv

    failures = item.clients - supports
    low = np.where(supports > 0, betaincinv(np.maximum(supports, 1), failures + 1, TAIL), 0.0)
    high = np.where(failures > 0, betaincinv(supports + 1, np.maximum(failures, 1), 1.0 - TAIL), 1.0)
    found: FloatArray = item.repeats * item.clients * (np.stack([low, high]) - q) / (p - q)
    return found


def covered(item: Item, factor: float = 1.0) -> Iterator[tuple[float, float]]:
    """Yield coverage and relative width, first of the intervals in use, then of Clopper and Pearson's intervals.

    The width is relative to the ideal width. A factor above 1 makes all intervals wider.
    """
    parameters = plan(item.oracle, item.epsilon, item.domain, {}, Objective(), ANY_SEED)
    mechanism = build(item.oracle, item.epsilon, item.domain, parameters)
    p, q, truth = mechanism.p_star, mechanism.q_star, item.repeats * item.held
    supports, law = probabilities(item, p, q)
    scores, reports = item.repeats * supports.astype(np.int64), item.repeats * item.clients
    count = np.asarray((scores - reports * q) / (p - q), dtype=np.float64)
    none = np.zeros(len(count))
    estimate = Supports(count, none, none, scores, reports, p, q, repeats=item.repeats)
    noise = item.repeats * np.sqrt(mechanism.variance(item.clients, item.held / item.clients))
    for limits in (estimate.limits(TAIL), clopper_pearson(item, supports, p, q)):
        low, high = (count + factor * (limit - count) for limit in limits)
        inside = law[(low <= truth) & (truth <= high)].sum()
        yield float(inside), float((law * (high - low)).sum() / (2.0 * quantile(TAIL) * noise))


def group_rates(scene: Scene, runs: int) -> tuple[float, float]:
    """Return two shares among the intervals of changes of groups: those that hold the truth, and those of no width."""
    wide = np.array([len(group.items) > 1 for group in scene.groups])
    truth = (scene.truth[1] - scene.truth[0])[wide]
    found = [compared(scene, run) for run in range(runs)]
    low, high = (np.array([getattr(one, name)[wide] for one in found]) for name in ("low", "high"))
    return float(((low <= truth) & (truth <= high)).mean()), float((high <= low).mean())


def lines(runs: int = RUNS) -> Iterator[str]:
    """Yield both tables."""
    yield "| oracle | epsilon | items | clients | hold it | 95 % hold | width | Clopper and Pearson | width |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for item in ITEMS:
        (held, width), (careful, wide) = covered(item)
        name = item.oracle + (f", {item.repeats} equal reports each" if item.repeats > 1 else "")
        yield (
            f"| {name} | {item.epsilon:g} | {item.domain:,} | {item.clients:,} | {item.held:,} | "
            f"{held:.4f} | {width:.2f} | {careful:.4f} | {wide:.2f} |"
        )
    yield ""
    yield "| change of groups | reports | 95 % hold | of no width |"
    yield "|---|---|---|---|"
    for scene in GROUPS:
        held, empty = group_rates(scene, runs)
        before, after = scene.reports
        yield f"| {scene.label}, epsilon {scene.epsilon:g} | {before:,}, {after:,} | {held:.4f} | {empty:.4f} |"


def main() -> None:
    for line in lines(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS):
        print(line, flush=True)


if __name__ == "__main__":
    main()
