"""hushcount ask mean on durations: the mean of each window holds the truth, and a rise is seen."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import NumberPart
from pipelines.jobs.simulated_people import of_numbers
from pipelines.monitoring.dashboard import page_of
from pipelines.questions.spans import Span
from tests.support.collecting import collect, window_name
from tests.support.jobs import done, refused
from tests.support.site import Site, at

REPORTS, DAYS, HIGH = 3_000, 2, 2_000.0
NO_NUMBERS = ["slow", "NaN"]
FAR = 6.0
"""Standard errors that an estimate strays with a probability below 1e-8."""


def durations(day: int) -> list[float]:
    """Return log-normal durations; on the second day each is twice as long."""
    drawn = random.Random(day)
    return [drawn.lognormvariate(5.0 + day * math.log(2.0), 1.0) for _ in range(REPORTS)]


def truth_of(day: int) -> float:
    """Return the mean of clipped values; a text counts as the lowest one."""
    return sum(min(number, HIGH) for number in durations(day)) / (REPORTS + len(NO_NUMBERS))


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("timed"))
    campaign = site.add("times", "--number", f"0:{HIGH:g}", "--unit", "ms", "--mean", mechanism=None, epsilon=4.0)
    for day in range(DAYS):
        collect(site.store, campaign, [*map(str, durations(day)), *NO_NUMBERS], day=day)
    finished = site.run(DAYS + 0.1)
    assert finished.problems == []
    return site


def ask(site: Site, question: str, *options: object) -> Any:
    return done("ask", question, "--config", site.config, "--campaign", "times", *options, "--json").json


def test_the_mean_of_each_window_holds_the_truth_and_its_rise_is_seen(timed: Site) -> None:
    rows = ask(timed, "mean")["rows"]
    assert [row["window"] for row in rows] == [window_name(day) for day in range(DAYS)]
    for day, row in enumerate(rows):
        assert abs(row["mean"] - truth_of(day)) < FAR * row["standard_error"]
        # A line of epsilon 4 has a worst variance of 0.152 on [-1, 1], and a quarter of it on [0, 1].
        assert row["standard_error"] < HIGH * math.sqrt(1.03 * 0.152 / 4.0 / REPORTS)
        assert row["low_all"] < row["low"] < row["mean"] < row["high"] < row["high_all"]
        assert row["reports"] == REPORTS + len(NO_NUMBERS)
    first, second = rows
    assert first["change"] is None
    assert second["change"] == pytest.approx(second["mean"] - first["mean"])
    assert 0.0 < second["change_low_all"] < second["change_low"]
    # The clients of the two windows are others: their numbers vary too.
    error = (second["change_high"] - second["change"]) / 1.96
    assert error > 1.1 * math.hypot(first["standard_error"], second["standard_error"])


def test_windows_together_have_one_mean(timed: Site) -> None:
    (row,) = ask(timed, "mean", "--together")["rows"]
    assert row["reports"] == DAYS * (REPORTS + len(NO_NUMBERS))
    assert abs(row["mean"] - (truth_of(0) + truth_of(1)) / 2) < FAR * row["standard_error"]


def test_what_is_printed_says_how_numbers_outside_the_range_count(timed: Site) -> None:
    said = done("ask", "mean", "--config", timed.config, "--campaign", "times").out
    assert "mean in ms" in said
    assert "above 2000 as 2000" in said
    assert "without a number as 0" in said
    top = done("ask", "top", "--config", timed.config, "--campaign", "times").out
    assert "ask mean" in top


def test_the_page_has_the_mean_of_each_window_in_place_of_the_item(timed: Site) -> None:
    page = page_of(timed.deployment, at(DAYS + 0.2), Span(100))
    assert "Mean of the numbers" in page
    row = ask(timed, "mean")["rows"][-1]
    assert f">{row['mean']:,.0f}<" in page or f">{row['mean']:,.1f}<" in page
    assert ">2000 ms<" not in page


def test_the_page_of_a_result_has_its_mean(timed: Site) -> None:
    pages = [path.read_text() for path in sorted(timed.root.rglob("report.html"))]
    for page, row in zip(pages, ask(timed, "mean")["rows"], strict=True):
        assert f"{row['mean']:,.0f} \u00b1" in page or f"{row['mean']:,.1f} \u00b1" in page
        assert "above 2000 as 2000" in page
        assert ">2000 ms<" not in page


def test_questions_on_bins_and_means_refuse_each_other(timed: Site, asked: Site) -> None:
    assert "--mean" in refused("ask", "mean", "--config", asked.config, "--campaign", "ios").err
    for question in ("quantile", "histogram"):
        assert "by bins" in refused("ask", question, "--config", timed.config, "--campaign", "times").err


@pytest.mark.parametrize(
    "options",
    [
        ["--mean"],
        ["--mean", "--count", "3"],
        ["--mean", "--number", "0:10", "--bins", "log:8"],
        ["--mean", "--number", "10:0"],
        ["--mean", "--number", "0:nan"],
        ["--mean", "--number", "0:inf"],
        ["--mean", "--number", "0:10", "--mechanism", "grr"],
        ["--mean", "--number", "0:10", "--set", "m=1"],
        ["--mean", "--number", "0:10", "--discovery-epsilon", "1"],
        ["--mechanism", "line", "--number", "0:10"],
        ["--mechanism", "line", "--flag", "dark-mode"],
    ],
)
def test_means_that_cannot_be_are_refused(timed: Site, tmp_path: Path, options: list[str]) -> None:
    out = tmp_path / "c.json"
    refused("campaign", "new", "--id", "c", "--epsilon", "1", "--keys", timed.root / "keys", "--out", out, *options)
    assert not out.exists()


def test_a_mean_without_an_epsilon_and_a_plan_of_a_line_are_refused(timed: Site, tmp_path: Path) -> None:
    options = ("--keys", timed.root / "keys", "--out", tmp_path / "c.json", "--number", "0:10", "--mean")
    assert "give --epsilon" in refused("campaign", "new", "--id", "c", *options).err
    plan = ("plan", "--epsilon", 1, "--reports", 1000, "--dictionary-size", 2, "--mechanism", "line")
    assert "--mean" in refused(*plan).err


def test_true_counts_of_simulated_people_are_those_of_bins_or_one_mean() -> None:
    truth = [("3", 4), ("250", 2), ("slow", 3), ("1e9", 1)]
    bins = NumberPart(edges=("2", "300"), unit="ms", mean=False)
    assert of_numbers(bins, truth) == [("2 to 300 ms", 6), ("300 ms or more", 1), ("other", 3)]
    mean = NumberPart(edges=("2", "300"), unit="ms", mean=True)
    assert of_numbers(mean, truth) == [(f"mean {(4 * 3 + 2 * 250 + 3 * 2 + 300) / 10:g} ms", 10)]


def test_a_new_campaign_says_the_error_of_its_mean(timed: Site, tmp_path: Path) -> None:
    out = tmp_path / "c.json"
    options = (
        "--id",
        "c",
        "--epsilon",
        6,
        "--keys",
        timed.root / "keys",
        "--out",
        out,
        "--number",
        "-50:150",
        "--mean",
    )
    told = done("campaign", "new", *options, "--json").json
    assert told["standard_error_of_100000_reports"] == pytest.approx(100.0 * math.sqrt(0.0341 / 1e5), rel=0.01)
    assert told["numbers"] == "their mean, from -50 to 150"
    campaign = Campaign.read(out)
    assert campaign.number is not None
    assert (campaign.number.edges, campaign.number.unit, campaign.number.mean) == (("-50", "150"), "", True)
    listed = json.loads(out.read_text())["dictionary"]["path"]
    assert (out.parent / listed).read_text() == "150\n"
    after = tmp_path / "next.json"
    done("campaign", "new", "--after", out, "--keys", timed.root / "keys", "--out", after, "--set", "m=9")
    following = Campaign.read(after)
    assert following.number == campaign.number
    assert following.mechanism is not None
    assert (following.mechanism.name, following.mechanism.parameters["m"]) == ("line", 9)
