"""hushcount ask quantile and ask histogram on durations: intervals hold the truth, whole bins are said."""

from __future__ import annotations

import json
import math
import random
from itertools import pairwise, product
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

from pipelines.audit.view import View
from pipelines.deployment.campaigns import read_epochs
from pipelines.deployment.parts import AlertsPart
from pipelines.deployment.settings import Deployment
from pipelines.monitoring.alert import alert_of
from pipelines.monitoring.dashboard import page_of, panel_of
from pipelines.pages.figures import Choice
from pipelines.questions.sources import from_store
from pipelines.questions.spans import Span
from tests.support.collecting import collect, window_name
from tests.support.jobs import done, refused, write_lines
from tests.support.site import Site, at

REPORTS, DAYS = 3_000, 2
SHARES = (0.5, 0.9, 0.99)
FAR = 6.0
"""Standard errors that an estimate strays with a probability below 1e-8."""


def durations(day: int) -> list[float]:
    """Return log-normal durations; on the second day each is twice as long."""
    drawn = random.Random(day)
    return [drawn.lognormvariate(5.0 + day * math.log(2.0), 1.0) for _ in range(REPORTS)]


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("timed"))
    campaign = site.add("times", "--number", "0:10000", "--unit", "ms", "--bins", "log:20", epsilon=6.0)
    for day in range(DAYS):
        collect(site.store, campaign, [*map(str, durations(day)), "slow", "NaN"], day=day)
    assert site.run(DAYS + 0.1).problems == []
    return site


def ask(site: Site, question: str, *options: object) -> Any:
    return done("ask", question, "--config", site.config, "--campaign", "times", *options, "--json").json


def test_intervals_of_quantiles_hold_the_truth_of_each_window(timed: Site) -> None:
    rows = ask(timed, "quantile")["rows"]
    assert [(row["window"], row["at"]) for row in rows] == [
        (window_name(day), at) for day in range(DAYS) for at in SHARES
    ]
    for row in rows:
        numbers = sorted(durations([window_name(day) for day in range(DAYS)].index(row["window"])))
        truth = numbers[math.ceil(row["at"] * REPORTS) - 1]
        # All six hold together with 95 %; far more than 1 - 1e-6 with one bin more on each side.
        low, high = (row["low_all"] or 0.0) / 1.8, (row["high_all"] or math.inf) * 1.8
        assert low <= truth < high
        assert row["reports"] == REPORTS + 2
        assert row["interval"] == row["bin"] or " to " in row["interval"] or "more" in row["interval"]


def test_changes_of_quantiles_hold_the_truth_and_are_of_the_window_before(timed: Site) -> None:
    rows = ask(timed, "quantile")["rows"]
    assert all(row["change_low"] is row["change_high"] is None for row in rows[: len(SHARES)])
    for row in rows[len(SHARES) :]:
        # Each duration is twice as long on the second day.
        truth = math.exp(5.0 + NormalDist().inv_cdf(row["at"]))
        low, high = row["change_low_all"], row["change_high_all"]
        assert (-math.inf if low is None else low) < truth < (math.inf if high is None else high)
        assert low is None or low <= row["change_low"]
    assert rows[len(SHARES)]["change_low_all"] >= 0.0
    said = done("ask", "quantile", "--config", timed.config, "--campaign", "times").out
    assert f"{rows[len(SHARES)]['change_low_all']:+,g} to" in said


def rounded(values: list[Any]) -> list[Any]:
    """Return values without the last digits of floats: sums of several results may be added in another order."""
    return [round(value, 9) if isinstance(value, float) else value for value in values]


def test_numbers_are_asked_of_one_stratum(tmp_path: Path) -> None:
    """Quantiles and histograms by private and public coordinates, a mean by public ones; on linux all takes longer."""
    site, drawn = Site(tmp_path), random.Random(7)
    (tmp_path / "versions.txt").write_text("2.1\n")
    (tmp_path / "platforms.txt").write_text("linux\nmac\n")
    axes = ("--public-by", f"platform={tmp_path / 'platforms.txt'}")
    numbers = ("--number", "0:10000", "--unit", "ms")
    bins = site.add(
        "bins", *numbers, "--bins", "log:20", "--by", f"version={tmp_path / 'versions.txt'}", *axes, epsilon=6.0
    )
    mean = site.add("mean", *numbers, "--mean", *axes, mechanism=None, epsilon=6.0)
    people = [
        (min(drawn.lognormvariate(5.0 + (platform == "linux"), 0.5), 9_000.0), version, platform)
        for platform in ("linux", "mac") for version in ("2.1", "1.0") for _ in range(2_000)
    ]  # fmt: skip
    collect(site.store, bins, ["\t".join(map(str, one)) for one in people], day=0)
    collect(site.store, mean, [f"{number}\t{platform}" for number, _, platform in people], day=0)
    assert site.run(1.1).problems == []

    def told(question: str, campaign: str, **where: str) -> Any:
        options = [text for axis, one in where.items() for text in ("--where", f"{axis}={one}")]
        return done("ask", question, "--config", site.config, "--campaign", campaign, *options, "--json").json

    for where in ({"platform": "linux"}, {"platform": "mac", "version": "2.1"}, {"version": "other"}):
        held = sorted(
            number for number, version, platform in people
            if where.get("platform", platform) == platform
            and where.get("version", "2.1" if version == "2.1" else "other") == ("2.1" if version == "2.1" else "other")
        )  # fmt: skip
        for row in told("quantile", "bins", **where)["rows"]:
            # With one bin more on each side they hold far more often than 1 - 1e-6.
            low, high = (row["low_all"] or 0.0) / 1.8, (row["high_all"] or math.inf) * 1.8
            assert low <= held[math.ceil(row["at"] * len(held)) - 1] < high
            assert row["reports"] == (8_000 if "platform" not in where else 4_000)
        for row in told("histogram", "bins", **where)["rows"]:
            true = sum((row["from"] or 0.0) <= number < (row["to"] or math.inf) for number in held)
            assert abs(row["count"] - true) < FAR * max(row["standard_error"], 1.0)
    (row,) = told("mean", "mean", platform="mac")["rows"]
    held = [number for number, _, platform in people if platform == "mac"]
    assert row["reports"] == len(held)
    assert abs(row["mean"] - sum(held) / len(held)) < FAR * row["standard_error"]
    assert any("platform=mac" in said for said in told("mean", "mean", platform="mac")["says"])
    refused("ask", "sum", "--config", site.config, "--campaign", "mean", "--by", "platform", says=["ask mean"])

    # Each row of --by is that of --where, but for intervals that hold for more rows together.
    alone = {"quantile": ("bin", "interval", "low", "high"), "histogram": ("count", "low", "high"), "mean": ("mean",)}
    for question, names in alone.items():
        campaign, axis = ("mean", "platform") if question == "mean" else ("bins", "version")
        ask_by = ("ask", question, "--config", site.config, "--campaign", campaign, "--by", axis)
        rows = done(*ask_by, "--json").json["rows"]
        told_by = [row[f"by.{axis}"] for row in rows]
        assert [*dict.fromkeys(told_by)] == (["linux", "mac"] if question == "mean" else ["2.1", "other"])
        for value in dict.fromkeys(told_by):
            one = [row for row in rows if row[f"by.{axis}"] == value]
            same = told(question, campaign, **{axis: value})["rows"]
            told_alone, told_apart = ([rounded([row[name] for name in names]) for row in of] for of in (one, same))
            assert told_alone == told_apart
    ask_both = ("ask", "quantile", "--config", site.config, "--campaign", "bins", "--by", "version", "--by", "platform")
    rows = done(*ask_both, "--at", "50%", "--json").json["rows"]
    assert [(row["by.version"], row["by.platform"]) for row in rows] == [
        (version, platform) for version in ("2.1", "other") for platform in ("linux", "mac")
    ]
    # All take e times as long on linux.
    assert all(fast["high"] < slow["low"] * 1.8 for slow, fast in pairwise(rows) if slow["by.platform"] == "linux")
    assert "linux" in done(*ask_both).out

    campaigns, _ = read_epochs(site.deployment.campaigns)
    views = {one.campaign: one for one in View(site.deployment, at(1.2), campaigns).each()}
    blocks = {name: panel_of(views[name], name, Span(100))[0].blocks for name in ("bins", "mean")}
    parts = {
        name: [one for one in blocks[name] if isinstance(one, Choice) and one.label == "Broken down by"]
        for name in blocks
    }
    assert not parts["mean"], "the item of a mean is not broken down"
    figures = {figure.heading: figure for figure in parts["bins"][0].figures}
    order = [row["bin"] for row in told("histogram", "bins")["rows"]]
    for coordinate in ("version=2.1", "platform=linux"):
        shown = [order.index(row.name) for row in figures[coordinate].rows]
        # Each of the three bins around the median has hundreds of the reports.
        assert len(shown) >= 3
        assert shown == sorted(shown)
        assert figures[coordinate].heads[0] == "bin"


def test_a_stratum_that_may_be_empty_has_no_quantile(tmp_path: Path) -> None:
    site, drawn = Site(tmp_path), random.Random(9)
    (tmp_path / "versions.txt").write_text("2.1\n")
    by = ("--by", f"version={tmp_path / 'versions.txt'}")
    bins = site.add("bins", "--number", "0:10000", "--unit", "ms", "--bins", "log:20", *by, epsilon=3.0)
    collect(site.store, bins, [f"{drawn.lognormvariate(5.0, 1.0)}\t1.0" for _ in range(2_000)], day=0)
    assert site.run(1.1).problems == []
    asked = ("ask", "quantile", "--config", site.config, "--campaign", "bins", "--by", "version")
    rows = done(*asked, "--json").json["rows"]
    nobody, all_ = rows[:3], rows[3:]
    assert {row["by.version"] for row in nobody} == {"2.1"}
    assert all(row["bin"] is not None for row in all_)
    # With probability 0.004 nobody's bins seem to be of somebody; then all three quantiles are shown.
    unknown = {row["bin"] is row["bin_low"] is row["low"] is row["high_all"] is None for row in nobody}
    assert len(unknown) == 1
    out = done(*asked).out
    assert "version=other" in out
    assert ("may be none" in out) is ("any number" in out) is unknown.pop()


def test_a_change_is_against_the_window_before_in_the_same_stratum(tmp_path: Path) -> None:
    """On the second of four days mac is too small to be counted, so on the third it has no change."""
    site, drawn = Site(tmp_path), random.Random(11)
    axes = ("--public-by", f"platform={write_lines(tmp_path / 'platforms.txt', ['linux', 'bsd', 'mac'])}")
    numbers = ("--number", "0:10000", "--unit", "ms")
    bins = site.add("bins", *numbers, "--bins", "log:20", *axes, epsilon=6.0, min_batch=100)
    mean = site.add("mean", *numbers, "--mean", *axes, mechanism=None, epsilon=6.0, min_batch=100)
    for day in range(4):
        # Each duration is ten times as long from the third day on.
        people = [
            f"{min(drawn.lognormvariate(4.0, 0.3) * (10 if day > 1 else 1), 9_000.0)}\t{platform}"
            for platform, many in (("linux", 600), ("bsd", 500), ("mac", 20 if day == 1 else 500))
            for _ in range(many)
        ]  # fmt: skip
        collect(site.store, bins, people, day=day)
        collect(site.store, mean, people, day=day)
        assert site.run(day + 1.1, sure=True).problems == []
    by = ("--config", site.config, "--by", "platform")
    for question, name, column in (("mean", "mean", "change"), ("quantile", "bins", "change_low_all")):
        options = ("--at", "50%") if question == "quantile" else ()
        asked = ("ask", question, *by, "--campaign", name, *options)
        told = done(*asked, "--json").json
        days = {window_name(day): day for day in range(4)}
        seen = {(row["by.platform"], days[row["window"]]): row[column] for row in told["rows"]}
        assert [*seen] == [*product(["linux", "bsd"], range(4)), *product(["mac"], (0, 2, 3))]
        unknown = {place for place, change in seen.items() if change is None}
        assert unknown == {("linux", 0), ("bsd", 0), ("mac", 0), ("mac", 2)}
        assert seen["linux", 2] > 0
        # Windows of one campaign file are added up before they are compared.
        both = done(*asked, "--together", "--json").json["rows"]
        assert [(row["by.platform"], row["reports"]) for row in both] == [
            ("linux", 2_400), ("bsd", 2_000), ("mac", 1_500)
        ]  # fmt: skip
        assert "platform=linux" in done(*asked).out


def test_windows_together_are_one_answer(timed: Site) -> None:
    both = ask(timed, "quantile", "--together", "--at", "0.5")["rows"]
    assert [(row["at"], row["reports"]) for row in both] == [(0.5, DAYS * (REPORTS + 2))]


def test_a_histogram_counts_every_bin_in_order(timed: Site) -> None:
    rows = ask(timed, "histogram")["rows"]
    assert len(rows) == 20
    assert [row["from"] for row in rows[1:]] == [row["to"] for row in rows[:-1]]
    assert (rows[0]["from"], rows[0]["bin"], rows[-1]["to"], rows[-1]["bin"]) == (
        None,
        "below 1 ms",
        None,
        "10000 ms or more",
    )
    for row in rows:
        truth = sum((row["from"] or 0.0) <= number < (row["to"] or math.inf) for number in durations(1))
        assert abs(row["count"] - truth) < FAR * math.hypot(row["standard_error"], row["collision_error"])
    said = done("ask", "histogram", "--config", timed.config, "--campaign", "times").out
    assert "10000 ms or more" in said
    assert "NaN" in said


def test_an_alert_watches_the_share_from_an_edge_on(timed: Site) -> None:
    path = timed.root / "campaigns" / "times" / "times.json"
    edge = json.loads(path.read_text())["number"]["edges"][-5]
    config = timed.root / "watching.toml"
    groups = f"slow = {{at_least = {edge}}}\nbetween = {{at_least = {edge}1}}"
    config.write_text(f"{timed.config.read_text()}\n[analyzer.groups]\n{groups}\n")
    part = AlertsPart(command=("true",), groups=("slow", "between"))
    alert = alert_of(from_store(Deployment.read(config), "times"), part, {})
    assert alert is not None
    (rise,) = alert.changes
    truths = [sum(number >= float(edge) for number in durations(day)) / (REPORTS + 2) for day in range(DAYS)]
    assert rise.group == "slow"
    assert abs(rise.difference - (truths[1] - truths[0])) < FAR * rise.standard_error
    assert truths[1] > 1.5 * truths[0]


def test_the_page_has_every_bin_and_three_percentiles_of_each_window(timed: Site) -> None:
    page = page_of(timed.deployment, at(DAYS + 0.2), Span(100))
    rows = ask(timed, "histogram")["rows"]
    assert all(page.count(f">{row['bin']}<") >= 1 for row in rows)
    newest = [row for row in ask(timed, "quantile")["rows"] if row["window"] == window_name(DAYS - 1)]
    assert [row["at"] for row in newest] == list(SHARES)
    for name, row in zip(("Median", "90th percentile", "99th percentile"), newest, strict=True):
        assert f">{name}<" in page
        assert f"{row['bin']}, in {row['interval']} with 95" in page


def test_questions_on_numbers_refuse_texts_and_wrong_shares(timed: Site, asked: Site) -> None:
    for question in ("quantile", "histogram"):
        assert "by bins" in refused("ask", question, "--config", asked.config, "--campaign", "ios").err
    for wrong, named in (("0", "at is"), ("100%", "below 1"), ("fifty", "at is"), ("50%,", "at is")):
        words = ("--config", timed.config, "--campaign", "times", "--at", wrong)
        assert named in refused("ask", "quantile", *words).err


@pytest.mark.parametrize(
    "options",
    [
        ["--number", "0:10", "--count", "3"],
        ["--number", "10:0"],
        ["--number", "0:10", "--bins", "log:1"],
        ["--number", "0:10", "--bins", "log:2000"],
        ["--number", "-1:10"],
        ["--number", "ten"],
        ["--number", "0:nan"],
        ["--unit", "ms"],
        ["--number", "0:10", "--unit", "m s"],
        ["--bins", "missing.txt"],
        ["--count", "0"],
        ["--number", "0:10", "--open-domain"],
        ["--flag", ""],
        ["--number", "0:10", "--discovery-epsilon", "1"],
    ],
)
def test_bins_that_cannot_be_are_refused(timed: Site, tmp_path: Path, options: list[str]) -> None:
    out = tmp_path / "c.json"
    refused(
        "campaign",
        "new",
        "--id",
        "c",
        "--mechanism",
        "grr",
        "--epsilon",
        "1",
        "--keys",
        timed.root / "keys",
        "--out",
        out,
        *options,
    )
    assert not out.exists()


def test_edges_of_a_file_a_count_and_a_flag_make_bins(timed: Site, tmp_path: Path) -> None:
    edges = write_lines(tmp_path / "edges.txt", ("2", "10.5"))
    for options, names in (
        (["--bins", str(edges), "--unit", "ms"], {"below 2 ms", "2 to 10.5 ms", "10.5 ms or more"}),
        (["--count", "2"], {"0", "1", "2 or more"}),
        (["--flag", "dark-mode"], {"dark-mode"}),
    ):
        out = tmp_path / options[0].strip("-") / "c.json"
        out.parent.mkdir()
        done(
            "campaign",
            "new",
            "--id",
            "c",
            "--mechanism",
            "grr",
            "--epsilon",
            "1",
            "--keys",
            timed.root / "keys",
            "--out",
            out,
            *options,
        )
        listed = json.loads(out.read_text())["dictionary"]["path"]
        assert set((out.parent / listed).read_text().split("\n")) - {""} == names
