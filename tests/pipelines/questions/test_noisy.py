"""What `ask`, tables, alerts and pages say of results with noise of the mixes."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.numbers import Bins
from hushcount.oracles.estimates import Levels
from hushcount.questions.counted import Group
from pipelines.deployment.parts import AlertsPart
from pipelines.jobs.data_set import data_set_bytes
from pipelines.jobs.results import write_tally
from pipelines.monitoring.alert import surely_changed
from pipelines.questions.sides import Sides
from pipelines.questions.sources import from_folders
from tests.support.jobs import done, refused
from tests.support.noisy import noisy_campaign, noisy_tally, placed

ITEMS = tuple(f"item {number}" for number in range(20))
HELD: tuple[Mapping[str, int], ...] = (
    {"item 0": 900, "item 1": 60, "item 2": 400, "": 140},
    {"item 0": 900, "item 1": 300, "item 2": 400, "": 100},
)
FAR = 6.0
"""Standard errors: a count strays so far with a probability below 1e-5, in two windows and ten figures below 2e-4; the
dummies are the same in every run of these tests."""
AXES = {"listed": [{"name": "os", "values": ["ios", "linux"], "public": False}], "key": "ab" * 32}


def stored(folder: Path, campaign: Campaign, held: tuple[np.ndarray, ...]) -> list[object]:
    """Write results, and return the words that name them in a question."""
    words: list[object] = ["--campaign", folder / "campaign.json"]
    for number, cells in enumerate(held):
        place = folder / f"window{number}"
        place.mkdir()
        write_tally(str(place), noisy_tally(campaign, cells, number), campaign)
        words += ["--result", place]
    return words


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    folder = tmp_path_factory.mktemp("noisy")
    campaign = noisy_campaign(folder, ITEMS)
    return stored(folder, campaign, tuple(placed(campaign, held) for held in HELD))


def asked(question: str, results: list[object], *more: object) -> Any:
    return done("ask", question, *results, *more, "--json").json["rows"]


@pytest.mark.parametrize("question", ["top", "item", "sum", "total", "change", "compare"])
def test_every_headline_says_sealed(results: list[object], question: str) -> None:
    items = () if question in ("top", "change", "compare") else ("--item", "item 0", "--item", "item 1")
    said = done("ask", question, *results, *items).out
    assert "noisy (sealed, not randomised)" in said.splitlines()[0]


def test_counts_sums_and_totals_are_near_the_truth(results: list[object]) -> None:
    (alone,) = {round(row["standard_error"], 6) for row in asked("item", results, "--item", "item 3")}
    assert alone == pytest.approx(4.21, abs=0.01)
    top = asked("top", results[:-2])
    assert [row["item"] for row in top][:3] == ["item 0", "item 2", "item 1"]
    for row in asked("item", results, "--item", "item 1"):
        true = HELD[int(row["window"][-1])]["item 1"]
        assert abs(row["count"] - true) < FAR * row["standard_error"]
    (total,) = asked("total", results, "--item", "item 1")
    # Dummies of two windows.
    assert total["standard_error"] == pytest.approx(alone * np.sqrt(2.0))
    assert abs(total["count"] - 360) < FAR * total["standard_error"]
    (first, _) = asked("sum", results, "--item", "item 0", "--item", "item 2")
    assert first["standard_error"] == pytest.approx(alone * np.sqrt(2 * (1 - 2 / 21)))
    assert abs(first["count"] - 1300) < FAR * first["standard_error"]


def test_a_rise_is_told_and_noise_is_not(results: list[object]) -> None:
    found = {row["group"]: row for row in asked("change", results)}
    assert found["item 1"]["adjusted"] < 1e-6
    assert found["item 1"]["exact"]
    rare = [row["p_value"] for name, row in found.items() if int(name.split()[1]) > 2]
    assert min(rare) > 1e-4


def test_alerts_are_confirmed_by_the_law_of_the_dummies(results: list[object]) -> None:
    source = from_folders([str(results[1])], [str(results[3]), str(results[5])])
    before, after = (source.of([window]) for window in source.windows)
    groups = [Group(item, (item,)) for item in ITEMS]
    sure = surely_changed(Sides(before, after, ("before", "after")), groups, AlertsPart(command=("true",)))
    assert "item 1" in {one.group for one in sure}
    assert {one.group for one in sure} <= {"item 0", "item 1", "item 2"}
    assert all(one.p_bonferroni > 0.0 for one in sure)


def test_few_clients_show_nothing_and_the_answer_says_what_would_show(tmp_path: Path) -> None:
    """The dummies of an item are more than all clients."""
    campaign = noisy_campaign(tmp_path, ITEMS)
    held = placed(campaign, {"item 0": 6, "": 4})
    results = stored(tmp_path, campaign, (held, held))
    top = done("ask", "top", *results[:-2], "--json").json
    assert top["rows"] == []
    assert any("No item shows with 10 people" in said and "error 4.21" in said for said in top["says"])
    assert not any(row["detected_all"] for row in asked("item", results, "--item", "item 0"))
    assert done("ask", "top", *results, "--last", 2, "--json").json["rows"] == []


def test_a_tally_with_more_than_all_dummies_is_refused(tmp_path: Path) -> None:
    campaign = noisy_campaign(tmp_path, ITEMS)
    tally = noisy_tally(campaign, placed(campaign, HELD[0]), 1)
    (tmp_path / "r").mkdir()
    write_tally(str(tmp_path / "r"), replace(tally, counts=tally.counts + 5_000), campaign)
    says = ["the number of its reports and dummies"]
    refused("ask", "top", "--campaign", tmp_path / "campaign.json", "--result", tmp_path / "r", says=says)


def test_a_table_says_noise_and_its_epsilon(tmp_path: Path) -> None:
    campaign = noisy_campaign(tmp_path, ITEMS)
    tally = noisy_tally(campaign, placed(campaign, HELD[0]), 1)
    names = list(campaign.read_dictionary().items)  # type: ignore[union-attr]
    estimate = campaign.require_frequency().estimate(tally, np.arange(20, dtype=np.uint64))
    low, high = estimate.interval(0.95)
    seen = estimate.detected(0.001)
    estimates = pa.table(
        {
            "item": names, "count": estimate.count, "standard_error": estimate.standard_error,
            "collision_error": estimate.collision_error, "low": low, "high": high, "low_all": low, "high_all": high,
            "detected": seen, "detected_all": seen,
        }
    )  # fmt: skip
    rows = pq.read_table(io.BytesIO(data_set_bytes(campaign, tally, Levels(), estimates, None, None, None))).to_pylist()
    assert {(row["mechanism"], row["epsilon"], row["pool"], row["repeated"]) for row in rows} == {
        ("noise", 1.0, False, False)
    }
    assert {round(row["variance"], 1) for row in rows} == {17.7}


def test_private_axes_have_strata_with_errors_of_their_cells(tmp_path: Path) -> None:
    campaign = noisy_campaign(tmp_path, ITEMS[:4], axes=AXES)
    cells = np.full(15, 40)
    results = stored(tmp_path, campaign, (cells, cells))
    (row,) = asked("item", results[:-2], "--item", "item 1", "--where", "os=ios")
    assert abs(row["count"] - 40) < FAR * row["standard_error"]
    assert row["standard_error"] == pytest.approx(4.21, abs=0.01)
    everywhere = asked("item", results[:-2], "--item", "item 1")[0]
    # Three cells, of fifteen whose sum is known.
    assert everywhere["standard_error"] == pytest.approx(4.21 * np.sqrt(3 * (1 - 3 / 15)), abs=0.02)
    assert len(asked("top", results[:-2], "--by", "os")) <= 12


def test_numbers_have_histograms_and_quantiles(tmp_path: Path) -> None:
    number = {"edges": ["10", "20", "30"], "unit": "ms", "mean": False}
    names = Bins(("10", "20", "30"), "ms").names
    campaign = noisy_campaign(tmp_path, names, number=number)
    held = placed(campaign, dict(zip(names, (100, 500, 300, 100), strict=True)))
    results = stored(tmp_path, campaign, (held,))
    rows = asked("histogram", results)
    assert [row["bin"] for row in rows] == list(names)
    for row, true in zip(rows, (100, 500, 300, 100), strict=True):
        assert abs(row["count"] - true) < FAR * row["standard_error"]
    (median,) = asked("quantile", results, "--at", "50%")
    # 400 numbers away from both ends of its bin.
    assert (median["bin"], median["interval"]) == ("10 to 20 ms", "10 to 20 ms")
