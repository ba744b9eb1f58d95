"""hushcount ask item: counts over windows, and earlier windows asked for what was discovered later."""

from __future__ import annotations

import csv
import json
import math
import shutil
import warnings
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.windows import window_start, window_text
from pipelines.jobs import results
from pipelines.monitoring.dashboard import page_of
from pipelines.questions.plot import _curve, write_plot
from pipelines.questions.sources import from_store
from pipelines.questions.spans import Span
from tests.support.collecting import collect, window_name
from tests.support.jobs import done, files_of, refused, write_lines
from tests.support.site import Site, at

HALF = 200
SAME = ("count", "standard_error", "collision_error", "low", "high", "detected")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site of two windows that nobody writes to."""
    site = Site(tmp_path_factory.mktemp("whole"))
    for day in (0, 1):
        collect(site.store, site.campaign, ["alpha"] * (day + 1) * HALF + ["nobody"] * HALF, day=day)
        site.run(day + 1.1)
    return site


@pytest.fixture
def site(whole: Site, tmp_path: Path) -> Site:
    return whole.copied(tmp_path / "site")


def test_each_window_has_its_counts_with_their_errors(whole: Site, tmp_path: Path) -> None:
    site = whole
    out, plot = tmp_path / "trend.csv", tmp_path / "trend.png"
    command = ["ask", "item", "--config", site.config, "--campaign", "words"]
    said = done(*command, "--out", out, "--plot", plot).out
    assert window_text(window_name(0)) in said
    rows = list(csv.DictReader(out.open()))
    # Nobody holds the others: they are looked at, and shown only where chance has them detected.
    shown = {row["item"] for row in rows if row["detected_all"] == "true"}
    assert "alpha" in shown
    assert {item for item in ("alpha", "beta", "gamma") if item in said} == shown
    number = len(shown)
    assert f"{number} of 3 items are detected" in said
    assert " 6 counts " in said
    assert [(row["window"], row["item"]) for row in rows] == [
        (window_name(day), item) for day in (0, 1) for item in ("alpha", "beta", "gamma")
    ]
    for day, row in enumerate(rows[::3]):
        result = next(
            csv.DictReader((files_of(site.store / "results" / "words" / site.batch(day)) / "estimates.csv").open())
        )
        assert [row[name] for name in SAME] == [result[name] for name in SAME]
        assert int(row["reports"]) == (day + 2) * HALF
        assert row["backfilled"] == "false"
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert out.stat().st_mode & 0o777 == plot.stat().st_mode & 0o777 == 0o600
    refused(*command, "--out", out, says=[out.name])
    one = done(*command, "--item", "beta", "--last", 1, "--json").json["rows"]
    assert [(row["window"], row["item"]) for row in one] == [(window_name(1), "beta")]


def test_a_picture_shows_names_as_they_are(tmp_path: Path) -> None:
    # A legend would read the first as a formula that is wrong, leave the second out, and have no room for the third.
    items = [r"$\frac{1$", "_hidden", "x" * 4096, "</text><script>"]
    table = pa.Table.from_pylist(
        [
            {"item": item, "window": window_name(day), "epoch": 1, "count": 2.0, "low": 1.0, "high": 3.0, "reports": 9}
            for item in items
            for day in (0, 1)
        ]
    )
    ends = {window_name(day): at(day + 1) for day in (0, 1)}
    for path in (tmp_path / "plot.png", tmp_path / "plot.svg"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            write_plot(path, table, items, ends)
        assert b"<script>" not in path.read_bytes()
    drawn = path.read_text()
    assert all(f"<!--  {name} -->" in drawn for name in items[:2])


def test_a_picture_breaks_a_line_where_windows_are_missing(site: Site) -> None:
    line = [{"window": window_name(day), "count": 2.0, "low": 1.0, "high": 3.0, "reports": 9} for day in (0, 1, 4)]
    ends = {row["window"]: window_start(row["window"]) + timedelta(days=1) for row in line}
    when, curves = _curve(line, ends)
    assert curves.shape == (3, 4)
    assert np.isnan(curves).tolist() == [[False, False, True, False]] * 3
    assert when.tolist() == sorted(when.tolist())
    source = from_store(site.deployment, "words")
    assert source.ends == {name: window_start(name) + timedelta(days=1) for name in source.windows}


def test_a_result_in_the_place_of_another_window_is_refused(site: Site, whole: Site) -> None:
    first, second = (site.store / "results" / "words" / site.batch(day) for day in (0, 1))
    shutil.rmtree(second)
    shutil.copytree(first, second)
    for question in ("item", "change"):
        refused("ask", question, "--config", site.config, "--campaign", "words", says=[site.batch(1), "place"])
    assert site.batch(1) in page_of(site.deployment, at(2.2), Span(100))
    assert site.batch(1) not in page_of(whole.deployment, at(2.2), Span(100))


def test_a_tally_that_cannot_be_is_named(site: Site) -> None:
    path = files_of(site.store / "results" / "words" / site.batch(1)) / "tally.npz"
    campaign = Campaign.read(site.campaign)
    tally = results.read_tally(str(path), campaign)
    for counts in (tally.counts - 10**6, tally.counts + tally.reports):
        results.write_tally(str(path.parent), replace(tally, counts=counts), campaign)
        for question in ("item", "change"):
            refused("ask", question, "--config", site.config, "--campaign", "words", says=[str(path), "outside"])
    path.write_bytes(path.read_bytes()[:100])
    refused("ask", "item", "--config", site.config, "--campaign", "words", says=[str(path), "damaged"])


def test_an_open_domain_is_asked_of_windows_before_an_item_was_discovered(tmp_path: Path) -> None:
    site = Site(tmp_path)
    path = site.add("open", "--set", "k=32", "--set", "m=64", mechanism="gcms", epsilon=4.0)
    late = {"item": "newcomer", "source": "discovered", "first_seen": window_name(1), "last_seen": window_name(1)}
    path.with_name("items.json").write_text(json.dumps({"items": [late]}))
    for day in (0, 1):
        collect(site.store, path, ["newcomer"] * HALF + ["other"] * HALF, day=day)
        site.run(day + 1.1)
    rows = done("ask", "item", "--config", site.config, "--campaign", "open", "--json").json["rows"]
    assert [(row["window"], row["backfilled"]) for row in rows] == [(window_name(0), True), (window_name(1), False)]
    for row in rows:
        assert abs(row["count"] - HALF) < 6 * row["standard_error"] + 12 * row["collision_error"]
        assert row["collision_error"] > 0.0
        assert row["low_all"] < row["low"]
    said = done("ask", "item", "--config", site.config, "--campaign", "open").out
    for row in rows:
        error = math.hypot(row["standard_error"], row["collision_error"])
        assert f"{row['count']:,.0f} ± {error:,.0f} {row['count'] / row['reports']:.1%}" in said


def test_a_value_that_is_found_without_a_count_is_told_with_its_windows(tmp_path: Path) -> None:
    site = Site(tmp_path, discovery=True)
    for day in (0, 1):
        collect(site.store, site.campaign, ["newcomer"] * HALF + ["alpha"] * HALF, day=day)
        site.run(day + 1.1)
    answer = done("ask", "new", "--config", site.config, "--campaign", "words", "--json").json
    (row,) = answer["rows"]
    assert (row["item"], row["first_seen"], row["last_seen"]) == ("newcomer", window_name(0), window_name(1))
    # Without [next_epoch.CAMPAIGN] nothing follows discovered values: found.csv of the windows has them, none waits.
    assert (row["window"], row["count"], row["decision"], row["listed"]) == (None, None, "", False)
    assert answer["says"]
    given = [{"item": "alpha", "source": "given"}]
    late = {"item": "newcomer", "source": "discovered", "first_seen": window_name(0), "last_seen": window_name(0)}
    (site.root / "campaigns" / "words" / "items.json").write_text(json.dumps({"items": [*given, late]}))
    for option, decision in ((), "waiting"), (("--reject", "all"), "rejected"):
        done("campaign", "review", "--config", site.config, "--campaign", "words", *option)
        (row,) = done("ask", "new", "--config", site.config, "--campaign", "words", "--json").json["rows"]
        assert (row["decision"], row["last_seen"]) == (decision, window_name(1))


def test_what_cannot_be_shown_is_one_sentence(whole: Site, tmp_path: Path) -> None:
    command = ["ask", "item", "--config", whole.config, "--campaign"]
    refused(*command, "nothing", says=["campaign is 'nothing'", "words"])
    refused(*command, "words", "--item", "delta", says=["'delta'"])
    refused(*command, "words", "--out", tmp_path / "t.txt", says=["t.txt", ".csv", ".parquet"])
    refused(*command, "words", "--plot", tmp_path / "t.pdf", says=["t.pdf", ".png", ".svg"])
    fresh = Site(tmp_path)
    refused("ask", "item", "--config", fresh.config, "--campaign", "words", status=3, says=["words"])


def counted(site: Site, name: str, *options: object, **more: Any) -> Path:
    """Put a campaign with counts of discovered values on the site, which follows "newcomer" from the second day."""
    path = site.add(name, *options, "--discovery-counts", discovery=1.0, **more)
    items = [{"item": "alpha", "source": "given"}] if "dictionary" in more else []
    late = {"item": "newcomer", "source": "discovered", "first_seen": window_name(0), "last_seen": window_name(0)}
    path.with_name("items.json").write_text(json.dumps({"items": [*items, late]}))
    return path


def test_a_discovered_value_has_counts_before_the_dictionary_lists_it(tmp_path: Path) -> None:
    site = Site(tmp_path)
    path = counted(site, "listed", dictionary=write_lines(tmp_path / "listed.txt", ["alpha", "beta"]))
    collect(site.store, path, ["newcomer"] * HALF + ["alpha"] * HALF, day=0)
    site.run(1.1)
    rows = {
        row["item"]: row
        for row in done("ask", "item", "--config", site.config, "--campaign", "listed", "--json").json["rows"]
    }
    assert (rows["alpha"]["source"], rows["newcomer"]["source"]) == ("estimate", "discovery")
    row = rows["newcomer"]
    # Beyond 60 the noise has a probability below 1e-9.
    assert abs(row["count"] - HALF) < 60
    assert row["low_all"] < row["low"] < row["count"] < row["high"] < row["high_all"]
    assert (row["detected_all"], row["backfilled"], row["combined"]) == (True, False, None)
    assert 2.5 < row["standard_error"] < 3.5
    said = done("ask", "item", "--config", site.config, "--campaign", "listed").out
    assert f"{row['count']:,.0f} ± 3 {row['count'] / row['reports']:.1%} +" in said
    answer = done("ask", "new", "--config", site.config, "--campaign", "listed", "--json").json
    (new,) = answer["rows"]
    assert (new["item"], new["first_seen"], new["window"]) == ("newcomer", window_name(0), window_name(0))
    assert (new["listed"], new["decision"], new["source"]) == (False, "waiting", "discovery")
    assert (new["count"], new["low"], new["high"]) == (row["count"], row["low"], row["high"])
    said = done("ask", "new", "--config", site.config, "--campaign", "listed").out
    assert "1 discovered value," in said
    top = done("ask", "top", "--config", site.config, "--campaign", "listed").out
    assert "newcomer" in top
    assert "has the noisy count that discovery released" in top
    assert "have no row" not in top
    assert f"{row['count']:,.0f} ± 3" in said


def test_an_open_domain_shows_both_counts_as_one(tmp_path: Path) -> None:
    site = Site(tmp_path)
    path = counted(site, "open", "--set", "k=32", "--set", "m=64", mechanism="gcms", epsilon=4.0)
    collect(site.store, path, ["newcomer"] * HALF + ["other"] * HALF, day=0)
    site.run(1.1)
    (row,) = done("ask", "item", "--config", site.config, "--campaign", "open", "--json").json["rows"]
    assert row["source"] == "estimate"
    assert abs(row["combined"] - HALF) < 60
    assert row["combined_error"] < 3.0 < row["standard_error"]
    said = done("ask", "item", "--config", site.config, "--campaign", "open").out
    assert f"{row['combined']:,.0f} ± {row['combined_error']:,.0f} " in said
    # Where the result of the window did not combine them, as in an oblivious campaign, neither does this.
    (path,) = (site.store / "results" / "open").rglob("found.csv")
    path.write_text("".join(",".join(line.split(",")[:6]) + "\n" for line in path.read_text().splitlines()))
    (alone,) = done("ask", "item", "--config", site.config, "--campaign", "open", "--json").json["rows"]
    assert alone == {**row, "combined": None, "combined_error": None}
