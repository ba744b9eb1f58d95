"""Noise is never shown as a finding: in text, JSON and tables, on any terminal, and of any span of windows."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.windows import window_text
from hushcount.oracles.sight import sight_of
from pipelines.cli import app
from pipelines.console.charts import COLUMNS, FULL, TAIL, Bar, sparkline
from pipelines.questions.findings import share_of
from tests.support.clocks import Hands, machine_shows
from tests.support.collecting import DAY, START, collect, window_name
from tests.support.jobs import done, refused, values_of, write_lines
from tests.support.site import FLOOR, Site, at

HELD = {"alpha": 300, "beta": 200, "gamma": 100}
ABSENT = tuple(f"nobody {number}" for number in range(40))
DAYS = 3
FAR = 6.0
"""Standard errors that an estimate strays with a probability below 1e-8."""


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Three items of 600 reports a day among 43, and two campaigns whose 60 reports a day show nothing."""
    site = Site(tmp_path_factory.mktemp("noisy"))
    items = write_lines(site.root / "items.txt", [*HELD, *ABSENT])
    loud = site.add("loud", dictionary=items, epsilon=3.0)
    # A pool of one function detects nothing among so many: no p-value is below 1/64.
    few = ("--set", "k=1", "--set", "m=64")
    faint = site.add("faint", *few, mechanism="gcms", dictionary=items, epsilon=0.5)
    zealous = site.add("zealous", *few, "--memory", mechanism="gcms", dictionary=items, epsilon=0.5)
    for day in range(DAYS):
        collect(site.store, loud, values_of(HELD), day=day)
        for quiet in (faint, zealous):
            collect(site.store, quiet, [ABSENT[0]] * 60, day=day)
    assert site.run(DAYS + 0.1).problems == []
    return site


def ask(site: Site, question: str, *options: object, campaign: str = "loud") -> Any:
    return done("ask", question, "--config", site.config, "--campaign", campaign, *options, "--json").json


def said(site: Site, question: str, *options: object, campaign: str = "loud", width: int = 80) -> str:
    words = ("ask", question, "--config", site.config, "--campaign", campaign, *options)
    run = CliRunner().invoke(app, [str(one) for one in words], env={"COLUMNS": str(width), "NO_COLOR": "1"})
    assert run.exit_code == 0, run.output
    return run.stdout


def line_of(text: str, name: str) -> str:
    """Return the last line that begins with a name."""
    return [line for line in text.splitlines() if line.startswith(name)][-1]


def test_an_answer_without_chosen_items_shows_what_is_detected_and_nothing_else(noisy: Site) -> None:
    for question in ("top", "total", "item"):
        answer = ask(noisy, question, "--show", 43)
        head = "group" if question == "total" else "item"
        detected = {row[head] for row in answer["rows"] if row["detected_all"]}
        # Of 40 items that nobody has, all are detected with a probability far below 1e-6.
        assert {*HELD} <= detected < {*HELD, *ABSENT}
        text = said(noisy, question, "--show", 43)
        assert {name for name in (*HELD, *ABSENT) if re.search(rf"\b{name}\b", text)} == detected


def test_a_named_item_of_noise_has_a_row_that_says_so(noisy: Site) -> None:
    named = [word for item in (*HELD, *ABSENT) for word in ("--item", item)]
    rows = ask(noisy, "total", *named)["rows"]
    text = said(noisy, "total", *named, "--show", 43)
    assert [row["group"] for row in rows] == [*HELD, *ABSENT]
    for row in rows:
        line = line_of(text, f"{row['group']} ")
        assert line.rstrip().endswith("not detected") != row["detected_all"]
        assert (FULL in line or TAIL in line) == row["detected_all"]
        # An interval above 0 stands beside no item of noise.
        assert row["low_all"] <= 0.0 or row["detected_all"]
        assert row["low_all"] <= row["low"] <= row["count"] <= row["high"] <= row["high_all"]
        assert abs(row["count"] - DAYS * HELD.get(row["group"], 0)) < FAR * math.hypot(
            row["standard_error"], row["collision_error"]
        )
    assert not all(row["detected_all"] for row in rows)
    for question in ("item", "sum"):
        for item in ("alpha", "nobody 7"):
            answer = ask(noisy, question, "--item", item)["rows"]
            text = said(noisy, question, "--item", item, width=200)
            cells = re.findall(r"\(?-?[\d,]+ ± [\d,]+ -?[\d.]+%\)?", line_of(text, item + " "))
            assert [cell.startswith("(") for cell in cells[-DAYS:]] == [not row["detected_all"] for row in answer]
            assert ("not detected in this window" in text) != all(row["detected_all"] for row in answer)


def test_a_change_is_shown_if_it_is_significant_and_its_interval_says_the_same(noisy: Site) -> None:
    rows = ask(noisy, "change")["rows"]
    text = said(noisy, "change", "--show", 43)
    for row in rows:
        excludes = row["low_all"] > 0.0 or row["high_all"] < 0.0
        assert excludes == row["significant"]
        assert (f"\n{row['group']} " in text) == row["significant"]
        assert row["low_all"] <= row["low"] <= row["high"] <= row["high_all"]
        assert 0.0 <= row["before"] <= 1.0
        assert 0.0 <= row["after"] <= 1.0
    # Some estimates of 40 items of noise are below 0: their shares are cut, their counts are not.
    cut = [row for row in rows if row["before"] == 0.0]
    assert any(row["count_before"] < 0.0 for row in cut)
    assert all(row["count_before"] <= 0.0 for row in cut)
    quiet = max(rows, key=lambda row: row["p_value"])["group"]
    assert "not significant" in line_of(said(noisy, "change", "--item", quiet), f"{quiet} ")


def test_shares_are_within_0_and_100_per_cent(noisy: Site) -> None:
    named = [word for item in ABSENT for word in ("--item", item)]
    for question in ("total", "item"):
        rows = ask(noisy, question, *named)["rows"]
        assert any(row["count"] < 0.0 for row in rows)
        assert all(0.0 <= row.get("share", 0.0) <= 1.0 for row in rows)
        assert "-0." not in re.sub(r"\(?-[\d,]+ ±", "", said(noisy, question, *named, "--show", 43, width=200))
    assert [share_of(count, 200) for count in (-3.0, 50.0, 220.0)] == [0.0, 0.25, 1.0]


def test_the_top_of_a_range_is_its_totals(noisy: Site) -> None:
    totals = {row["group"]: row for row in ask(noisy, "total", "--last", 2)["rows"]}
    days = [window_text(window_name(day)) for day in range(DAYS)]
    for span in (("--last", 2), ("--from", days[1]), ("--from", days[1], "--to", days[2])):
        answer = ask(noisy, "top", *span)
        assert answer["windows"] == [window_name(1), window_name(2)]
        assert {row["item"] for row in answer["rows"]} == {name for name, row in totals.items() if row["detected_all"]}
        for row in answer["rows"]:
            assert (row["count"], row["low_all"], row["results"], row["reports"]) == (
                totals[row["item"]]["count"], totals[row["item"]]["low_all"], 2, 1200,
            )  # fmt: skip
        assert [row["count"] for row in answer["rows"]] == sorted(
            (row["count"] for row in answer["rows"]), reverse=True
        )
    assert ask(noisy, "total", "--to", days[0])["rows"][0]["reports"] == 600
    one = ask(noisy, "top", "--from", days[1], "--to", days[1])
    assert one["rows"] == ask(noisy, "top", "--window", days[1])["rows"]
    where = ("--config", noisy.config, "--campaign", "loud")
    refused("ask", "top", *where, "--last", 2, "--window", days[0], says=["--last and --window"])
    refused("ask", "total", *where, "--last", 2, "--to", days[0], says=["--last and --from or --to"])
    refused("ask", "top", *where, "--from", days[2], "--to", days[0], says=[f"--from {days[2]}", f"--to {days[0]}"])


def test_an_empty_top_says_what_its_reports_can_show(noisy: Site) -> None:
    assert ask(noisy, "top", campaign="faint")["rows"] == []
    text = said(noisy, "top", campaign="faint")
    mechanism = Campaign.read(noisy.root / "campaigns" / "faint" / "faint.json").require_frequency()
    sight = sight_of(mechanism, 60, 43)
    assert sight.words() in text
    assert sight.needed is None or f"{sight.needed:,}" in text
    assert "hushcount ask top --last 7" in text
    assert sight_of(mechanism, 180, 43).words("reports") in said(noisy, "top", "--last", 3, campaign="faint")
    # Repeated answers of three windows add up, so they show less.
    assert sight_of(mechanism, 180, 43, repeats=3).words("reports") in said(
        noisy, "top", "--last", 3, campaign="zealous"
    )
    assert FULL not in text


def test_without_a_result_ask_and_run_name_the_same_next_step(noisy: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = f"{START + (DAYS + 1) * DAY:%Y-%m-%d %H:%M}"
    machine_shows(monkeypatch, Hands(at(DAYS + 0.2).timestamp()))
    where = ("--config", noisy.config, "--campaign", "words")
    run = refused("ask", "top", *where, status=3, says=["words", ends, f"{FLOOR} reports", "hushcount run"])
    step = run.err.partition("no results yet: ")[2].strip()
    assert step in done("run", "--config", noisy.config).out


def test_a_table_that_is_cut_says_how_all_is_seen(noisy: Site) -> None:
    for question in ("top", "total", "item"):
        rows = ask(noisy, question)["rows"]
        many = len({row.get("item", row.get("group")) for row in rows if row["detected_all"]})
        text = said(noisy, question, "--show", 2)
        assert f"2 of {many} shown; --show {many} shows all" in text
        assert " shown; " not in said(noisy, question, "--show", many)


def test_charts_fit_a_terminal_and_plain_pipes(noisy: Site) -> None:
    for width in (60, 80):
        for question, letters in (("top", FULL), ("item", COLUMNS[-1])):
            text = said(noisy, question, width=width)
            assert letters in text
            assert "\x1b" not in text
            assert max(len(line) for line in text.splitlines() if FULL in line or TAIL in line) <= width
    source = "import sys; from pipelines.entry import main; sys.argv[0] = 'hushcount'; main()"
    for question, plain in (("top", "###"), ("item", "#")):
        words = ("ask", question, "--config", noisy.config, "--campaign", "loud")
        run = subprocess.run(  # noqa: S603  # our own program
            [sys.executable, "-c", source, *map(str, words)], capture_output=True, check=True,
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
        )  # fmt: skip
        text = run.stdout.decode("ascii")
        assert plain in next(line for line in text.splitlines() if line.startswith("alpha "))
        assert "\\u" not in text


def test_a_bar_shows_its_interval_and_a_line_its_windows() -> None:
    assert Bar(0.5, 1.0).drawn(10) == FULL * 5 + TAIL * 5
    assert Bar(0.0, 0.02).drawn(10) == TAIL
    assert Bar(1.0, 1.0).drawn(10) == FULL * 10
    assert sparkline([0.0, 0.5, 1.0, None]) == f"{COLUMNS[0]}{COLUMNS[4]}{COLUMNS[7]}·"
    assert sparkline([0.0, None]) == f"{COLUMNS[0]}·"
