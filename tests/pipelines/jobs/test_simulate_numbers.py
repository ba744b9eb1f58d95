"""hushcount simulate and plan for numbers: truth and estimate in the unit, and intervals as wide as they turn out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.calibration_numbers import SHARES, Setting, held
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import build, plan
from hushcount.questions.means import Measured
from pipelines.jobs.simulate_numbers import even_quantiles
from tests.support.jobs import done, refused, write_lines
from tests.support.statistics import FAILURE

NUMBERS = np.random.default_rng(1).lognormal(5.0, 1.0, 500).round(2)
RUNS = 300
LEAST, MOST = (stats.binom.ppf(tail, RUNS, 0.95) / RUNS for tail in (FAILURE, 1.0 - FAILURE))
"""Of right intervals, fewer or more hold the truth with probability FAILURE each; of those of 50 %, as many do not."""


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = [*map(str, NUMBERS), "NaN", "a text"]
    return write_lines(tmp_path_factory.mktemp("numbers") / "values.txt", lines)


def simulated(values: Path, *options: object, runs: int = RUNS) -> dict[str, Any]:
    """Run the command and return what it prints for machines."""
    arguments = ("--epsilon", 3, "--values", values, "--unit", "ms", "--seed", 5, "--runs", runs)
    told: dict[str, Any] = done("simulate", *arguments, *options, "--json").json
    return told


def test_a_mean_is_simulated_beside_the_truth(values: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = simulated(values, "--number", "0:1000", "--mean")
    assert set(told) == {"mechanism", "parameters", "epsilon", "unit", "n", "other", "runs", "asked"}
    assert (told["mechanism"], told["unit"], told["n"], told["other"]) == ("line", "ms", len(NUMBERS) + 2, 2)
    (mean,) = told["asked"]
    truth = np.minimum(NUMBERS, 1000.0).sum() / (len(NUMBERS) + 2)
    assert (mean["question"], mean["truth"]) == ("mean", pytest.approx([truth, truth]))
    assert mean["interval"][0] < mean["estimate"][0] == mean["estimate"][1] < mean["interval"][1]
    assert LEAST <= mean["held"] <= MOST
    whole = Measured.interval
    monkeypatch.setattr(Measured, "interval", lambda one, _: whole(one, 0.5))
    assert simulated(values, "--number", "0:1000", "--mean")["asked"][0]["held"] < LEAST


def test_quantiles_are_simulated_beside_the_truth(values: Path) -> None:
    told = simulated(values, "--number", "0:1000", "--bins", "linear:20", "--mechanism", "grr")
    assert [one["question"] for one in told["asked"]] == ["50%", "90%", "99%"]
    for share, one in zip(SHARES, told["asked"], strict=True):
        low, high = one["truth"]
        assert low <= np.quantile(NUMBERS, share, method="inverted_cdf") < (high or np.inf)
        assert (one["interval"][0] or 0) <= (one["estimate"][0] or 0)
        assert one["held"] >= LEAST
    assert told["asked"][2]["interval"][1] is None, "the last bin has no end"
    shifted = write_lines(values.with_name("shifted.txt"), [*map(str, NUMBERS + 150.0)])
    other = simulated(shifted, "--number", "0:1000", "--bins", "linear:20", "--mechanism", "grr")
    assert other["asked"][0]["estimate"] != told["asked"][0]["estimate"]


def test_people_see_them_in_the_unit_and_values_that_are_no_numbers(values: Path) -> None:
    run = done("simulate", "--number", "0:1000", "--mean", "--epsilon", 3, "--values", values, "--unit", "ms")
    assert all(text in run.out for text in (" ms", "mean ", "%"))
    assert "2 values" in run.err


def test_what_is_no_simulation_of_numbers_is_one_sentence(values: Path, tmp_path: Path) -> None:
    asked = ("simulate", "--values", values, "--epsilon", 1)
    refused(*asked, "--number", "0:9", says=["--mechanism"])
    refused(*asked, "--number", "0:9", "--mean", "--mechanism", "ais", says=["--mechanism"])
    refused(*asked, "--number", "0:9", "--mechanism", "line", says=["--mean"])
    refused(*asked, "--number", "0:9", "--mechanism", "grr", "--dictionary", values, says=["--dictionary"])
    refused("simulate", "--send", "--number", "0:9", says=["--number"])
    texts = write_lines(tmp_path / "texts.txt", ["a", "NaN"])
    refused("simulate", "--values", texts, "--epsilon", 1, "--number", "0:9", "--mean", says=[str(texts)])


@pytest.mark.parametrize(("mechanism", "epsilon", "reports"), [("ais", 2.0, 4_000), ("grr", 4.0, 400)])
def test_planned_intervals_are_as_wide_as_those_of_collections(mechanism: str, epsilon: float, reports: int) -> None:
    """An average of 60 widths has a standard error of a third of a bin."""
    setting = Setting(mechanism, epsilon, 64, reports, "even", other=0.0)
    widths = held(setting, range(60)).width
    planned = build(mechanism, epsilon, 65, plan(mechanism, epsilon, 65, {}, Objective(), ""))
    for times, alike in ((1.0, True), (0.25, False), (4.0, False)):
        found = even_quantiles(planned, setting.part.bins, int(times * reports)).found
        away = [abs(one.alone[1] - one.alone[0] + 1 - width) for one, width in zip(found, widths, strict=True)]
        assert (max(away) < 2.0) == alike
        assert (min(away) > 2.0) != alike
