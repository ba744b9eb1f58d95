"""hushcount ask: a planted rise is found and nothing else, sums are near the truth, and machines get what people do."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.windows import window_text
from hushcount.oracles.tally import Tally
from hushcount.questions.collisions import pool_of
from hushcount.questions.counted import Counted
from pipelines.questions.sentences import of_results
from tests.pipelines.conftest import LISTED, REPRESENTATIVE
from tests.pipelines.questions.conftest import ANDROID, IOS, ITEMS, USUAL
from tests.support.collecting import collect, window_name
from tests.support.jobs import Chain, done, new_campaign, refused, values_of, write_lines
from tests.support.site import Site

FAR = 6.0
"""Standard errors that an estimate strays with a probability below 1e-8."""
DAYS = len(IOS)


def ask(site: Site, question: str, *options: object, campaigns: tuple[str, ...] = ("ios",)) -> Any:
    """Return the answer to a question to the store."""
    named = [word for campaign in campaigns for word in ("--campaign", campaign)]
    return done("ask", question, "--config", site.config, *named, *options, "--json").json


def error(row: dict[str, Any]) -> float:
    return math.hypot(row["standard_error"], row["collision_error"])


def test_the_largest_items_come_with_intervals_that_hold_together(asked: Site) -> None:
    answer = ask(asked, "top")
    assert answer["windows"] == [window_name(DAYS - 1)]
    # Nobody has "help", which is detected once in forty times; the others are 20 of 600 and more, at an error of 4.
    rows = [row for row in answer["rows"] if row["item"] != "help"]
    assert (rows[0]["item"], {row["item"] for row in rows}) == ("editor/theme/dark", {*USUAL})
    assert all(row["detected_all"] and row["low_all"] <= row["low"] for row in rows)
    assert abs(answer["rows"][0]["count"] - 260) < FAR * error(answer["rows"][0])
    assert any(" 6 counts " in said for said in answer["says"])
    assert any('"other"' in said and "epoch 1" in said for said in answer["says"])
    said = done("ask", "top", "--config", asked.config, "--campaign", "ios", "--show", 2).out
    assert f"2 of {len(answer['rows'])} " in said
    assert "help" not in said
    earlier = ask(asked, "top", "--window", window_text(window_name(0)))
    assert earlier["windows"] == [window_name(0)]


def test_a_sum_is_near_the_truth_of_each_window_with_its_own_error(asked: Site, subtests: pytest.Subtests) -> None:
    for chosen, names, items in [
        (("--all",), ["all listed items"], ITEMS),
        (("--prefix", "editor/"), ["editor/*"], ITEMS[:3]),
        (("--glob", "*/*[kt]"), ["*/*[kt]"], ITEMS[:2] + ITEMS[2:3] + ITEMS[4:5]),
        (("--group", "themes"), ["themes"], ITEMS[:2]),
        (("--item", "shop", "--item", "shop/cart"), ["shop + shop/cart"], ITEMS[3:5]),
    ]:
        with subtests.test(chosen=chosen):
            rows = ask(asked, "sum", *chosen)["rows"]
            assert [(row["window"], row["group"]) for row in rows] == [
                (window_name(day), *names) for day in range(DAYS)
            ]
            for row, truth in zip(rows, IOS, strict=True):
                counted = sum(truth.get(item, 0) for item in items)
                assert (row["items"], row["missing"], row["reports"]) == (len(items), 0, 600)
                assert abs(row["count"] - counted) < FAR * error(row)
                assert row["low_all"] < row["low"] < row["count"] < row["high"] < row["high_all"]
                assert row["share"] == pytest.approx(row["count"] / 600)
                # Of a whole dictionary it is the error of the rest; root sum of squares would be 10 and more.
                assert 2.0 < row["standard_error"] < 8.0


def test_paths_are_summed_at_every_level_and_a_node_that_is_an_item_too(asked: Site) -> None:
    rows = {row["group"]: row for row in ask(asked, "sum", "--by-prefix", "/", "--depth", 2, "--last", 1)["rows"]}
    levels = {"editor": 3, "editor/theme": 2, "editor/font": 1, "shop": 2, "shop/cart": 1, "help": 1}
    assert {name: row["items"] for name, row in rows.items()} == levels
    truth = IOS[-1]
    for name, row in rows.items():
        counted = sum(count for item, count in truth.items() if item == name or item.startswith(f"{name}/"))
        assert abs(row["count"] - counted) < FAR * error(row), name
    below = ask(asked, "sum", "--prefix", "editor/", "--by-prefix", "/", "--depth", 3, "--last", 1)["rows"]
    assert [row["group"] for row in below] == [
        "editor", "editor/font", "editor/theme", "editor/theme/dark", "editor/theme/light",
    ]  # fmt: skip


def test_a_planted_rise_is_found_and_nothing_else(asked: Site) -> None:
    answer = ask(asked, "change")
    assert (answer["windows"], len(answer["rows"])) == ([window_name(1), window_name(2)], len(ITEMS))
    first, *others = answer["rows"]
    assert (first["group"], first["significant"]) == ("editor/theme/dark", True)
    assert first["adjusted"] < 1e-9
    truth = 200 / 600
    assert abs(first["difference"] - truth) < FAR * first["standard_error"]
    assert first["low"] < truth < first["high"] or abs(first["difference"] - truth) > 1.9 * first["standard_error"]
    # No other item changed: one of five is far off with a probability of 5 % at most, beyond 1e-6 with less than 1e-5.
    assert all(row["adjusted"] > 1e-6 for row in others)
    again = ask(asked, "change", "--window", window_name(1))
    assert again["windows"] == [window_name(0), window_name(1)]
    assert all(row["adjusted"] > 1e-6 for row in again["rows"])
    two = ask(asked, "change", "--last", 1, "--against", 2)
    assert (two["rows"][0]["group"], two["rows"][0]["reports_before"]) == ("editor/theme/dark", 1200)
    days = [window_text(window_name(day)) for day in range(DAYS)]
    skipped = ask(asked, "change", "--from", days[2], "--against", days[0])
    assert skipped["windows"] == [window_name(0), window_name(2)]
    assert (skipped["rows"][0]["group"], skipped["rows"][0]["reports_before"]) == ("editor/theme/dark", 600)
    said = done("ask", "change", "--config", asked.config, "--campaign", "ios").out
    assert " 6 " in said
    assert "Benjamini and Hochberg" in said
    assert "+" in next(line for line in said.splitlines() if line.startswith("editor/theme/dark"))


def test_what_would_have_been_seen_is_said(asked: Site) -> None:
    answer = ask(asked, "change", "--item", "shop/cart", "--group", "themes")
    small, large = answer["rows"]
    assert (small["group"], large["group"]) == ("shop/cart", "themes")
    # 20 % of 20 users is a standard error: seen hardly more often than nothing.
    assert 0.02 < small["seen_20"] < 0.12 < large["seen_20"] < 1.0
    assert 1.2 < large["least_seen"] < (small["least_seen"] or math.inf)
    assert any("20 % in shop/cart" in one and " 0." in one for one in answer["says"])


def test_a_sample_is_scaled_to_its_population_with_its_own_error(asked: Site) -> None:
    population = 12_000
    for question, options, name in (("top", (), "item"), ("total", ("--item", "shop"), "group"),
                                    ("sum", ("--item", "shop", "--last", 1), "group"),
                                    ("item", ("--item", "shop"), "item")):  # fmt: skip
        rows = ask(asked, question, *options, "--population", population, campaigns=("web",))["rows"]
        plain = ask(asked, question, *options, campaigns=("web",))["rows"]
        added = ["population_count", "population_error", "population_low", "population_high"]
        assert [{key: row[key] for key in row if key not in added} for row in rows] == plain
        for row in (row for row in rows if row[name] == "shop"):
            share = row["count"] / row["reports"]
            assert row["population_count"] == pytest.approx(population * share)
            # 600 clients reported, in each window the same ones.
            error = math.hypot(error_of_share(row), math.sqrt(share * (1.0 - share) / 600))
            assert row["population_error"] == pytest.approx(population * error)
            assert row["population_low"] < population * row["low_all"] / row["reports"]
            assert row["population_high"] > population * row["high_all"] / row["reports"]
    of_web = ("--config", asked.config, "--campaign", "web", "--population", "1.2e4")
    shown = done("ask", "top", *of_web)
    assert "12,000 clients" in shown.out
    row = next(row for row in ask(asked, "top", "--population", population, campaigns=("web",))["rows"])
    assert f"{row['population_count']:,.0f} ± {row['population_error']:,.0f}" in shown.out
    assert "without --population" in done("ask", "top", *of_web[:4]).out
    refused("ask", "top", "--config", asked.config, "--campaign", "ios", "--population", 1e6, says=["ios", "all its"])
    refused("ask", "top", *of_web[:4], "--population", 599, says=["population is 599", "600"])


def error_of_share(row: dict[str, Any]) -> float:
    return error(row) / float(row["reports"])


def test_two_campaigns_are_compared_in_what_both_list(asked: Site) -> None:
    answer = ask(asked, "compare", campaigns=("ios", "android"))
    rows = {row["group"]: row for row in answer["rows"]}
    assert (set(rows), answer["campaigns"]) == ({*USUAL}, ["ios", "android"])
    assert {"shop", "editor/theme/dark"} <= {name for name, row in rows.items() if row["adjusted"] < 1e-9}
    assert all(row["adjusted"] > 1e-6 for name, row in rows.items() if IOS[-1][name] == ANDROID[name])
    shop = rows["shop"]
    assert abs(shop["difference"] - 200 / 600) < FAR * shop["standard_error"]
    assert shop["ratio_low"] < 6.0 < shop["ratio_high"]


def test_result_folders_answer_as_the_store_does(asked: Site) -> None:
    folders = [asked.store / "results" / "ios" / batch for batch in batches(asked, "ios")]
    (other,) = (asked.store / "results" / "android" / batch for batch in batches(asked, "android"))
    ios, android = (asked.root / "campaigns" / name / f"{name}.json" for name in ("ios", "android"))
    given = ("--campaign", ios, "--result", folders[1], "--result", folders[2])
    assert done("ask", "change", *given, "--json").json["rows"] == ask(asked, "change")["rows"]
    both = ("--campaign", ios, "--campaign", android, "--result", folders[2], "--result", other)
    from_folders = done("ask", "compare", *both, "--json").json
    assert from_folders["rows"] == ask(asked, "compare", campaigns=("ios", "android"))["rows"]
    everything = [word for folder in folders for word in ("--result", folder)]
    totals = done("ask", "total", "--campaign", ios, *everything, "--json").json["rows"]
    assert totals == ask(asked, "total")["rows"]
    row = next(row for row in totals if row["group"] == "shop")
    assert abs(row["count"] - 3 * USUAL["shop"]) < FAR * error(row)
    assert row["results"] == 3
    top = done("ask", "top", "--campaign", ios, "--result", folders[2], "--json").json["rows"]
    assert [row["count"] for row in top] == [row["count"] for row in ask(asked, "top")["rows"]]


def test_tables_and_json_are_one_answer(asked: Site, tmp_path: Path) -> None:
    where = ("--config", asked.config, "--campaign", "ios")
    for question, options in (("change", ()), ("sum", ("--all",)), ("total", ()), ("top", ())):
        out, table = tmp_path / f"{question}.parquet", tmp_path / f"{question}.csv"
        rows = done("ask", question, *where, *options, "--out", out, "--json").json["rows"]
        done("ask", question, *where, *options, "--out", table)
        stored = pq.read_table(out).to_pylist()
        assert json.loads(json.dumps(stored), parse_constant=lambda _: None) == rows
        written = list(csv.DictReader(table.open()))
        assert [row.get("group", row.get("item")) for row in written] == [
            row.get("group", row.get("item")) for row in rows
        ]
        for row, text in zip(rows, written, strict=True):
            if row.get("p_value") is not None:
                assert float(text["p_value"]) == pytest.approx(row["p_value"], rel=1e-5)
            if row.get("share") is not None:
                assert float(text["share"]) == pytest.approx(row["share"], rel=1e-5)
        assert out.stat().st_mode & 0o777 == 0o600
        refused("ask", question, *where, *options, "--out", out, says=[out.name])


def test_what_cannot_be_answered_is_one_sentence(asked: Site, subtests: pytest.Subtests) -> None:
    for question, options, says in [
        ("top", ("--window", "2011-01-01"), ["window is '2011-01-01'", " 3 windows ", window_text(window_name(0))]),
        ("top", ("--window", "20"), ["'20'", " 3 windows", window_text(window_name(0))]),
        ("item", ("--item", "delta"), ["'delta'"]),
        ("item", ("--out", "t.txt"), ["t.txt", ".csv", ".parquet"]),
        ("sum", (), ["--by-prefix"]),
        ("sum", ("--group", "colours"), ["group is 'colours'", "reading, themes"]),
        ("sum", ("--prefix", "x"), ["'x'", " 6 "]),
        ("sum", ("--file", "/dev/null"), ["file '/dev/null'"]),
        ("sum", ("--glob", "*" * 20), [" 8"]),
        ("sum", ("--by-prefix", ""), ["separator"]),
        ("sum", ("--file", "nowhere.txt"), ["nowhere.txt"]),
        ("change", ("--item", "delta"), ["'delta'"]),
        (
            "change",
            ("--window", window_name(1), "--against", window_text(window_name(1))),
            [window_text(window_name(1)), "both sides"],
        ),
        ("change", ("--to", window_name(1), "--last", 2), ["--last and --from or --to"]),
        ("change", ("--against", "2011-01-01"), ["2011-01-01", " 3 windows "]),
        ("top", ("--month", window_text(window_name(0))), ["--month", window_text(window_name(0)), "2026-12"]),
        ("compare", (), ["two campaigns"]),
        ("compare", ("--campaign", "android", "--last", 2), ["1 windows ", "common"]),
        ("total", ("--campaign", "android"), ["compare"]),
        ("new", (), ["ios", "--discovery-epsilon"]),
    ]:
        with subtests.test(question=question, options=options):
            run = refused("ask", question, "--config", asked.config, "--campaign", "ios", *options, says=says)
            assert run.err.count("\n") == 1
    where = ("--config", asked.config, "--campaign", "ios")
    refused("ask", "change", *where, "--last", 2, status=3, says=[" 1 windows before ", " needs 2 "])
    refused("ask", "change", *where, "--window", window_name(0), says=[" 0 windows before ", "--against"])
    refused("ask", "change", *where, "--against", 2026, says=[" 2 windows before ", " needs 2026 ", "2026-12"])


def test_folders_that_do_not_fit_are_one_sentence(asked: Site) -> None:
    ios = asked.root / "campaigns" / "ios" / "ios.json"
    folder = asked.store / "results" / "ios" / batches(asked, "ios")[0]
    refused("ask", "top", "--result", folder, says=["--result", "--campaign FILE"])
    refused("ask", "top", "--campaign", ios, "--result", "nowhere", says=["result nowhere"])
    refused("ask", "change", "--campaign", ios, "--result", folder, says=[" 1 times", "twice"])
    refused("ask", "total", "--campaign", ios, *["--result", folder] * 2, says=["is given twice"])
    refused("ask", "top", "--campaign", ios, "--result", folder, "--window", "x", says=["--window"])
    more = ("--campaign", ios, "--campaign", ios, "--result", folder)
    refused("ask", "top", *more, says=["2 times", "1 results"])
    other = asked.root / "campaigns" / "android" / "android.json"
    refused("ask", "top", "--campaign", other, "--result", folder, says=["campaign ios", "android"])
    none = ("--config", asked.config, "--campaign", "words")
    refused("ask", "change", *none, status=3, says=["words"])


def batches(site: Site, campaign: str) -> list[str]:
    return sorted(path.name for path in (site.store / "results" / campaign).iterdir())


def test_a_file_of_items_and_a_deployments_file_are_groups(asked: Site, tmp_path: Path) -> None:
    site = asked.copied(tmp_path / "site")
    write_lines(site.root / "shops.txt", ["shop", "shop/cart", "not listed"])
    site.config.write_text(site.config.read_text() + 'shops = { file = "shops.txt" }\n')
    for chosen in (("--file", site.root / "shops.txt"), ("--group", "shops")):
        answer = ask(site, "sum", *chosen, "--last", 1)
        (row,) = answer["rows"]
        assert (row["items"], row["missing"]) == (2, 1)
        assert abs(row["count"] - 60) < FAR * error(row)
        assert any('"other"' in said for said in answer["says"])
        changed = ask(site, "change", *chosen)
        assert changed["rows"][0]["items"] == 2
        assert any("lacks 1 item " in said for said in changed["says"])
    shutil.rmtree(site.root)


@pytest.mark.parametrize("name", REPRESENTATIVE)
@pytest.mark.long
def test_every_way_to_count_answers_with_the_error_of_its_sums(collected: Callable[[str], Chain], name: str) -> None:
    """At eight errors chance is below 1e-14, and the collisions of few frequent items, which lean, below 1e-6."""
    chain = collected(name)
    where = ("--campaign", chain.campaign_path, "--result", chain.path("results"))
    for items in (("alpha", "beta"), ("alpha", "gamma", "delta", "größe")):
        named = [word for item in items for word in ("--item", item)]
        answer = done("ask", "sum", *where, *named, "--json").json
        (row,) = answer["rows"]
        assert abs(row["count"] - sum(LISTED[item] for item in items)) < 8.0 * error(row)
        pooled = pool_of(chain.campaign.require_frequency()) is not None
        assert any("share cells" in said for said in answer["says"]) == pooled
        # What collisions add is itself an estimate, which may come out as nothing.
        assert row["collision_error"] >= 0.0 if pooled else row["collision_error"] == 0.0
    if name == "open":
        refused("ask", "top", *where, says=["no item"])
        refused("ask", "sum", *where, "--all", says=["--all", "dictionary"])
        refused("ask", "sum", *where, "--by-prefix", "/", says=["dictionary"])
        return
    (row,) = done("ask", "sum", *where, "--all", "--json").json["rows"]
    assert abs(row["count"] - sum(LISTED.values())) < 8.0 * error(row)
    top = done("ask", "top", *where, "--json").json["rows"]
    assert top[0]["item"] == "alpha"


def test_repeated_answers_and_shared_cells_are_said_of_every_answer(asked: Site, tmp_path: Path) -> None:
    words = write_lines(tmp_path / "words.txt", ITEMS)
    said = {}
    for name, mechanism, options in (("a", "grr", ()), ("b", "grr", ("--memory",)), ("c", "gcms", ())):
        path = new_campaign(tmp_path / f"{name}.json", asked.keys, *options, mechanism=mechanism, dictionary=words)
        tally = Tally(np.zeros((1, 1), dtype=np.int64), 1, np.zeros(0, dtype=np.uint64))
        said[name] = " ".join(of_results([Counted(Campaign.read(path), tally)]))
    assert said["a"] == ""
    assert "clients repeat their answers" in said["b"]
    assert "share cells" in said["c"]


def test_a_window_with_two_epochs_is_answered_for_each_and_added_up_where_sides_are(tmp_path: Path) -> None:
    site = Site(tmp_path)
    first = site.campaign
    site.words = write_lines(tmp_path / "words.txt", ["alpha", "beta", "gamma", "newcomer"])
    second = site.publish(2)
    many = {"alpha": 150, "beta": 100, "newcomer": 50}
    # Whoever had not fetched the second epoch yet reports under the first one.
    for path, day in ((first, 0), (first, 1), (second, 1)):
        collect(site.store, path, values_of(many), day=day, came=day + 1)
    assert site.run(4.1).problems == []
    where: dict[str, tuple[str, ...]] = {"campaigns": ("words",)}
    top = ask(site, "top", **where)["rows"]
    assert {(row["epoch"], row["item"]) for row in top} >= {(1, "alpha"), (2, "alpha"), (2, "newcomer")}
    said = done("ask", "top", "--config", site.config, "--campaign", "words").out
    assert "epoch 1: " in said
    assert "epoch 2: " in said
    sums = ask(site, "sum", "--item", "beta", "--item", "newcomer", **where)["rows"]
    assert [(row["epoch"], row["items"], row["missing"]) for row in sums] == [(1, 1, 1), (1, 1, 1), (2, 2, 0)]
    changed = {row["group"]: row for row in ask(site, "change", **where)["rows"]}
    assert {*changed} == {"alpha", "beta", "gamma"}
    assert (changed["alpha"]["reports_before"], changed["alpha"]["reports_after"]) == (300, 600)
    assert all(row["adjusted"] > 1e-6 for row in changed.values())
    (total,) = ask(site, "total", "--item", "alpha", **where)["rows"]
    assert (total["results"], total["reports"]) == (3, 900)
    assert abs(total["count"] - 450) < FAR * error(total)
    new = ("change", "--config", site.config, "--campaign", "words", "--item", "newcomer")
    refused("ask", *new, says=["'newcomer' was not counted in all of these results"])
