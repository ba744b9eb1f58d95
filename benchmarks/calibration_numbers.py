"""How often intervals of quantiles hold the truth, and their widths: python -m benchmarks.calibration_numbers.

The same clients answer again and again; each collection gives an interval for three quantiles of their numbers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np

from benchmarks.calibration_changes import Scene, collections
from hushcount.arrays import FloatArray, IntArray
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, in_random_order, items_of
from hushcount.campaigns.parts import NumberPart
from hushcount.numbers import edges_between
from hushcount.questions.counted import Counted
from hushcount.questions.quantiles import Quantiles, quantiles, sums_of

SHARES = (0.5, 0.9, 0.99)
LEAST = 0.935
"""Share of intervals of 95 % that must hold the truth; intervals of whole bins hold it more often."""
RUNS = 400
"""Intervals of each quantile: a true coverage of 95 % is measured below 91 % with probability 1e-3."""
Shape = Literal["log-normal", "even", "one bin"]


@dataclass(frozen=True, eq=False)
class Setting:
    """Clients with numbers, and the mechanism that reports their bins.

    Attributes:
        shape: of the numbers; "one bin": 60 % of the clients are in one bin, and the others evenly in all.
        other: the share of clients without a number.
        draw: seed of the draw of the clients from all people.
    """

    mechanism: str
    epsilon: float
    bins: int
    reports: int
    shape: Shape
    other: float = 0.1
    draw: int = 1

    @cached_property
    def part(self) -> NumberPart:
        """The section of the campaign file."""
        return NumberPart(edges=edges_between(0.0, 60_000.0, self.bins, "log"), unit="ms", mean=False)

    @property
    def shares(self) -> FloatArray:
        """float64[bins + 1]: the share of all people with a number in each bin; the last have none."""
        places = np.arange(self.bins) / self.bins
        shares = {
            "log-normal": np.exp(-0.5 * ((places - 0.5) / 0.12) ** 2),
            "even": np.ones(self.bins),
            "one bin": np.where(np.arange(self.bins) == self.bins // 3, 1.5 * self.bins, 1.0),
        }[self.shape]
        return np.append((1.0 - self.other) * shares / shares.sum(), self.other)

    @cached_property
    def held(self) -> IntArray:
        """int64[bins + 1]: how many clients have a number in each bin; the last ones have none."""
        return np.random.default_rng(self.draw).multinomial(self.reports, self.shares)

    def truth(self, share: float) -> int:
        """Return the bin of a quantile of the clients' numbers."""
        numbers = self.held[:-1]
        return int(np.argmax(numbers.cumsum() >= share * numbers.sum()))

    def found(self, runs: Sequence[int], confidence: float = 0.95, sampled: bool = False) -> Iterator[Quantiles]:
        """Yield the quantiles of each collection."""
        yield from (quantiles(sums_of([one]), SHARES, confidence, sampled=sampled) for one in self.results(runs))

    def results(self, runs: Sequence[int]) -> Iterator[Counted]:
        """Yield the result of each collection."""
        with TemporaryDirectory() as folder:
            campaign = self._campaign(Path(folder))
            named = items_of(campaign.require_frequency(), campaign.read_dictionary(), [*self.part.bins.names, ""])
            yield from collections(campaign, np.repeat(named, self.held), runs)

    def _campaign(self, folder: Path) -> Campaign:
        scene = Scene("", self.mechanism, self.epsilon, np.ones(self.bins), (1, 1))
        file = json.loads(scene.campaign("").text())
        listed = Dictionary(in_random_order(self.part.bins.names))
        (folder / "bins.txt").write_bytes(listed.text)
        file["dictionary"] = {"path": "bins.txt", "items": self.bins, "digest": listed.digest}
        file["number"] = self.part.model_dump(mode="json")
        (folder / "c.json").write_text(json.dumps(file), encoding="utf-8")
        return Campaign.read(folder / "c.json")


@dataclass(frozen=True, eq=False)
class Held:
    """What came of a setting's runs: arrays by quantile of SHARES.

    Attributes:
        share: float64[3], of the intervals that hold the truth.
        width: float64[3], bins of an interval on average.
    """

    share: FloatArray
    width: FloatArray


def held(setting: Setting, runs: Sequence[int], confidence: float = 0.95) -> Held:
    """Return how often the intervals of a setting hold the truth."""
    truth = np.array([setting.truth(share) for share in SHARES])
    ends = np.array([[one.alone for one in each.found] for each in setting.found(runs, confidence)])
    low, high = ends[..., 0], ends[..., 1]
    return Held(((low <= truth) & (truth <= high)).mean(axis=0), (high - low + 1).mean(axis=0))


_ORACLES = (("grr", 6.0), ("ais", 0.5), ("ais", 2.0), ("ais", 4.0), ("ss", 1.0), ("oue", 1.0), ("hr", 1.0), ("he", 2.0))
_SHAPES: tuple[Shape, ...] = ("log-normal", "even", "one bin")
SETTINGS = (
    *(Setting(*oracle, 64, 20_000, shape) for oracle, shape in product(_ORACLES, _SHAPES)),
    *(Setting(*oracle, 16, 300, shape) for oracle, shape in product(_ORACLES, _SHAPES)),
    *(Setting("ais", epsilon, 1024, 300, shape, 0.0) for epsilon, shape in product((1.0, 5.0), _SHAPES)),
)


def main() -> int:
    """Print a line for each setting; return 1 if too few of its intervals hold the truth."""
    low = 0
    print(f"{'mechanism':10} {'eps':>4} {'bins':>5} {'n':>7} {'shape':11} held (50, 90, 99 %)   bins of the interval")
    for setting in SETTINGS:
        came = held(setting, range(RUNS if setting.bins < 1000 else RUNS // 4))
        low += bool((came.share < LEAST).any())
        shares, widths = (" ".join(f"{one:6.1f}" for one in row) for row in (100 * came.share, came.width))
        named = f"{setting.mechanism:10} {setting.epsilon:4g} {setting.bins:5} {setting.reports:7,} {setting.shape:11}"
        print(f"{named} {shares}  {widths}", flush=True)
    print(f"{len(SETTINGS)} settings, {low} with fewer than {100 * LEAST:g} % of an interval")
    return int(low > 0)


if __name__ == "__main__":
    sys.exit(main())
