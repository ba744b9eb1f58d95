"""--by and --where: items by axes from clients' lines to answers, with the truth beside; a change of one stratum."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from pipelines.audit.view import View
from pipelines.deployment.campaigns import read_epochs
from pipelines.deployment.parts import AlertsPart
from pipelines.monitoring.alert import watched
from pipelines.monitoring.dashboard import page_of, panel_of
from pipelines.pages.figures import Choice
from pipelines.questions.selection import declared_groups
from pipelines.questions.sides import of_windows
from pipelines.questions.sources import from_store
from pipelines.questions.spans import Span
from tests.support.breakdowns import FAR, ask, is_near
from tests.support.collecting import collect
from tests.support.jobs import done, refused, write_lines
from tests.support.site import Site, at

REPORTS, DAYS = 6_000, 2


def lines(day: int) -> list[str]:
    """Return a value and coordinates of each person; on the second day, beta moves to version 2.1 on linux."""
    many = {
        ("alpha", "2.1", "linux"): 1_500, ("alpha", "2.0", "mac os"): 1_000, ("alpha", "1.9", "bsd"): 500,
        ("beta", "2.1", "linux"): 300 + 900 * day, ("beta", "2.0", "linux"): 1_200 - 900 * day, ("gamma", "2.1"): 1_000,
        ("nobody", "2.0", "mac os"): 500,
    }  # fmt: skip
    return ["\t".join(cell) for cell, count in many.items() for _ in range(count)]


def truth(day: int, **where: str) -> Counter[str]:
    """Return how many people have each value, of those with these coordinates."""
    found, listed = Counter[str](), {"version": ("2.1", "2.0"), "platform": ("linux", "mac os")}
    for line in lines(day):
        value, *coordinates = line.split("\t")
        told = dict(zip(listed, coordinates, strict=False))
        by = {axis: told[axis] if told.get(axis) in listed[axis] else "other" for axis in listed}
        found[value] += all(by[axis] == wanted for axis, wanted in where.items())
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("breakdown"))
    by = (
        "--by", f"version={write_lines(site.root / 'versions.txt', ['2.1', '2.0', 'other'])}",
        "--by", f"platform={write_lines(site.root / 'platforms.txt', ['linux', 'mac os'])}",
    )  # fmt: skip
    path = site.add("parts", *by, mechanism="ais", epsilon=5.0, dictionary=site.words)
    for day in range(DAYS):
        collect(site.store, path, lines(day), day=day)
    assert site.run(DAYS + 0.1).problems == []
    return site


def test_every_item_is_counted_in_every_stratum_and_in_all(site: Site) -> None:
    rows = ask(site, "item", "--last", 1, "--item", "alpha", "--item", "beta", "--by", "version", "--by", "platform")[
        "rows"
    ]
    assert len(rows) == 2 * 3 * 3
    for row in rows:
        assert is_near(row, truth(1, version=row["by.version"], platform=row["by.platform"])[row["item"]])
    whole = ask(site, "item", "--last", 1, "--item", "alpha")["rows"]
    assert is_near(whole[0], 3_000)
    assert whole[0]["standard_error"] > 1.2 * min(row["standard_error"] for row in rows), "a sum of nine cells"


def test_the_most_frequent_are_those_of_a_stratum(site: Site, tmp_path: Path) -> None:
    out = tmp_path / "top.csv"
    said = ask(site, "top", "--where", "platform=linux", "--by", "version", "--out", out)
    found = {(row["item"], row["by.version"]) for row in said["rows"]}
    # A false detection, of probability 5 % at most, is one of a count that is near.
    assert found >= {("alpha", "2.1"), ("beta", "2.1"), ("beta", "2.0")}
    assert all(is_near(row, truth(1, version=row["by.version"], platform="linux")[row["item"]]) for row in said["rows"])
    assert all(row["by.platform"] == "linux" for row in said["rows"])
    written = list(csv.DictReader(out.read_text().splitlines()))
    assert {(row["item"], row["by.version"], row["by.platform"]) for row in written} == {
        (*cell, "linux") for cell in found
    }
    shown = done("ask", "top", "--config", site.config, "--campaign", "parts", "--by", "version").out
    assert "alpha [version=2.1]" in shown
    # Three items in three versions were looked at.
    assert "9 counts" in shown


def test_sums_and_totals_are_of_the_strata_asked_for(site: Site) -> None:
    rows = ask(site, "sum", "--last", 1, "--all", "--by", "platform")["rows"]
    for row in rows:
        held = truth(1, platform=row["by.platform"])
        assert is_near(row, held.total() - held["nobody"])
    for row in ask(site, "sum", "--last", 1, "--by", "platform")["rows"]:
        assert row["group"] == "all reports"
        assert is_near(row, truth(1, platform=row["by.platform"]).total())
    (total,) = ask(site, "total", "--item", "alpha", "--where", "version=2.1", "--where", "platform=linux")["rows"]
    assert (total["group"], total["by.version"], total["by.platform"]) == ("alpha", "2.1", "linux")
    assert is_near(total, 3_000)


def test_a_row_has_its_share_of_the_stratum_with_its_error(site: Site, tmp_path: Path) -> None:
    out, where = tmp_path / "shares.csv", ("--by", "version", "--where", "platform=linux")
    answers = {
        "top": ask(site, "top", *where, "--out", out)["rows"],
        "item": ask(site, "item", "--last", 1, "--item", "alpha", "--item", "gamma", *where)["rows"],
        "sum": ask(site, "sum", "--last", 1, "--item", "alpha", "--item", "beta", *where)["rows"],
    }
    for row in [row for rows in answers.values() for row in rows]:
        held = truth(1, version=row["by.version"], platform="linux")
        if held.total():
            true = sum(held[item] for item in row.get("group", row.get("item")).split(" + ")) / held.total()
            assert abs(row["stratum_share"] - true) < FAR * max(row["stratum_share_error"], 0.001)
            ends = [row[f"stratum_share_{end}"] for end in ("low_all", "low", "high", "high_all")]
            assert ends == sorted(ends)
            assert ends[0] <= row["stratum_share"] <= ends[3]
    # Nobody is on linux with another version.
    (empty,) = (row for row in answers["sum"] if row["by.version"] == "other")
    assert empty["stratum_share"] is None or empty["stratum_share_low_all"] == 0.0
    written = {(row["item"], row["by.version"]): row for row in csv.DictReader(out.read_text().splitlines())}
    (first, *_) = answers["top"]
    assert float(written[first["item"], first["by.version"]]["stratum_share"]) == pytest.approx(first["stratum_share"])
    (total,) = ask(site, "total", "--item", "alpha", "--where", "version=2.1")["rows"]
    of_both = [truth(day, version="2.1") for day in range(DAYS)]
    true = sum(held["alpha"] for held in of_both) / sum(held.total() for held in of_both)
    assert abs(total["stratum_share"] - true) < FAR * total["stratum_share_error"]


def test_only_rows_that_are_detected_or_named_have_a_share_of_their_stratum(site: Site) -> None:
    rows = ask(site, "item", "--last", 1, "--by", "version", "--by", "platform")["rows"]
    assert {row["stratum_share"] is None for row in rows if not row["detected_all"]} == {True}
    assert {row["stratum_share"] is None for row in rows if row["detected_all"]} == {False}
    for question in (("item", "--item", "alpha"), ("sum", "--by", "platform")):
        assert "stratum_share" not in ask(site, question[0], "--last", 1, *question[1:])["rows"][0]


def test_two_strata_of_one_window_are_compared(site: Site) -> None:
    sides = ("--where", "platform=linux", "--against", "platform=mac os")
    rows = {row["group"]: row for row in ask(site, "compare", *sides)["rows"]}
    linux, mac = (truth(1, platform=one) for one in ("linux", "mac os"))
    assert set(rows) == {"alpha", "beta", "gamma"}
    for item, row in rows.items():
        true = linux[item] / linux.total() - mac[item] / mac.total()
        assert abs(row["difference"] - true) < FAR * row["standard_error"]
        assert row["low_all"] <= row["low"] <= row["difference"] <= row["high"] <= row["high_all"]
    assert (rows["alpha"]["significant"], rows["beta"]["significant"]) == (True, True)
    assert rows["beta"]["difference"] > 0.0 > rows["alpha"]["difference"]
    both = ("--where", "version=2.1", *sides, "--item", "alpha", "--item", "beta")
    for row in ask(site, "compare", *both)["rows"]:
        # Nobody on mac os has this version, so that stratum's count is above its noise in 5 % at most.
        assert row["by.version"] == "2.1"
        assert row["difference"] is None or row["stratum_before"] < FAR * 50
    shown = done("ask", "compare", "--config", site.config, "--campaign", "parts", *sides, "--item", "beta").out
    assert "platform=linux" in shown


def test_a_comparison_of_no_two_strata_is_refused(site: Site) -> None:
    compare = ("ask", "compare", "--config", site.config, "--campaign", "parts")
    for wrong in (
        ("--against", "platform=linux"),
        ("--where", "platform=linux", "--against", "platform=linux"),
        ("--where", "platform=linux", "--against", "version=2.1"),
    ):
        refused(*compare, *wrong, says=["another coordinate on an axis of --where"])
    refused(*compare, "--where", "platform=linux", "--against", "platform=bsd", says=["'bsd'"])
    refused(*compare, "--by", "platform", "--where", "version=2.1", "--against", "platform=linux", says=["--where"])


def test_a_change_is_found_in_its_stratum(site: Site) -> None:
    rows = ask(site, "change", "--by", "version", "--by", "platform")["rows"]
    assert len(rows) == 27
    changes = {("beta", "2.1", "linux"): 900, ("beta", "2.0", "linux"): -900}
    for row in rows:
        true = changes.get((row["group"], row["by.version"], row["by.platform"]), 0) / REPORTS
        assert abs(row["difference"] - true) < FAR * row["standard_error"]
        assert row["significant"] or true == 0.0


def test_what_no_dictionary_lists_is_other_in_all_strata(site: Site) -> None:
    """500 of 6,000 people have a value that is not listed; the standard error is below 1 % of the reports."""
    (said,) = (one for one in ask(site, "top")["says"] if one.startswith('"other"'))
    share = float(said.partition("list: ")[2].partition("%")[0])
    assert abs(share - 100.0 * 500 / REPORTS) < FAR


def test_the_page_has_what_is_detected_of_each_coordinate(site: Site) -> None:
    campaigns, _ = read_epochs(site.deployment.campaigns)
    (view,) = (one for one in View(site.deployment, at(DAYS + 0.2), campaigns).each() if one.campaign == "parts")
    panel, _ = panel_of(view, "parts", Span(100))
    (choice,) = (block for block in panel.blocks if isinstance(block, Choice) and block.label == "Broken down by")
    figures = {figure.heading: figure for figure in choice.figures}
    assert [row.name for row in figures["platform"].rows] == ["linux", "mac os", "other"]
    for row in figures["platform"].rows:
        assert is_near(dict(row.facts), truth(1, platform=row.name).total())
    assert len(figures) == 2 + 3 + 3
    for axis, coordinate in (("version", "2.1"), ("version", "2.0"), ("platform", "linux"), ("platform", "other")):
        held = truth(1, **{axis: coordinate})
        rows = {row.name: row.facts for row in figures[f"{axis}={coordinate}"].rows}
        assert set(rows) >= {item for item, count in held.items() if count >= 300 and item != "nobody"}
        assert all(is_near(dict(row), held[item]) for item, row in rows.items())
        assert figures[f"{axis}={coordinate}"].heads[-1] == "in stratum"
        for item, row in rows.items():
            share, error = (float(str(row[name])) for name in ("stratum_share", "stratum_share_error"))
            assert abs(share - held[item] / held.total()) < FAR * error
    assert "Broken down by" in page_of(site.deployment, at(DAYS + 0.2), Span(100))


def test_a_group_of_the_deployment_may_be_of_some_coordinates(site: Site) -> None:
    """It is on the page and watched by alerts; campaigns without the axis have no such group."""
    before = site.config.read_text()
    site.config.write_text(
        f'{before}\n[analyzer.groups]\npair = {{items = ["alpha", "beta"], where = {{platform = "linux"}}}}\n'
        'gone = {items = ["alpha"], where = {country = "x"}}\n'
    )
    try:
        (row,) = ask(site, "sum", "--last", 1, "--group", "pair")["rows"]
        held = truth(1, platform="linux")
        assert is_near(row, held["alpha"] + held["beta"])
        rows = ask(site, "sum", "--last", 1, "--group", "pair", "--by", "version")["rows"]
        assert [(row["group"], row["by.version"]) for row in rows] == [("pair", one) for one in ("2.1", "2.0", "other")]
        for row in rows:
            held = truth(1, version=row["by.version"], platform="linux")
            assert is_near(row, held["alpha"] + held["beta"])
        source = from_store(site.deployment, "parts")
        assert [(group.name, group.where) for group in declared_groups(source)] == [("pair", (("platform", "linux"),))]
        part = AlertsPart.model_validate(
            {"webhook": "https://example.com", "secret": "env:X", "groups": ("pair", "gone")}
        )
        assert [group.where for group in watched(of_windows(source), part)] == [(("platform", "linux"),)]
        group = ("ask", "sum", "--config", site.config, "--campaign", "parts", "--group")
        refused(*group, "gone", says=["axis is 'country'"])
        refused(*group, "pair", "--by", "platform", says=["fixed by a group"])
    finally:
        site.config.write_text(before)


def test_a_question_of_no_axis_or_coordinate_is_refused(site: Site) -> None:
    top = ("ask", "top", "--config", site.config, "--campaign")
    refused(*top, "parts", "--by", "country", says=["axis is 'country'", "version, platform"])
    refused(*top, "parts", "--where", "platform=bsd", says=["'bsd'", "linux, mac os, other"])
    refused(*top, "parts", "--where", "platform", says=["AXIS=VALUE"])
    refused(*top, "parts", "--where", "platform=linux", "--where", "platform=bsd", says=["once for each axis"])
    for question in ("item", "sum", "change"):
        named = ("ask", question, *top[2:], "parts", "--item", "alpha [version=2.1]")
        refused(*named, says=["--item 'alpha'", "--where 'version=2.1'"])
    refused(*top, "parts", "--by", "platform", "--where", "platform=linux", says=["--by and in --where"])


def test_other_is_of_one_list_and_axes_may_have_names_of_columns(site: Site) -> None:
    """Another epoch lists one more coordinate, so that its "other" is of other clients; a listed one is the same."""
    more = write_lines(site.root / "more.txt", ["1.9", "2.0", "2.1"])
    axes = ("--by", f"version={more}", "--by", f"count={more}", "--by", f"item={more}")
    second = site.add("more", *axes, mechanism="ais", epsilon=6.0, dictionary=site.words)
    collect(site.store, second, ["alpha\t2.1\t1.9\t2.0"] * 400, day=0)
    assert site.run(DAYS + 0.2).problems == []
    both = ("--campaign", "parts", "--campaign", "more")
    asked = ("ask", "compare", "--config", site.config, *both, "--item", "alpha")
    for wrong in (("--by", "version"), ("--where", "version=other")):
        refused(*asked, *wrong, says=["axis version lists other coordinates"])
    refused(*asked, "--where", "version=1.9", says=["not listed by epoch 1 of parts", "--last 1"])
    rows = done(
        "ask", "top", "--config", site.config, "--campaign", "more", "--by", "item", "--by", "count", "--json"
    ).json
    assert ("alpha", "2.0", "1.9") in [(row["item"], row["by.item"], row["by.count"]) for row in rows["rows"]]


def test_the_next_epoch_keeps_axes_and_their_order(site: Site, tmp_path: Path) -> None:
    folder = site.root / "campaigns" / "parts"
    after = tmp_path / "after.json"
    done(
        "campaign", "new", "--after", folder / "parts.json", "--keys", site.keys, "--out", after,
        "--dictionary", write_lines(tmp_path / "more.txt", ["alpha", "beta", "gamma", "delta"]),
    )  # fmt: skip
    first, second = Campaign.read(folder / "parts.json"), Campaign.read(after)
    assert (second.axes, second.domain) == (first.axes, 45)
    assert first.domain == 36
    shown = done("campaign", "show", "--campaign", after, "--json").json
    assert "9 strata" in shown["axes"]
    assert json.loads(after.read_text())["axes"]["listed"][0] == {
        "name": "version",
        "public": False,
        "values": ["2.1", "2.0"],
    }
