"""The charts of a page in a real Chromium: above the fold, to scale, read by pointer, finger and keys, taken along."""

from __future__ import annotations

import base64
import csv
import io
import struct
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from hushcount.collection.tilings import Tiling
from pipelines.monitoring.dashboard import lead_of
from pipelines.pages.figures import Choice, Column, Figure, Guarantee, Panel, Prose, Row, Span, Trend
from pipelines.pages.page import render
from pipelines.pages.series import Grain, Series
from pipelines.questions.spans import Span as Windows
from tests.browser.chromium import Chromium, Tab

READY = """async () => {
  while (document.documentElement.dataset.ready !== "yes") await new Promise((done) => setTimeout(done, 5));
}"""
DAY = 86400
BEGIN = int(datetime(2026, 1, 5, tzinfo=timezone.utc).timestamp())
DAYS = (*range(10), *range(13, 20))
"""Days from Monday 5 January 2026 on; three are missing."""
ITEMS = ("alpha", "beta", "gamma", "=delta", "epsilon")
REPORTS = 1000
LINE = (
    "One result changes the odds about one person by a factor of 5.85 at most, except with a chance of 1 in "
    "50,000,000, if the parties keep to their roles."
)
LEAD = lead_of(datetime(2026, 1, 25, 10, tzinfo=timezone.utc), Windows(100))
POINT = "(one) => { const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }"


def series(first: Sequence[int] = (0, 1, 2), item_count: int = len(ITEMS)) -> Series:
    """Return counts 100, 200, ... of 1,000 reports with intervals of 50 to either side; epsilon is never detected."""
    count = np.full((item_count, len(DAYS)), 100.0) * np.arange(1, item_count + 1)[:, None]
    count[:, -1] += 7.0
    found = np.ones(count.shape, dtype=bool)
    found[4] = False
    # The interval of the second item on the last day would reach above all reports.
    low, high = count - 50.0, count + 50.0
    high[1, -1] = 2.0 * REPORTS
    times = tuple((BEGIN + DAY * day, BEGIN + DAY * (day + 1)) for day in DAYS)
    names = tuple(f"{datetime.fromtimestamp(begin, timezone.utc):%Y-%m-%d}" for begin, _ in times)
    return Series(ITEMS, names, times, (REPORTS,) * len(DAYS), count, low, high, found, tuple(first))


def grains(first: Sequence[int]) -> dict[Grain, Series]:
    """Return the windows, and two weeks in which each item has 40 % of the reports."""
    days = series(first)
    times = tuple((BEGIN + 7 * DAY * week, BEGIN + 7 * DAY * (week + 1)) for week in (0, 1))
    count = np.full((len(ITEMS), 2), 400.0)
    found = np.ones(count.shape, dtype=bool)
    names = tuple(f"{datetime.fromtimestamp(begin, timezone.utc):%Y-%m-%d}" for begin, _ in times)
    weeks = Series(ITEMS, names, times, (REPORTS,) * 2, count, count - 10.0, count + 10.0, found, tuple(first), (1,))
    return {"window": days, "week": weeks}


def written(path: Path, first: Sequence[int] = (0, 1, 2)) -> Path:
    """Write a page of two campaigns, whose second has two comparisons, and rows that are findings or not."""
    spans = tuple(Row(f"row {n}", (f"{n * 1000:,}",), Span(1000.0 * n, 900.0 * n, 1100.0 * n)) for n in range(1, 15))
    weak = Row("weak", ("5",), Span(5.0, -5.0, 15.0, strong=False))
    days = series().times
    hops = tuple(Row(str(time[0]), (str(n),), Column("collected", str(n), time, 7, n)) for n, time in enumerate(days))
    collected = Figure("h", "Hops", (), "columns", ("day", "n"), hops)
    figures = tuple(Figure(f"f{n}", f"figure {n}", (), "intervals", ("item", "count"), (*spans, weak)) for n in (0, 1))
    stated = Guarantee("person", LINE, ("All of it.",), ("In exact terms.",))
    panels = [
        Panel("a", "desktop", stated, (Trend("t", "Items over windows", (), grains(first), ("How to read it.",)),)),
        Panel("b", "a phone", stated, (Choice("c", "Compare", figures), collected)),
        Panel("n", "empty", None, (Prose("p", "Nothing", ("Nothing.",)),)),
    ]  # fmt: skip
    path.write_text(render("Deployment features", (LEAD,), panels, "Hushcount"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("page") / "page.html")


def opened(browser: Chromium, page: Path, fragment: str = "", **options: Any) -> Tab:
    tab = browser.device(page.as_uri() + fragment, **{"viewport": {"width": 1280, "height": 800}, **options})
    tab.run(READY)
    return tab


def text(tab: Tab, selector: str) -> list[str]:
    return list(tab.run(f"() => [...document.querySelectorAll({selector!r})].map((one) => one.textContent)"))


def fragment(tab: Tab) -> str:
    return str(tab.run("() => location.hash"))


def choose(tab: Tab, selector: str, value: str) -> None:
    tab.run(
        "([at, value]) => { const list = document.querySelector(at); list.value = value; "
        "list.dispatchEvent(new Event('change')); }",
        [selector, value],
    )


@pytest.mark.parametrize(("width", "height", "fold"), [(1280, 800, 800), (380, 800, 700)])
def test_the_first_chart_is_above_the_fold(browser: Chromium, page: Path, width: int, height: int, fold: int) -> None:
    tab = opened(browser, page, viewport={"width": width, "height": height})
    plot = "document.querySelector('.picture svg .line')"
    foot = tab.run(f"() => {plot}.getBoundingClientRect().bottom + scrollY")
    assert 0 < foot <= fold
    assert tab.run("() => document.querySelector('.picture svg').getBoundingClientRect().width") > 0.75 * width


def test_the_guarantee_is_one_line_that_opens(browser: Chromium, page: Path) -> None:
    tab = opened(browser, page)
    line = "document.querySelector('.guarantee')"
    assert tab.run(f"() => {line}.open") is False
    assert LINE in tab.run(f"() => {line}.querySelector('summary').textContent")
    tab.click(".guarantee summary")
    assert tab.run(f"() => {line}.querySelector('p').checkVisibility()")


def test_the_axis_is_to_scale_and_a_missing_window_is_a_gap(browser: Chromium, page: Path) -> None:
    tab = opened(browser, page)
    lines = tab.run("() => [...document.querySelectorAll('.series.s0 .curve')].map((one) => one.getAttribute('d'))")
    assert [line.count("L") + 1 for line in lines] == [10, 7]
    x = [float(point.lstrip("ML").split()[0]) for line in lines for point in line.replace("L", " L").split(" L")]
    steps = np.diff(x) / np.diff(DAYS)
    assert np.abs(steps - steps.mean()).max() < 0.2
    ticks = text(tab, ".picture svg text")
    assert "Mon 5 Jan" in ticks
    assert "days in UTC" in ticks
    # A column fills its window, so three missing days are a gap of three widths.
    tab.run("() => document.querySelectorAll('[role=tab]')[1].click()")
    tab.run("() => new Promise((done) => setTimeout(done, 100))")
    lefts = np.array(tab.run("() => [...document.querySelectorAll('.column .kept')].map((one) => one.x.baseVal.value)"))
    assert np.abs(np.diff(lefts) / np.diff(DAYS) - (lefts[-1] - lefts[0]) / 19).max() < 0.2


def test_a_pointer_reads_values_with_intervals(browser: Chromium, page: Path) -> None:
    tab = opened(browser, page)
    box = tab.run(
        "() => { const box = document.querySelector('.picture svg').getBoundingClientRect(); return [box.x, box.y]; }"
    )
    (x, y) = tab.run(f"() => ({POINT})(document.querySelectorAll('.series.s1 circle')[3])")
    tab.move(x + 2, y + 3)
    assert text(tab, ".readout")[0] == "Thu 8 Jan 2026, beta: 20% (15 to 25%)"
    assert [value.strip() for value in text(tab, ".chosen .value")] == [
        "10% (5 to 15%)",
        "20% (15 to 25%)",
        "30% (25 to 35%)",
    ]
    # Of three lines only the band of the one that is pointed at is seen; two lines both have theirs.
    bands = "[...document.querySelectorAll('.series')].map((one) => one.querySelector('.band'))"
    seen = f"() => {bands}.map((one) => getComputedStyle(one).opacity)"
    assert tab.run(seen) == ["0", "0.16", "0"]
    tab.run("() => document.querySelector('.chosen button').click()")
    assert tab.run(seen) == ["0.16", "0.16"]
    # A share is within 0 and 100 %.
    tab.move(box[0] + 5000, box[1])
    assert text(tab, ".chosen .value")[0] == "20.7% (15.7 to 100%)"


def shown_days(tab: Tab) -> list[str]:
    """Return the first and the last window of the range, as the lists and the address have it."""
    lists = tab.run("() => ['from', 'to'].map((end) => document.querySelector(`#t-${end}`).value)")
    address = tab.run("() => ['from', 'to'].map((end) => new URLSearchParams(location.hash.slice(1)).get(end))")
    assert address in (lists, [None, None])
    return [str(day) for day in lists]


def test_to_drag_across_windows_zooms_and_all_comes_back(browser: Chromium, page: Path) -> None:
    tab = opened(browser, page)
    whole = shown_days(tab)
    circles = "document.querySelectorAll('.series.s1 circle')"
    points = [tab.run(f"() => ({POINT})({circles}[{place}])") for place in (6, 2)]
    assert tab.run("() => document.querySelector('.whole').checkVisibility()") is False
    tab.drag(*points)
    assert shown_days(tab) == ["2026-01-07", "2026-01-11"]
    assert tab.run(f"() => {circles}.length") == 5
    # A click is no zoom, and the range is in the address.
    tab.drag(*[tab.run(f"() => ({POINT})({circles}[1])")] * 2)
    assert shown_days(tab) == ["2026-01-07", "2026-01-11"]
    tab.click(".whole")
    assert shown_days(tab) == whole
    tab.run("() => document.querySelector('.picture svg').focus()")
    for key in ("Home", "ArrowRight", "["):
        tab.press(key)
    assert shown_days(tab) == ["2026-01-06", whole[1]]
    # The picture keeps the focus, and the whole range is no range in the address: it grows with the results.
    tab.press("Escape")
    assert shown_days(tab) == whole
    assert fragment(tab) == "#tab=desktop"
    for key in ("Home", "ArrowRight", "]"):
        tab.press(key)
    assert shown_days(tab) == [whole[0], "2026-01-06"]
    tab.run("() => document.querySelector('.whole').focus()")
    tab.press("Enter")
    assert shown_days(tab) == whole
    assert tab.run("() => document.activeElement.id") == "t-from"


def test_a_zoom_to_a_window_in_which_an_epoch_ends_has_both_its_results(browser: Chromium, tmp_path: Path) -> None:
    days = series()
    names = (*days.windows[:-2], *(f"{days.windows[-2]} epoch {epoch}" for epoch in (1, 2)))
    both = replace(days, windows=names, times=(*days.times[:-1], days.times[-2]))
    page = tmp_path / "page.html"
    page.write_text(render("Epochs", (), [Panel("a", "", None, (Trend("t", "Items", (), {"window": both}),))], ""))
    tab = opened(browser, page)
    tab.run("() => document.querySelector('.picture svg').focus()")
    for key in ("Home", "ArrowRight", "["):
        tab.press(key)
    assert shown_days(tab) == [names[1], names[-1]]
    assert len(text(tab, "#t-table tbody tr")) == 3 * (len(names) - 1)


def test_days_of_a_zone_have_their_names_and_ticks_over_a_change_of_its_clock(
    browser: Chromium, tmp_path: Path
) -> None:
    tiling, first = Tiling("day", "Europe/Berlin"), datetime(2026, 3, 26, 23, tzinfo=timezone.utc)
    starts = [int(one.timestamp()) for one in tiling.begins(first, first + timedelta(days=6))]
    names = tuple(f"{first + timedelta(days=day, hours=2):%Y-%m-%d}" for day in range(5))
    days, times = series(), tuple(pairwise(starts))
    cut = {name: getattr(days, name)[..., :5] for name in ("count", "low", "high", "found")}
    page = tmp_path / "page.html"
    part = replace(days, windows=names, times=times, reports=(REPORTS,) * 5, **cut)
    panels = [Panel("a", "", None, (Trend("t", "Items", (), {"window": part}),))]
    page.write_text(render("Berlin", (), panels, "", zone="Europe/Berlin"))
    tab = opened(browser, page)
    assert {"Sat 28 Mar", "Sun 29 Mar", "Mon 30 Mar", "days in Europe/Berlin"} <= {*text(tab, ".picture svg text")}
    tab.run("() => document.querySelector('.picture svg').focus()")
    told = []
    for key in ("Home", *("ArrowRight",) * 4):
        tab.press(key)
        told.append(text(tab, ".readout")[0].partition(":")[0])
    shown = [f"{one:%a} {one.day} {one:%b %Y}" for one in map(datetime.fromisoformat, names)]
    assert all(one.startswith(day) for one, day in zip(told, shown, strict=True)), told


def test_a_longer_grain_has_its_own_numbers_and_is_in_the_address(browser: Chromium, page: Path) -> None:
    tab = opened(browser, page)
    tab.run("() => document.querySelector('#t-by').focus()")
    choose(tab, "#t-by", "week")
    tab.run("async () => { while (!location.hash.includes('by=week')) await new Promise((d) => setTimeout(d, 5)); }")
    tab.run("() => new Promise((done) => setTimeout(done, 100))")
    assert tab.run("() => document.activeElement.id") == "t-by"
    assert text(tab, "#t-table tbody tr:first-child td")[0] == "2026-01-05"
    assert text(tab, ".readout")[0].startswith("Mon 12 Jan 2026 to Sun 18 Jan 2026")
    assert text(tab, ".chosen .value")[0] == "40% (39 to 41%)"
    again = tab.another(tab.run("() => location.href"))
    again.run(READY)
    assert again.run("() => document.querySelector('#t-by').value") == "week"
    assert text(again, ".chosen .value")[0] == "40% (39 to 41%)"
    # A week that lacks days says so, and has a name without the mark, which stays when it is whole.
    choose(again, "#t-from", "2026-01-12")
    assert "from=2026-01-12" in fragment(again).split("&")
    assert text(again, "#t-from option") == ["2026-01-05", "2026-01-12, partial"]
    assert text(again, "#t-table tbody tr:first-child td")[0] == "2026-01-12, partial"
    assert text(again, ".readout")[0] == "Mon 12 Jan 2026 to Sun 18 Jan 2026, partial"
    choose(again, "#t-by", "window")
    again.run("() => new Promise((done) => setTimeout(done, 100))")
    assert shown_days(again) == ["2026-01-05", "2026-01-24"]
    assert text(again, "#t-table tbody tr:first-child td")[0] == "2026-01-05"
    assert text(again, ".chosen .value")[0] == "10.7% (5.7 to 15.7%)"
    assert browser.faults() == []


def test_a_finger_reads_values(browser: Chromium, page: Path) -> None:
    tab = opened(browser, page, viewport={"width": 380, "height": 800}, hasTouch=True)
    tab.tap(*tab.run(f"() => ({POINT})(document.querySelectorAll('.series.s2 circle')[10])"))
    assert text(tab, ".readout")[0] == "Sun 18 Jan 2026, gamma: 30% (25 to 35%)"


def test_keys_read_values_of_every_chart(browser: Chromium, page: Path) -> None:
    tab = opened(browser, page)
    tab.run("() => document.querySelector('.picture svg').focus()")
    tab.press("Home")
    assert text(tab, ".readout")[0] == "Mon 5 Jan 2026, alpha: 10% (5 to 15%)"
    tab.press("ArrowDown")
    tab.press("ArrowRight")
    assert text(tab, ".readout")[0] == "Tue 6 Jan 2026, beta: 20% (15 to 25%)"
    tab.run("() => document.querySelectorAll('[role=tab]')[1].click()")
    tab.run("() => new Promise((done) => setTimeout(done, 100))")
    tab.run("() => document.querySelector('#b .picture svg').focus()")
    tab.press("ArrowRight")
    tab.press("ArrowRight")
    assert text(tab, "#b .readout")[0] == "row 2: 2,000 (1,800 to 2,200)"
    tab.press("End")
    # The row that is not detected is not drawn.
    assert text(tab, "#b .readout")[0] == "row 14: 14,000 (12,600 to 15,400)"
    assert text(tab, "#b figure:first-of-type .mark").count("weak") == 0


def test_an_item_that_somebody_named_is_drawn_and_says_that_it_is_not_detected(browser: Chromium, page: Path) -> None:
    tab = opened(browser, page)
    tab.run("() => document.querySelector('.search').focus()")
    tab.type("eps")
    tab.press("Enter")
    assert text(tab, ".chosen .value")[-1] == "50.7% (45.7 to 55.7%), not detected"
    assert tab.run("() => document.querySelectorAll('.series.s3 circle.unseen').length") == len(DAYS)
    assert text(tab, "#t-table tr:last-child td:last-child") == ["not detected"]


def test_without_a_finding_nothing_is_drawn(browser: Chromium, tmp_path: Path) -> None:
    tab = opened(browser, written(tmp_path / "page.html", ()))
    assert tab.run("() => document.querySelectorAll('#a svg').length") == 0
    assert text(tab, "#t-table tbody tr") == []
    # There is no picture to save.
    seen = "[...document.querySelectorAll('#a .files button')].filter((one) => one.checkVisibility())"
    assert tab.run(f"() => {seen}.map((one) => one.textContent)") == ["CSV"]


def test_a_link_shows_the_same(browser: Chromium, page: Path) -> None:
    tab = opened(browser, page)
    assert fragment(tab) == ""
    tab.run("() => document.querySelector('.chosen button').click()")
    choose(tab, "#t-from", "2026-01-07")
    choose(tab, "#t-to", "2026-01-18")
    link = fragment(tab)
    assert link == "#items=beta&items=gamma&from=2026-01-07&to=2026-01-18&tab=desktop"
    rows = text(tab, "#t-table tbody tr")
    assert len(rows) == 2 * sum(2 <= day <= 13 for day in DAYS)
    again = opened(browser, page, link)
    assert text(again, "#t-table tbody tr") == rows
    assert text(again, ".chosen bdi") == ["beta", "gamma"]
    # The open tab and the comparison are part of the state too; a tab keeps its own.
    tab.run("() => document.querySelectorAll('[role=tab]')[1].click()")
    choose(tab, "#c", "figure 1")
    assert fragment(tab) == "#compare=1&tab=a+phone"
    again = opened(browser, page, fragment(tab))
    assert again.run("() => document.querySelector('#b').checkVisibility()")
    assert again.run("() => document.querySelectorAll('#c option')[1].selected")
    assert text(again, "#b .choices section:not(.closed) h3") == ["figure 1"]
    tab.run("() => document.querySelectorAll('[role=tab]')[0].click()")
    assert fragment(tab) == link
    # A link to a state, followed on the open page, shows this state.
    tab.run("() => { delete document.documentElement.dataset.ready; location.hash = '#items=gamma&tab=desktop'; }")
    tab.run(READY)
    assert text(tab, ".chosen bdi") == ["gamma"]


@pytest.mark.parametrize("odd", ["#tab=none", "#items=%3Cimg%3E&from=x&to=y", "#compare=99&tab=a+phone", "#%E0%A4%A"])
def test_a_link_of_another_page_breaks_nothing(browser: Chromium, page: Path, odd: str) -> None:
    tab = opened(browser, page, odd)
    assert tab.run("() => [...document.querySelectorAll('.panel')].filter((one) => one.checkVisibility()).length") == 1
    assert tab.run("() => document.querySelectorAll('[role=alert]').length") == 0


def test_a_table_and_its_picture_are_files(browser: Chromium, page: Path) -> None:
    tab = opened(browser, page)
    tab.run("() => document.querySelector('.search').focus()")
    tab.type("=del")
    tab.press("Enter")
    tab.click("#a .files button:nth-child(1)")
    name, content = browser.download()
    assert name == "Items-over-windows.csv"
    rows = list(csv.reader(io.StringIO(content.decode())))
    assert rows[0] == ["item", "window", "reports", "count", "low", "high", "share", "state"]
    assert rows[1] == ["alpha", "2026-01-05", "1000", "100", "50", "150", "10%", "detected"]
    # A spreadsheet does not take a name for a formula.
    assert rows[-1][0] == "'=delta"
    assert len(rows) == 1 + 4 * len(DAYS)
    tab.click("#a .files button:nth-child(2)")
    name, content = browser.download()
    assert name == "Items-over-windows.svg"
    root = ElementTree.fromstring(content)  # noqa: S314  # our own page made it
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(root.findall(".//*[@class='curve']")) == 8
    tab.click("#a .files button:nth-child(3)")
    name, content = browser.download()
    assert content.startswith(b"\x89PNG")
    shown = tab.run("() => document.querySelector('.picture svg').clientWidth")
    assert struct.unpack(">I", content[16:20]) == (2 * shown,)
    assert browser.requests()[1:] == [url for url in browser.requests() if not url.startswith("http")]


def test_a_table_is_sorted_and_filtered_by_keyboard(browser: Chromium, page: Path) -> None:
    tab = opened(browser, page, "#tab=a+phone")
    tab.click("#b details.table summary")
    names = "#b .choices section:first-of-type tbody tr:not([hidden]) th"
    assert text(tab, names)[0] == "row 1"
    tab.run("() => document.querySelector('#f0-table thead th:nth-child(2) button').focus()")
    tab.press("Enter")
    assert text(tab, names)[:2] == ["row 14", "row 13"]
    assert tab.run("() => document.querySelector('#f0-table thead th:nth-child(2)').ariaSort") == "descending"
    tab.press("Enter")
    assert text(tab, names)[:2] == ["weak", "row 1"]
    tab.run("() => document.querySelector('#b .filter input').focus()")
    tab.type("ROW 1")
    assert text(tab, names) == ["row 1", *(f"row {n}" for n in range(10, 15))]


def test_a_logo_is_shown_and_runs_no_script(browser: Chromium, tmp_path: Path) -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>parent.broken = 1</script></svg>'
    logo = f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
    path = tmp_path / "page.html"
    path.write_text(render("Shop", (), [Panel("a", "", None)], "", logo))
    tab = opened(browser, path)
    assert (
        tab.run("() => document.querySelector('img').decode().then(() => document.querySelector('img').naturalWidth)")
        == 9
    )
    assert tab.run("() => globalThis.broken") is None
