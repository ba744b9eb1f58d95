"""How often comparisons are right: false alarms without a change, coverage of intervals, false discoveries, power.

    python -m benchmarks.calibration_changes [--runs 200]

For each window, clients are drawn from the shares of a scene; the real mechanism encodes and tallies their values.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np

from hushcount.arrays import BoolArray, FloatArray, UInt64Array
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, in_random_order, items_of, tally_items
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import ANY_SEED, CATALOGUE, plan
from hushcount.oracles.parameters import Parameters
from hushcount.oracles.simulation import SeededWords, fresh_functions
from hushcount.oracles.tally import Tally
from hushcount.questions.changes import Changes, changes
from hushcount.questions.comparing import compared as compared_sides
from hushcount.questions.counted import Counted, Group
from hushcount.questions.power import power_of
from keys.private import PrivateKey

ALPHA = 0.05
_KEY = PrivateKey(bytes(range(32)))


def collections(campaign: Campaign, items: UInt64Array, runs: Sequence[int]) -> Iterator[Counted]:
    """Yield the result of each run, in which the same clients report their items, uint64[n], once more."""
    mechanism, dictionary = campaign.require_frequency(), campaign.read_dictionary()
    columns = tally_items(mechanism)
    for run in runs:
        counts = mechanism.new_tally(columns)
        mechanism.accumulate(counts, mechanism.encode(items, SeededWords(7, run)), columns)
        result = Counted(campaign, Tally(counts, len(items), columns))
        result.__dict__["dictionary"] = dictionary
        yield result


@dataclass(frozen=True, eq=False)
class Scene:
    """Two windows: an oracle, the shares of items in each window, and the groups that are compared.

    Attributes:
        label: of the table's row.
        oracle, epsilon: of the mechanism; `parameters` as planned if empty, without a pool's seed.
        before, after: float64[d], shares of the items; without `after` nothing changes.
        reports: number of reports in each window.
        seeds: of a pool: "same" for both windows, or "other".
        size: number of items in each group, beside the groups of single items; 0: no larger groups.
    """

    label: str
    oracle: str
    epsilon: float
    before: FloatArray
    reports: tuple[int, int]
    after: FloatArray | None = None
    parameters: Parameters = field(default_factory=dict)
    seeds: Literal["same", "other"] = "same"
    size: int = 0

    @property
    def shares(self) -> tuple[FloatArray, FloatArray]:
        """The shares of both windows."""
        return self.before, self.before if self.after is None else self.after

    @cached_property
    def dictionary(self) -> Dictionary:
        """The items, in random order, and the reserved item after them."""
        return Dictionary(in_random_order(f"item {number}" for number in range(len(self.before))))

    @cached_property
    def planned(self) -> Parameters:
        """The mechanism's parameters, with an arbitrary seed if it needs one."""
        return self.parameters or plan(self.oracle, self.epsilon, self._domain, {}, Objective(), ANY_SEED)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Every item alone, then groups of neighbours."""
        names, size = self.dictionary.items, self.size
        wider = range(0, len(names) - size + 1, size) if size else ()
        return (
            *(Group(name, (name,)) for name in names),
            *(Group(f"group {start}", names[start : start + size]) for start in wider),
        )

    @cached_property
    def truth(self) -> tuple[FloatArray, FloatArray]:
        """The share of each group, before and after."""
        before, after = (
            np.array([shares[self.dictionary.positions(group.items).astype(np.intp)].sum() for group in self.groups])
            for shares in self.shares
        )
        return before, after

    def campaign(self, seed: str) -> Campaign:
        """Return a campaign; if its mechanism has a pool, the seed decides the pool's functions."""
        begin = datetime.now(timezone.utc).replace(microsecond=0) - timedelta(days=1)
        key = {"id": _KEY.id, "key": _KEY.public_key.hex(), "not_before": begin.isoformat()}
        listed = {"path": "items.txt", "items": len(self.before), "digest": self.dictionary.digest}
        parameters = {**self.planned, "seed": seed} if self._pooled else dict(self.planned)
        data: dict[str, Any] = {
            "id": "simulated",
            "mechanism": {"name": self.oracle, "epsilon": self.epsilon, "parameters": parameters},
            "keys": {"analyzer": [{**key, "not_after": (begin + timedelta(days=30)).isoformat()}]},
        }
        if self._pooled:
            return Campaign.model_validate(data)
        path = Path(self._folder.name) / f"{seed}.json"
        if not path.exists():
            path.write_text(json.dumps({**data, "dictionary": listed}), encoding="utf-8")
        return Campaign.read(path)

    @cached_property
    def _folder(self) -> TemporaryDirectory[str]:
        """The folder of the dictionary."""
        folder = TemporaryDirectory()
        text = "".join(f"{item}\n" for item in self.dictionary.items)
        (Path(folder.name) / "items.txt").write_text(text, encoding="utf-8")
        return folder

    def counted(self, campaign: Campaign, side: int, run: int) -> Counted:
        """Return one window of a run: draw its clients, then encode and tally their values."""
        drawn = np.random.default_rng([run, side]).multinomial(self.reports[side], self.shares[side])
        mechanism, dictionary = campaign.require_frequency(), None if self._pooled else self.dictionary
        items = items_of(mechanism, dictionary, self.dictionary.items)
        columns: UInt64Array = tally_items(mechanism)
        counts = mechanism.new_tally(columns)
        mechanism.accumulate(counts, mechanism.encode(np.repeat(items, drawn), SeededWords(side, run)), columns)
        result = Counted(campaign, Tally(counts, self.reports[side], columns), f"window {side}")
        # Set here, so that no window reads the dictionary again.
        result.__dict__["dictionary"] = dictionary
        return result

    def sides(self, run: int) -> tuple[Counted, Counted]:
        """Return both windows of a run; every run draws new functions of a pool."""
        first = self.campaign(fresh_functions(0, 2 * run))
        second = first if self.seeds == "same" else self.campaign(fresh_functions(0, 2 * run + 1))
        return self.counted(first, 0, run), self.counted(second, 1, run)

    @property
    def _pooled(self) -> bool:
        return CATALOGUE[self.oracle].seeded

    @property
    def _domain(self) -> int | None:
        return None if self._pooled else len(self.before) + 1


@dataclass(frozen=True, eq=False)
class Answers:
    """The results of comparisons in many runs; arrays [runs, groups].

    Attributes:
        p: p-values of single tests.
        adjusted: p-values that are adjusted for the whole list.
        holds: whether the interval of the difference holds the truth.
        ratio_holds: whether the interval of the ratio holds the truth.
        deviations: of the difference from the truth, in standard errors.
        single: bool[groups]: which groups are single items.
        exact: the share of p-values that are from Fisher's test.
    """

    p: FloatArray
    adjusted: FloatArray
    holds: BoolArray
    ratio_holds: BoolArray
    deviations: FloatArray
    single: BoolArray
    exact: float

    def rate(self, alpha: float, *, single: bool = True) -> FloatArray:
        """Return float64[runs]: the share of groups with a p-value of at most alpha."""
        return (self.p[:, self.single == single] <= alpha).mean(axis=1)


def compared(scene: Scene, run: int) -> Changes:
    """Compare both windows of a run."""
    before, after = scene.sides(run)
    return changes([before], [after], scene.groups)


def simulated(scene: Scene, runs: Sequence[int]) -> Answers:
    """Compare both windows in every run."""
    before, after = scene.truth
    found = [compared(scene, run) for run in runs]
    truth = after - before
    return Answers(
        p=np.array([one.p_value for one in found]),
        adjusted=np.array([one.adjusted for one in found]),
        holds=np.array([(one.low <= truth) & (truth <= one.high) for one in found]),
        ratio_holds=np.array(
            [(one.ratio_low * before <= after) & ((after <= one.ratio_high * before) | (before == 0)) for one in found]
        ),
        deviations=np.array([(one.difference - truth) / np.maximum(one.standard_error, 1e-300) for one in found]),
        single=np.array([len(group.items) == 1 for group in scene.groups]),
        exact=float(np.mean([one.exact.mean() for one in found])),
    )


def zipf(items: int) -> FloatArray:
    """Return float64[items]: shares that fall like 1/rank."""
    shares = 1.0 / np.arange(1, items + 1)
    return shares / shares.sum()


def changed(shares: FloatArray, items: int, ratio: float) -> FloatArray:
    """Change the last `items` shares: of these the second half rises by this ratio, and the first falls by as much."""
    found, half = shares.copy(), items // 2
    found[-half:] *= ratio
    found[-items:-half] *= 2.0 - ratio
    return found


MANY, POOL = 300, {"k": 32, "m": 32, "s": 4}
NULL = (
    *(Scene(name, name, 1.0, zipf(MANY), (20_000, 10_000), size=100) for name in ("ss", "ais", "ocms", "oue", "sue")),
    *(Scene(name, name, 1.0, zipf(MANY), (20_000, 10_000), size=100) for name in ("hr", "he", "rhr")),
    Scene("grr", "grr", 4.0, zipf(MANY), (20_000, 10_000), size=100),
    Scene("grr, few", "grr", 5.0, zipf(MANY), (300, 200), size=100),
    Scene("ais, few", "ais", 5.0, zipf(MANY), (300, 200), size=100),
    Scene("ss, few", "ss", 3.0, zipf(MANY), (200, 200), size=100),
    Scene("oue, few", "oue", 4.0, zipf(MANY), (300, 300), size=100),
    Scene("gcms, one seed", "gcms", 1.5, zipf(MANY), (4000, 4000), parameters=POOL, size=100),
    Scene("gcms, two seeds", "gcms", 1.5, zipf(MANY), (4000, 4000), parameters=POOL, seeds="other", size=100),
)
"""Scenes in which nothing changes."""
EVEN = np.full(100, 0.01)
LISTED = Scene("ss, 20 of 100", "ss", 3.0, EVEN, (40_000, 40_000), after=changed(EVEN, 20, 1.75))
"""A list in which a fifth of the items changes."""


def false_discoveries(scene: Scene, answers: Answers) -> FloatArray:
    """Return float64[runs]: among the changes that are significant at ALPHA, the share of items that did not change."""
    still = np.abs(scene.truth[1] - scene.truth[0]) < 1e-12
    found = answers.adjusted <= ALPHA
    return (found & still).sum(axis=1) / np.maximum(found.sum(axis=1), 1)


def powers(scene: Scene, runs: Sequence[int]) -> tuple[float, FloatArray]:
    """Return the predicted power for the groups that rose, and float64[runs]: the share of them that was detected.

    The level is that of a single test. The prediction uses the expected tallies at the true shares.
    """
    before, after = scene.truth
    moved = np.flatnonzero(np.abs(after / before - after[-1] / before[-1]) < 1e-9)
    chosen = [scene.groups[place] for place in moved]
    sides = scene.sides(runs[0])
    exact = [replace(side, tally=_at(scene, side)) for side in sides]
    for side in exact:
        side.__dict__["dictionary"] = scene.dictionary
    predicted = power_of(compared_sides([exact[0]], [exact[1]], chosen), float(after[-1] / before[-1]), ALPHA)
    answers = simulated(scene, runs)
    return float(predicted.mean()), (answers.p[:, moved] <= ALPHA).mean(axis=1)


def _at(scene: Scene, side: Counted) -> Tally:
    """Return a tally with the expected counts at the shares `before`."""
    law, shares = side.campaign.require_frequency().law, np.append(scene.before, 0.0)
    counts = np.rint(side.reports * (float(law.other) + shares * float(law.gain))).astype(np.int64)[None, :]
    return replace(side.tally, counts=counts)


def _mean(values: FloatArray) -> str:
    return f"{values.mean():.4f}±{values.std() / math.sqrt(len(values)):.4f}"


def lines(runs: int) -> Iterator[str]:
    """Yield the table."""
    yield "| nothing changes | Fisher | items <= .05 | items <= .01 | sums <= .05 | 95 % hold | of sums | ratios hold |"
    yield "|---|---|---|---|---|---|---|---|"
    for scene in NULL:
        one = simulated(scene, range(runs))
        single, wide = (one.holds[:, one.single == each].mean(axis=1) for each in (True, False))
        rates = [one.rate(0.05), one.rate(0.01), one.rate(0.05, single=False), single, wide]
        means = " | ".join(map(_mean, [*rates, one.ratio_holds.mean(axis=1)]))
        yield f"| {scene.label} | {one.exact:.2f} | {means} |"
    yield ""
    null = replace(LISTED, after=None)
    for scene in (null, LISTED):
        false = _mean(false_discoveries(scene, simulated(scene, range(runs))))
        yield f"{scene.label if scene is LISTED else 'nothing of 100'}: false discoveries at .05: {false}"
    predicted, seen = powers(LISTED, range(runs))
    yield f"{LISTED.label}: power predicted {predicted:.3f}, seen {_mean(seen)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    for line in lines(parser.parse_args().runs):
        print(line, flush=True)


if __name__ == "__main__":
    main()
