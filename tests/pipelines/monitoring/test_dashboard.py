"""hushcount dashboard without a browser: its tables say what results, hops and ledger say."""

from __future__ import annotations

import base64
import http.client
import re
import socket
import struct
import threading
import zlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from hushcount.errors import UsageError
from hushcount.oracles.sight import sight_of
from pipelines.audit.reconcile import Account, WindowCounts
from pipelines.audit.view import StreamRow
from pipelines.deployment.campaigns import read_epochs
from pipelines.log.facts import Times
from pipelines.monitoring.dashboard import page_of
from pipelines.monitoring.dashboard_server import PageServer
from pipelines.monitoring.panel_campaign import Shown
from pipelines.monitoring.panel_health import columns_of
from pipelines.monitoring.panel_sums import levels
from pipelines.monitoring.panel_trends import trend_of
from pipelines.pages.assets import policy
from pipelines.pages.figures import Column, Trend
from pipelines.questions.sources import of_epochs
from pipelines.windows.calendar import Calendar
from tests.support.collecting import collect, window_name
from tests.support.jobs import done, refused
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
    (packed,) = re.findall("id='campaign-0-trend-data'>([^<]*)<", text)
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
    page = page_of(site.deployment, at(2.2), 100)
    assert "DIFFERENCE" in page
    assert "Red: numbers differ." in page
    # A ledger that cannot be read hides no estimate.
    (site.root / "ledger.db").write_bytes(b"no database" * 1000)
    page = page_of(site.deployment, at(2.2), 100)
    assert "no ledger" in page
    assert "campaign-0-trend-data" in page
    # Nor does a damaged log.
    entry = site.store / "log" / "analyzer" / "words" / "000001" / "0000000002.json"
    entry.write_text("{")
    page = page_of(site.deployment, at(2.2), 100)
    assert str(entry) in page
    assert "campaign-0-trend-data" in page


def test_a_deployment_without_results_has_a_page(tmp_path: Path) -> None:
    site = Site(tmp_path)
    page = page_of(site.deployment, at(0.5), 100)
    assert "campaign words has no results" in page
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
    calendar = Calendar((Times(None, timedelta(days=1), timedelta(days=2)),))
    rows = list(columns_of(account, 7, calendar))
    drawn = [row.drawn for row in rows]
    assert all(isinstance(one, Column) for one in drawn)
    assert [row.wrong for row in rows] == [False, True, False, True, True]
    assert [row.cells[3] for row in rows[2:]] == ["duplicate 10", "malformed 5", "none"]
    assert [row.wrong for row in columns_of(account, 1, calendar)] == [True, True]


@pytest.fixture
def server() -> Iterator[PageServer]:
    pages = iter(("first", "second"))

    def make() -> str:
        try:
            return next(pages)
        except StopIteration:
            raise UsageError("no more") from None

    with PageServer(0, make) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def asked(server: PageServer, path: str = "/", **headers: str) -> tuple[int, str, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), answer


def test_each_load_makes_the_page_and_only_this_machine_gets_it(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    status, text, answer = asked(server)
    assert (status, text) == (200, "first")
    assert answer.headers["Content-Security-Policy"] == f"{policy()}; frame-ancestors 'none'"
    assert answer.headers["Cache-Control"] == "no-store"
    assert asked(server, Host="rebound.example")[0] == 421
    assert asked(server, "/etc/passwd")[0] == 404
    assert asked(server, Host=f"localhost:{server.server_port}")[1] == "second"
    assert asked(server)[:2] == (500, "error: no more\n")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", server.address)


def test_a_fault_or_a_browser_that_goes_away_is_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    made, gone = threading.Event(), threading.Event()

    def make() -> str:
        made.set()
        assert gone.wait(10)
        return "x" * (1 << 24)

    with PageServer(0, make) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with socket.create_connection(("127.0.0.1", server.server_port)) as browser:
            browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            browser.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
            assert made.wait(10)
        gone.set()
        # The lock of the page is free once the first one is made.
        assert asked(server)[0] == 200
        server._make = lambda: str(1 // 0)
        status, text, _ = asked(server)
        server.shutdown()
        thread.join()
    assert (status, text.split(" at ")[0]) == (500, "error: ZeroDivisionError")
    assert "Traceback" not in capsys.readouterr().err


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
    text = page_of(site.deployment, at(1.2), 100)
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
        trend = trend_of(Shown(source, "key", Calendar((Times(None, timedelta(days=1), timedelta(days=2)),))))
        assert isinstance(trend, Trend)
        assert trend.series.first == drawn
        assert trend.series.found[:, 0].tolist() == [place in drawn for place in range(3)]
        said = sight_of(law, 60, 3, repeats=1).words("people")
        assert [said in sentence for sentence in trend.says] == ([] if drawn else [True])
