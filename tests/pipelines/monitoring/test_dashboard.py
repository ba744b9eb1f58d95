"""hushcount dashboard without a browser: its tables say what results, hops and ledger say."""

from __future__ import annotations

import base64
import re
import zlib
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hushcount.campaigns.dictionary import Dictionary, in_random_order
from hushcount.collection.tilings import Tiling
from hushcount.oracles.sight import sight_of
from pipelines.audit.reconcile import Account, WindowCounts
from pipelines.audit.view import StreamRow, View
from pipelines.deployment.campaigns import read_epochs
from pipelines.log.facts import Times
from pipelines.monitoring.dashboard import page_of, panel_of
from pipelines.monitoring.panel_campaign import Shown
from pipelines.monitoring.panel_health import columns_of
from pipelines.monitoring.panel_periods import periods_of
from pipelines.monitoring.panel_sums import levels
from pipelines.monitoring.panel_trends import trend_of
from pipelines.pages.figures import Column, Trend
from pipelines.questions.sources import of_epochs
from pipelines.questions.spans import Span
from pipelines.windows.calendar import Calendar
from tests.support.collecting import collect, window_name
from tests.support.jobs import done, refused, write_lines
from tests.support.site import FLOOR, Site, at

HALF = 200


class Tables(HTMLParser):
    """The rows of a page's tables, each with its attributes and cells, by the table's id."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: dict[str, list[tuple[dict[str, str | None], list[str]]]] = {}
        self._table, self._cell = "", False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._table = dict(attrs)["id"] or ""
            self.rows[self._table] = []
        elif tag == "tr":
            self.rows[self._table].append((dict(attrs), []))
        elif tag in ("td", "th"):
            self._cell = True
            self.rows[self._table][-1][1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._cell &= tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._cell:
            self.rows[self._table][-1][1][-1] += data


def test_a_page_says_what_results_hops_and_ledger_say(tmp_path: Path) -> None:
    site = Site(tmp_path, tail='[analyzer.groups]\nfirst = {items = ["alpha", "beta"]}\n')
    for day in (0, 1):
        collect(site.store, site.campaign, ["alpha"] * HALF * (1 + 2 * day) + ["gamma"] * HALF, day=day)
        site.run(day + 1.1)
    done("ledger", "set", "--ledger", site.root / "ledger.db", "--campaign", "words", "--epsilon", 50, "--delta", 1e-3)
    out = tmp_path / "page.html"
    for _ in range(2):
        # A page that is there is replaced.
        done("dashboard", "--config", site.config, "--out", out)
    assert out.stat().st_mode & 0o777 == 0o600
    text = out.read_text(encoding="utf-8")
    (packed,) = re.findall("id='campaign-0-trend-data-window' data-grain='window'>([^<]*)<", text)
    for name in ("alpha", "beta", "gamma", "group first"):
        assert f'"{name}"'.encode() in zlib.decompress(base64.b64decode(packed))
    tables = Tables(text).rows
    changes = {cells[0]: (facts, cells) for facts, cells in tables["campaign-0-changes-1-table"][1:]}
    # A share of 1/2 becomes 3/4: the error of the difference is about 0.06 at epsilon 2, so p < 1e-3.
    facts, cells = changes["alpha"]
    assert abs(float(cells[4].rstrip("%")) / 100 - 0.25) < 0.4
    assert cells[1:3] == [f"{float(cell[:-1]) / 100:.2%}" for cell in cells[1:3]]
    for facts, cells in changes.values():
        # Only a rise or a fall is drawn and has an interval, which does not contain 0.
        assert ("data-value" in facts) == (cells[3] in ("rise", "fall")) == (cells[5] != "")
        assert "data-value" not in facts or float(facts["data-low"] or 0) * float(facts["data-high"] or 0) > 0
    (group,) = tables["campaign-0-groups-table"][1:]
    assert (group[1][0], group[1][1]) == ("first", "2")
    hops = tables["campaign-0-hops-table"][1:]
    assert {cells[1] for _, cells in hops} == {"collected reports", "shuffle reports", "analyze reports"}
    assert sorted({cells[2] for _, cells in hops}) == [f"{2 * HALF:,}", f"{4 * HALF:,}"]
    assert not any("data-wrong" in facts for facts, _ in hops)
    budget = {cells[0]: float(cells[1]) for _, cells in tables["campaign-0-budget-table"][1:]}
    assert budget["spent"] + budget["left"] == pytest.approx(50, abs=0.02)
    # A missing output is a difference, in red, and a page that is made now says so.
    (site.store / "results" / "words" / site.batch(0) / "summary.json").unlink()
    page = page_of(site.deployment, at(2.2), Span(100))
    assert "DIFFERENCE" in page
    assert "Red: numbers differ." in page
    # A ledger that cannot be read hides no estimate.
    (site.root / "ledger.db").write_bytes(b"no database" * 1000)
    page = page_of(site.deployment, at(2.2), Span(100))
    assert "no ledger" in page
    assert "campaign-0-trend-data" in page
    # Nor does a damaged log.
    entry = site.store / "log" / "analyzer" / "words" / "000001" / "0000000002.json"
    entry.write_text("{")
    page = page_of(site.deployment, at(2.2), Span(100))
    assert str(entry) in page
    assert "campaign-0-trend-data" in page


def test_a_deployment_without_results_has_a_page(tmp_path: Path) -> None:
    site = Site(tmp_path)
    page = page_of(site.deployment, at(0.5), Span(100))
    assert "Campaign words has no results" in page
    for arguments, says in (
        ((), "give either --out FILE or --serve"),
        (("--out", tmp_path / "page.txt"), "must end in .html"),
        (("--out", tmp_path / "page.html", "--serve"), "give either"),
    ):
        refused("dashboard", "--config", site.config, *arguments, says=[says])


def test_hops_that_do_not_add_up_are_wrong_and_no_others() -> None:
    window, other = window_name(0), window_name(1)
    batches = [f"{name}-000001-0123456789abcdef" for name in (window, other)]
    hops = [
        StreamRow(batches[0], "shuffle", "reports", 100, 90, {"duplicate": 10}),
        StreamRow(batches[0], "analyze", "reports", 90, 80, {"malformed": 5}),
        StreamRow(batches[1], "shuffle", "reports", 50, 50, {}),
    ]
    counts = [
        WindowCounts(window, "reports", 100, {"batched": 100}),
        WindowCounts(other, "reports", 50, {"batched": 40}),
    ]
    account = Account("a", counts, hops, differences=[f"{batches[1]} shuffle: 3 reports were lost"])
    calendar = Calendar((Times(None, Tiling(timedelta(days=1)), timedelta(days=2)),))
    rows = list(columns_of(account, Span(7), calendar))
    drawn = [row.drawn for row in rows]
    assert all(isinstance(one, Column) for one in drawn)
    assert [row.wrong for row in rows] == [False, True, False, True, True]
    assert [row.cells[3] for row in rows[2:]] == ["duplicate 10", "malformed 5", "none"]
    assert [row.wrong for row in columns_of(account, Span(1), calendar)] == [True, True]


def test_a_page_has_as_many_levels_of_paths_as_it_has_room_for() -> None:
    items = [f"t{top}/{part}" for top in range(150) for part in range(30)]
    assert [group.name for group in levels(items[:60], "/")] != [group.name for group in levels(items, "/")]
    assert sorted(group.name for group in levels(items, "/")) == sorted(f"t{top}" for top in range(150))
    assert levels([f"{top}/part" for top in range(2000)], "/") == ()


def test_a_campaign_with_results_opens_first(tmp_path: Path) -> None:
    site = Site(tmp_path)
    path = site.add("later", mechanism="grr", epsilon=2.0, dictionary=site.words, min_batch=FLOOR)
    collect(site.store, path, ["alpha"] * 60, day=0)
    site.run(1.1)
    text = page_of(site.deployment, at(1.2), Span(100))
    assert re.findall("class='panel' data-name='([^']*)'", text) == ["later", "words"]
    assert text.count("class='guarantee of-person'") == 1


def test_only_detected_items_are_drawn_and_a_page_without_them_says_what_shows(tmp_path: Path) -> None:
    site = Site(tmp_path)
    collect(site.store, site.campaign, ["alpha"] * 60, day=0)
    site.run(1.1)
    (epochs,), _ = read_epochs(site.deployment.campaigns)
    source = of_epochs(site.deployment, epochs)
    (result,) = source.counted
    # At epsilon 2 an item that nobody has gets 60/(exp(2) + 3) of 60 answers on average, 5.8.
    law = result.campaign.require_frequency()
    for peak, drawn in ((0, ()), (40, (1,))):
        counts = np.full_like(result.tally.counts, 5)
        counts[..., 1] += peak
        source.__dict__["counted"] = (replace(result, tally=replace(result.tally, counts=counts)),)
        trend = trend_of(Shown(source, "key", Calendar((Times(None, Tiling(timedelta(days=1)), timedelta(days=2)),))))
        assert isinstance(trend, Trend)
        assert trend.series["window"].first == drawn
        assert trend.series["window"].found[:, 0].tolist() == [place in drawn for place in range(3)]
        said = sight_of(law, 60, 3, repeats=1).words("people")
        assert [said in sentence for sentence in trend.says] == ([] if drawn else [True])


def test_a_longer_grain_is_the_total_of_its_windows(tmp_path: Path) -> None:
    """Sunday, Monday and Tuesday: two weeks, of which neither is whole, and the second has two windows."""
    site = Site(tmp_path, tail='[analyzer.groups]\nfirst = {items = ["alpha", "beta"]}\n')
    sunday = 6 - at(0).weekday()
    days = [sunday, sunday + 1, sunday + 2]
    for day in days:
        collect(site.store, site.campaign, ["alpha"] * 300 + ["gamma"] * 100 * (day - sunday), day=day)
        # Sunday may be days ahead.
        site.run(day + 1.1, sure=True)
    (view,) = View(site.deployment, at(days[-1] + 1.2), read_epochs(site.deployment.campaigns)[0]).each()
    panel, _ = panel_of(view, "campaign-0", Span(100))
    (trend,) = (block for block in panel.blocks if isinstance(block, Trend))
    # Windows are days; a month may end among them.
    assert {"window", "week"} <= trend.series.keys() <= {"window", "week", "month"}
    week = trend.series["week"]
    assert week.windows == tuple(f"{at(day):%Y-%m-%d}" for day in (sunday - 6, sunday + 1))
    assert week.partial == (0, 1)
    assert week.reports == (300, 900)
    ends = [f"{at(day):%Y-%m-%d}" for day in days[1:]]
    for name, asked in (("alpha", ["--item", "alpha"]), ("group first", ["--group", "first"])):
        told = ["ask", "total", "--config", site.config, *asked, "--from", ends[0], "--to", ends[1], "--json"]
        (row,) = done(*told).json["rows"]
        place = week.items.index(name)
        assert (week.count[place, 1], week.low[place, 1], week.high[place, 1]) == pytest.approx(
            (row["count"], row["low"], row["high"])
        )
    # The sum of the limits would be wider than the limits of the sum.
    place, window = week.items.index("alpha"), trend.series["window"]
    assert week.high[place, 1] < window.high[place, 1:].sum()


@pytest.mark.parametrize(
    ("begin", "days", "lacks", "partial"),
    [
        # Weeks of a year: a month has the four or five that begin in it, so only a missing one makes it partial.
        (datetime(2026, 1, 5), 7, (), {"month": []}),
        (datetime(2026, 1, 5), 7, (9,), {"month": ["2026-03-01"]}),
        (datetime(2026, 1, 5), 7, (8, 12), {"month": ["2026-03-01"]}),
        (
            datetime(2026, 1, 6),
            1,
            (20,),
            {"week": ["2026-01-05", "2026-01-26", "2026-02-23"], "month": ["2026-01-01", "2026-02-01"]},
        ),
    ],
)  # fmt: skip
def test_a_period_is_partial_if_it_lacks_a_window(
    begin: datetime, days: int, lacks: tuple[int, ...], partial: dict[str, list[str]]
) -> None:
    length, first = timedelta(days=days), begin.replace(tzinfo=timezone.utc)
    begins = [first + place * length for place in range(52) if place not in lacks]
    found = {}
    for grain in ("day", "week", "month"):
        periods = periods_of(Tiling(grain), [(int(one.timestamp()), int((one + length).timestamp())) for one in begins])
        if 2 <= len(periods) < len(begins):
            found[grain] = [f"{one.begin:%Y-%m-%d}" for one in periods if one.partial]
    assert found == partial


def test_a_month_lacks_its_first_day_also_before_a_day_of_25_hours() -> None:
    tiling, first = Tiling("day", "America/New_York"), datetime(2025, 11, 1, 4, tzinfo=timezone.utc)
    windows = [*pairwise(int(start.timestamp()) for start in tiling.begins(first, first + timedelta(days=31)))]
    assert windows[1][1] - windows[1][0] == 25 * 3600
    for lacking, partial in ((0, False), (1, True)):
        (november,) = periods_of(Tiling("month", "America/New_York"), windows[lacking:30])
        assert (november.partial, len(november.places)) == (partial, 30 - lacking)


def test_items_have_totals_where_the_sum_of_a_group_has_no_error(tmp_path: Path) -> None:
    site = Site(tmp_path, tail='[analyzer.groups]\nfirst = {items = ["alpha", "beta"]}\n')
    words = ["alpha", "beta", "gamma", "delta"]
    path = site.add(
        "old", mechanism="ais", epsilon=4.0, dictionary=write_lines(tmp_path / "old.txt", words), min_batch=FLOOR
    )
    sunday = 6 - at(0).weekday()
    for day in (sunday, sunday + 1, sunday + 2):
        collect(site.store, path, ["alpha"] * 300, day=day)
        site.run(day + 1.1, sure=True)
    source = of_epochs(site.deployment, read_epochs(site.deployment.campaigns)[0][0], 100)
    assert source.name == "old"
    weeks = {}
    for name, order in (("known", 1), ("unknown", -1)):
        for one in source.counted:
            # As made before the dictionary was written in random order.
            one.__dict__["dictionary"] = Dictionary(in_random_order(words)[::order])
        trend = trend_of(Shown(source, "key", Calendar((Times(None, Tiling(timedelta(days=1)), timedelta(days=2)),))))
        assert isinstance(trend, Trend)
        weeks[name] = np.isfinite(trend.series["week"].count).all(axis=1).tolist()
    assert weeks == {"known": [True] * 5, "unknown": [*[True] * 4, False]}
