"""Quantiles of private strata: intervals hold the truth of each, and a stratum of nobody has no quantile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.calibration_numbers import LEAST, SHARES
from benchmarks.calibration_strata import Setting
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, in_random_order
from hushcount.campaigns.parts import NumberPart
from hushcount.numbers import edges_between
from hushcount.questions.quantiles import Quantiles, quantiles, sums_of
from tests.support.statistics import FAILURE

RUNS = 300
BOUND = stats.binom.ppf(FAILURE, RUNS, LEAST) / RUNS
"""Intervals that hold the truth in 93.5 % are found to hold it in a smaller share with probability FAILURE."""
PART = NumberPart(edges=edges_between(1.0, 60_000.0, 16, "log"), unit="ms", mean=False)
MEDIANS = {"linux": 2_000.0, "mac os": 200.0}
SLOW, FAST, NOBODY = ((("platform", at),) for at in (*MEDIANS, "windows"))


@dataclass(frozen=True, eq=False)
class Timed(Setting):
    """Clients with durations, ten times as long on linux as on mac os; nobody is on windows."""

    @cached_property
    def clients(self) -> tuple[list[str], list[Mapping[str, str]]]:
        drawn = np.random.default_rng(self.draw)
        platforms = drawn.choice([*MEDIANS], self.reports, p=(0.6, 0.4)).tolist()
        numbers = [MEDIANS[at] * np.exp(0.7 * drawn.standard_normal()) for at in platforms]
        return [f"{number:.6g}" for number in numbers], [{"platform": at, "version": "2.1"} for at in platforms]

    def bin_of(self, platform: str, share: float) -> int:
        """Return the bin of a quantile of the clients' own numbers."""
        values, by = self.clients
        own = sorted(float(value) for value, one in zip(values, by, strict=True) if one["platform"] == platform)
        return int(np.searchsorted(PART.bins.values, own[int(np.ceil(share * len(own))) - 1], side="right"))

    def _campaign(self, folder: Path) -> Campaign:
        super()._campaign(folder)
        file, listed = json.loads((folder / "c.json").read_text()), Dictionary(in_random_order(PART.bins.names))
        (folder / "items.txt").write_bytes(listed.text)
        file["dictionary"]["digest"], file["number"] = listed.digest, PART.model_dump(mode="json")
        (folder / "c.json").write_text(json.dumps(file))
        return Campaign.read(folder / "c.json")


@pytest.fixture(scope="module")
def found() -> dict[tuple[tuple[str, str], ...], list[Quantiles]]:
    setting = Timed("ais", 3.0, len(PART.bins), 2_000)
    results = [*setting.results(range(RUNS))]
    return {where: [quantiles(sums_of([one], where), SHARES) for one in results] for where in (SLOW, FAST, NOBODY, ())}


def held(found: list[Quantiles], platform: str) -> float:
    """Return the least share, of all quantiles, of the intervals that hold the truth of a platform."""
    truth = [Timed("ais", 3.0, len(PART.bins), 2_000).bin_of(platform, share) for share in SHARES]
    hits = [[q.alone[0] <= at <= q.alone[1] for q, at in zip(one.found, truth, strict=True)] for one in found]
    return float(np.mean(hits, axis=0).min())


def test_intervals_hold_the_truth_of_their_stratum_and_of_no_other(
    found: dict[tuple[tuple[str, str], ...], list[Quantiles]],
) -> None:
    assert held(found[SLOW], "linux") >= BOUND
    assert held(found[FAST], "mac os") >= BOUND
    assert held(found[SLOW], "mac os") < BOUND
    assert held(found[()], "mac os") < BOUND
    assert all(one.are_known for where in (SLOW, FAST) for one in found[where])


def test_a_stratum_of_nobody_has_no_quantile(found: dict[tuple[tuple[str, str], ...], list[Quantiles]]) -> None:
    """The sum of its bins is significant in one tail of three intervals of 95 %, 0.9 %, of the runs."""
    known = sum(one.are_known for one in found[NOBODY])
    assert known <= stats.binom.isf(FAILURE, RUNS, 0.025 / len(SHARES))
    unknown = [one for one in found[NOBODY] if not one.are_known]
    assert {ends for one in unknown for q in one.found for ends in (q.alone, q.together)} == {(0, len(PART.bins) - 1)}
