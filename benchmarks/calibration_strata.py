"""How often intervals of shares in strata hold the truth: python -m benchmarks.calibration_strata.

The same clients answer again and again; each collection gives an interval for the share of a group in a stratum.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.calibration_changes import Scene, collections
from hushcount.arrays import BoolArray, FloatArray
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, in_random_order
from hushcount.questions.counted import Counted, Group
from hushcount.questions.shares import stratum_shares
from hushcount.report_making import items_for

AXES = {"platform": ("linux", "mac os", "windows"), "version": ("2.1", "2.0")}
GROUPS = (
    Group("frequent", ("item 0",), (("platform", "linux"),)),
    Group("rare", ("item 5",), (("platform", "linux"),)),
    Group("several", ("item 0", "item 2", "item 3"), (("platform", "linux"),)),
    Group("smaller", ("item 0",), (("platform", "mac os"),)),
    Group("narrow", ("item 1",), (("platform", "linux"), ("version", "2.1"))),
)
RUNS = 5300
"""Intervals of each share: a true coverage of 95 % is measured outside 93.5 to 96.5 % with probability 1e-6."""
_OF_ITEMS = (0.5, 0.2)
_OF_COORDINATES = (0.5, 0.3)


@dataclass(frozen=True, eq=False)
class Setting:
    """Clients with items and coordinates: half of them have the first of each, and 10 % have a value that is other.

    Attributes:
        moved: the part of the clients on "mac os" that have the first item, whatever they had.
        draw: seed of the draw of the clients from all people.
    """

    mechanism: str
    epsilon: float
    items: int
    reports: int
    moved: float = 0.0
    draw: int = 1

    @cached_property
    def clients(self) -> tuple[list[str], list[Mapping[str, str]]]:
        """The value and the coordinates of each client."""
        drawn = np.random.default_rng(self.draw)
        places = drawn.choice(self.items + 1, self.reports, p=_shares(self.items + 1, _OF_ITEMS))
        at = {
            axis: np.array([*values, "none"])[
                drawn.choice(len(values) + 1, self.reports, p=_shares(len(values) + 1, _OF_COORDINATES))
            ].tolist()
            for axis, values in AXES.items()
        }
        move = (np.array(at["platform"]) == "mac os") & (drawn.random(self.reports) < self.moved)
        by: list[Mapping[str, str]] = [dict(zip(at, one, strict=True)) for one in zip(*at.values(), strict=True)]
        return [f"item {place}" for place in np.where(move, 0, places)], by

    def truth(self, group: Group) -> float:
        """Return the share that a group has of its stratum."""
        inside = [
            value in group.items
            for value, by in zip(*self.clients, strict=True)
            if all(by[axis] == at for axis, at in group.where)
        ]
        return float(np.mean(inside))

    def results(self, runs: Sequence[int]) -> Iterator[Counted]:
        """Yield the result of each collection."""
        values, by = self.clients
        with TemporaryDirectory() as folder:
            campaign = self._campaign(Path(folder))
            items = items_for(campaign, campaign.read_dictionary(), values, by=by)
            yield from collections(campaign, items, runs)

    def _campaign(self, folder: Path) -> Campaign:
        strata = int(np.prod([len(values) + 1 for values in AXES.values()]))
        scene = Scene("", self.mechanism, self.epsilon, np.ones((self.items + 1) * strata - 1), (1, 1))
        file = json.loads(scene.campaign("").text())
        listed = Dictionary(in_random_order([f"item {place}" for place in range(self.items)]))
        (folder / "items.txt").write_bytes(listed.text)
        file["dictionary"] = {"path": "items.txt", "items": self.items, "digest": listed.digest}
        axes = [{"name": axis, "public": False, "values": values} for axis, values in AXES.items()]
        file["axes"] = {"key": bytes(range(32)).hex(), "listed": axes}
        (folder / "c.json").write_text(json.dumps(file), encoding="utf-8")
        return Campaign.read(folder / "c.json")


def _shares(places: int, first: Sequence[float]) -> FloatArray:
    left = places - len(first)
    return np.append(first, np.full(left, (1.0 - sum(first)) / left))


def held(setting: Setting, runs: Sequence[int], confidence: float = 0.95) -> tuple[BoolArray, BoolArray]:
    """Return bool[runs, groups] each: whether the interval holds the truth, and whether the share is known."""
    truth = np.array([setting.truth(group) for group in GROUPS])
    found = [stratum_shares([one], GROUPS) for one in setting.results(runs)]
    ends = np.array([one.interval(confidence) for one in found])
    return (ends[:, 0] <= truth) & (truth <= ends[:, 1]), np.array([one.known(confidence) for one in found])


_ORACLES = (
    ("ais", 1.0),
    ("ais", 4.0),
    ("hr", 2.0),
    ("oue", 2.0),
    ("ss", 1.0),
    ("grr", 6.0),
    ("olh", 2.0),
    ("wss", 2.0),
    ("he", 2.0),
)
SETTINGS = tuple(
    Setting(*oracle, items, reports) for oracle, (items, reports) in product(_ORACLES, ((8, 4_000), (20, 20_000)))
)


def main() -> int:
    """Print a line for each setting; return 1 if intervals of a share that is nearly always known are off 95 %."""
    off = 0
    named = ", ".join(one.name for one in GROUPS)
    print(f"{'mechanism':9} {'eps':>3} {'items':>5} {'n':>6}  held (known) in %, for {named}")
    for setting in SETTINGS:
        came, known = (100.0 * each.mean(axis=0) for each in held(setting, range(RUNS)))
        off += bool(((known > 99.0) & (np.abs(came - 95.0) > 1.5)).any())
        said = "  ".join(f"{one:5.1f} ({sure:5.1f})" for one, sure in zip(came, known, strict=True))
        print(f"{setting.mechanism:9} {setting.epsilon:3g} {setting.items:5} {setting.reports:6,}  {said}", flush=True)
    return int(off > 0)


if __name__ == "__main__":
    sys.exit(main())
