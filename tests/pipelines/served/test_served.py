"""hushcount dashboard --serve for a team: a process of its own, asked over HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import signal
import zlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from schemathesis.specs.openapi.checks import ignored_auth, negative_data_rejection, positive_data_acceptance

from hushcount.arrays import FloatArray
from hushcount.questions.counted import Counted
from pipelines.epochs.tracked_items import ITEMS_FILE
from pipelines.monitoring import panel_trends
from pipelines.monitoring.dashboard import page_of
from pipelines.pages.assets import policy
from pipelines.pages.series import PIECE
from pipelines.questions.spans import Span
from pipelines.served.kept import Campaigns, Made
from pipelines.served.server import serve
from tests.support import patient
from tests.support.clocks import Hands
from tests.support.collecting import collect, window_name
from tests.support.documented import SHORT
from tests.support.jobs import done, new_campaign, refused
from tests.support.served import serving
from tests.support.site import Site, at

TOKEN = "t0ken-" * 6
ROOT = Path(__file__).parents[3]
schema = schemathesis.openapi.from_dict(json.loads((ROOT / "docs" / "results-openapi.json").read_text("utf-8")))
UNPROMISED = [negative_data_rejection, positive_data_acceptance, ignored_auth]
"""A campaign or item that is not there is a 404, and this server asks for no login."""
ORIGIN = "https://stats.example.org"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("site"), tail='[analyzer.groups]\nfirst = {items = ["alpha", "beta"]}\n')
    collect(site.store, site.campaign, ["alpha"] * 300 + ["gamma"] * 200, day=0)
    site.run(1.1)
    return site


@pytest.fixture(scope="module")
def pages(site: Site) -> Iterator[httpx.Client]:
    with serving(site.config, site.root / "served.log") as address, patient.Client(base_url=address) as client:
        yield client


def told(site: Site, name: str, lines: str) -> Path:
    """Return a deployment file beside the site's, with more under [dashboard]."""
    path = site.config.with_name(name)
    path.write_text(f"{site.config.read_text()}\n[dashboard]\n{lines}")
    return path


def test_a_served_page_says_what_a_file_says_and_requests_its_own_server_only(site: Site, pages: httpx.Client) -> None:
    first = pages.get("/")
    assert (first.status_code, first.headers["location"]) == (303, "/campaigns/words")
    page = pages.get("/campaigns/words")
    assert page.status_code == 200
    assert page.headers["content-security-policy"] == f"{policy(served=True)}; frame-ancestors 'none'"
    assert "connect-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"
    tables = re.compile(r"<table.*?</table>", re.DOTALL)
    assert tables.findall(page.text) == tables.findall(page_of(site.deployment, at(1.2), Span(100)))
    version = pages.get("/campaigns/words/version").text
    assert f"data-version='{version}'" in page.text
    head = pages.head("/campaigns/words")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(page.content))


def test_a_signal_at_the_moment_of_the_start_ends_it_properly(site: Site) -> None:
    """Whoever reads the address may end the server at once."""
    said = []

    def ready(address: str) -> None:
        said.append(address)
        os.kill(os.getpid(), signal.SIGTERM)

    serve(site.deployment, 0, Span(100), ready)
    assert len(said) == 1


def test_an_item_is_served_in_a_piece_of_one_version(pages: httpx.Client) -> None:
    (address,) = re.findall("data-pieces='([^']+)'", pages.get("/campaigns/words").text)
    piece = pages.get(f"{address}/window/0")
    assert (piece.status_code, piece.headers["content-type"]) == (200, "application/octet-stream")
    assert "immutable" in piece.headers["cache-control"]
    block = zlib.decompress(piece.content)
    head = json.loads(block[4 : 4 + int.from_bytes(block[:4], "little")])
    assert head["items"] == [*pages.get("/v1/campaigns/words").json()["items"]][:PIECE]
    for path in (
        f"{address}/window/1",
        f"{address}/window/-1",
        f"/campaigns/words/pieces/{'0' * 16}/window/0",
        f"{address}/week/0",
    ):
        assert pages.get(path).status_code == 404


def test_pieces_of_other_numbers_have_another_address(tmp_path: Path) -> None:
    """A browser keeps a piece for good, so an address may never get other numbers, also after a restart."""
    site = Site(tmp_path)
    for day in (0, 1):
        collect(site.store, site.campaign, ["alpha"] * 300, day=day)
        site.run(day + 1.1)
    found = {}
    for last in (1, 2):
        with serving(site.config, tmp_path / "log", "--last", str(last)) as address:
            page = patient.get(f"{address}campaigns/words").text
            found[last] = re.findall("data-pieces='([^']+)'", page)[0]
            answers = [patient.get(f"{address}{path[1:]}/window/0") for path in found.values()]
            assert [one.status_code for one in answers] == [404, 200][-len(found) :]
            block = zlib.decompress(answers[-1].content)
            assert len(json.loads(block[4 : 4 + int.from_bytes(block[:4], "little")])["windows"]) == last


def test_results_are_not_computed_again_for_the_state_of_the_jobs(tmp_path: Path) -> None:
    site, hands = Site(tmp_path), Hands(at(1.2).timestamp())
    collect(site.store, site.campaign, ["alpha"] * 300, day=0)
    site.run(1.1)
    campaigns = Campaigns(site.deployment, hands.clock, Span(100))

    async def made() -> Made:
        return await campaigns.made("words")

    first = asyncio.run(made())
    assert first.series is not None
    hands.now += 601.0
    collect(site.store, site.campaign, ["alpha"] * 300, day=1)
    again = asyncio.run(made())
    assert again.at == first.at + timedelta(seconds=601)
    assert again.html != first.html
    assert again.series is first.series
    # What discovery found is another version of the page, though no result is new.
    (site.campaign.parent / ITEMS_FILE).write_text("{}")
    assert asyncio.run(campaigns.version("words")) != first.version


def test_a_new_window_is_computed_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hands = Hands(at(0).timestamp())
    site = Site(tmp_path, tail='[analyzer.groups]\nfirst = {items = ["alpha", "beta"]}\n')
    computed: list[str] = []
    numbers = panel_trends._in_result

    def counted(result: Counted, *others: Any) -> FloatArray:
        computed.append(result.window)
        return numbers(result, *others)

    monkeypatch.setattr(panel_trends, "_in_result", counted)
    kept = Campaigns(site.deployment, hands.clock, Span(100))
    for day in range(3):
        collect(site.store, site.campaign, ["alpha"] * 300, day=day)
        site.run(day + 1.1)
        hands.now = at(day + 1.2).timestamp()
        made = asyncio.run(kept.made("words"))
        assert computed == [window_name(day)]
        computed.clear()
        anew = asyncio.run(Campaigns(site.deployment, hands.clock, Span(100)).made("words"))
        assert computed == [window_name(one) for one in range(day + 1)]
        computed.clear()
        # Detections are corrected for all counts, also for those that were computed before.
        assert {grain: one.digest for grain, one in made.all_series.items()} == {
            grain: one.digest for grain, one in anew.all_series.items()
        }
        assert made.bytes == anew.bytes


def test_programs_get_the_numbers_that_ask_says(site: Site, pages: httpx.Client) -> None:
    assert pages.get("/v1/campaigns").json() == {"campaigns": ["words"]}
    facts = pages.get("/v1/campaigns/words").json()
    assert facts["guarantee"]["state"] in ("person", "report", "none")
    alpha = pages.get("/v1/campaigns/words/items", params={"item": "alpha"}).json()
    (point,) = alpha["windows"]
    asked = done("ask", "item", "--item", "alpha", "--config", site.config, "--json").json
    (row,) = asked["rows"] if isinstance(asked, dict) else asked
    for name in ("count", "low", "high", "reports"):
        assert point[name] == pytest.approx(row[name])
    assert pages.get("/v1/campaigns/words/items", params={"item": "group first"}).status_code == 200
    for path in ("items?item=nobody", "items", "charts/none", "other"):
        assert pages.get(f"/v1/campaigns/words/{path}").status_code == 404
    keys = {one["key"] for one in facts["charts"]}
    assert {"groups", "hops"} <= keys
    for key in keys:
        rows = pages.get(f"/v1/campaigns/words/charts/{key}").json()["rows"]
        assert rows
    (group,) = pages.get("/v1/campaigns/words/charts/groups").json()["rows"]
    both = pages.get("/v1/campaigns/words/items", params={"item": "group first"}).json()["windows"]
    assert group["count"] == pytest.approx(both[0]["count"])


def test_a_closed_window_is_a_new_version(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with serving(site.config, tmp_path / "log") as address, patient.Client(base_url=address) as pages:
        before = pages.get("/campaigns/words/version").text
        assert "has no results yet" in pages.get("/campaigns/words").text
        assert pages.get("/v1/campaigns/words").json()["windows"] == []
        collect(site.store, site.campaign, ["alpha"] * 300, day=0)
        site.run(1.1)
        assert pages.get("/campaigns/words/version").text != before
        assert "has no results yet" not in pages.get("/campaigns/words").text
        (window,) = pages.get("/v1/campaigns/words").json()["windows"]
    assert window["begin"] == int(at(0).timestamp())


def test_hundreds_of_campaigns_are_listed_without_reading_a_result(site: Site, tmp_path: Path) -> None:
    many = Site(tmp_path)
    collect(many.store, many.campaign, ["alpha"] * 300, day=0)
    many.run(1.1)
    folder = many.deployment.campaigns
    for number in range(300):
        copy = folder / f"c{number}"
        copy.mkdir()
        for path in (folder / "words").iterdir():
            (copy / path.name).write_bytes(path.read_bytes().replace(b'"words"', f'"c{number}"'.encode()))
    asks = new_campaign(tmp_path / "asks.json", many.keys, "--sample", "5%", dictionary=many.words, epsilon=3.0)
    done("campaign", "publish", "--config", many.config, "--campaign", asks)
    (tally,) = many.store.glob("results/words/*/*/tally*")
    tally.write_bytes(b"damaged")
    with serving(many.config, tmp_path / "log") as address, patient.Client(base_url=address) as pages:
        page = pages.get("/")
        assert page.status_code == 200
        assert page.text.count("<a href='/campaigns/") == 302
        assert "2026" in page.text
        assert "epsilon 605 in a window" in page.text
        assert page.text.count("5.00% in layer asks") == 1
        assert len(page.content) < 200_000
        # A campaign that cannot be computed says why, and takes no other with it.
        assert "tally" in pages.get("/campaigns/words").text
        assert pages.get("/v1/campaigns").json()["campaigns"][:2] == ["asks", "c0"]


def test_only_own_hosts_get_an_answer_and_nothing_is_changed(pages: httpx.Client) -> None:
    assert pages.get("/campaigns/words", headers={"Host": "rebound.example"}).status_code == 421
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert pages.request(method, "/campaigns/words").status_code == 405
    for path in ("/etc/passwd", "/campaigns/../words", "/campaigns/none", "/v1/campaigns/none", "/login"):
        assert pages.get(path).status_code == 404


def test_a_token_opens_the_pages_and_is_in_no_log(site: Site) -> None:
    (site.root / "token").write_text(TOKEN)
    (site.root / "token").chmod(0o600)
    config = told(site, "with-token.toml", f'token = "token"\naddress = "{ORIGIN}"\n')
    log = site.root / "token.log"
    own = {"Host": "stats.example.org"}
    with serving(config, log) as address, patient.Client(base_url=address, headers=own) as pages:
        assert pages.get("/v1/campaigns").status_code == 401
        page = pages.get("/campaigns/words", headers={"Accept": "text/html"})
        assert (page.status_code, page.headers["location"]) == (303, "/login")
        for wrong in (TOKEN[:-1], TOKEN.upper(), "x", f"{TOKEN} x"):
            assert pages.get("/v1/campaigns", headers={"Authorization": f"Bearer {wrong}"}).status_code == 401
            assert pages.post("/login", data={"token": wrong}).status_code == 403
        for form in ("x" * 5000, "&".join("abcdef"), "token=%ff"):
            assert pages.post("/login", content=form).status_code == 403
        assert pages.get("/v1/campaigns", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        entered = pages.post("/login", data={"token": TOKEN})
        cookie = entered.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Secure"} <= set(cookie.split("; "))
        assert TOKEN not in cookie
        assert base64.b64encode(TOKEN.encode()).decode() not in cookie
        mark = cookie.partition(";")[0]
        assert pages.get("/campaigns/words", headers={"Cookie": mark}).status_code == 200
        assert pages.get("/campaigns/words", headers={"Cookie": f"{mark[:-1]}x"}).status_code == 401
    assert TOKEN not in log.read_text()
    assert mark.partition("=")[2] not in log.read_text()


def test_a_proxy_names_the_user(site: Site) -> None:
    config = told(site, "with-header.toml", 'user_header = "X-Forwarded-User"\n')
    with serving(config, site.root / "header.log") as address, patient.Client(base_url=address) as pages:
        assert pages.get("/v1/campaigns").status_code == 401
        assert pages.get("/v1/campaigns", headers={"X-Forwarded-User": ""}).status_code == 401
        assert pages.get("/v1/campaigns", headers={"X-Forwarded-User": "ada"}).status_code == 200


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ('host = "0.0.0.0"\ntoken = "token"\n', "address"),
        ('host = "0.0.0.0"\n', "token or user_header"),
        ('token = "token"\nuser_header = "X-User"\n', "one of them"),
        ('address = "http://stats.example.org"\n', "address"),
        ('address = "https://stats.example.org/path"\n', "address"),
        ('token = "short"\n', "32 to 256"),
    ],
)
def test_a_login_that_protects_nothing_is_refused(site: Site, lines: str, says: str) -> None:
    (site.root / "short").write_text("x" * 31)
    (site.root / "short").chmod(0o600)
    config = told(site, "refused.toml", lines)
    found = refused("dashboard", "--config", config, "--serve", "--port", 0, says=[says])
    assert "x" * 31 not in found.err


@schema.parametrize()
@SHORT
def test_programs_are_answered_as_documented(pages: httpx.Client, case: schemathesis.Case) -> None:
    """Whatever is asked; and the same of a campaign that there is."""
    case.validate_response(case.call(base_url=str(pages.base_url)), excluded_checks=UNPROMISED)
    if not case.path_parameters:
        return
    case.path_parameters["id"] = "words"
    case.validate_response(case.call(base_url=str(pages.base_url)), excluded_checks=UNPROMISED)


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1/campaigns", "/v1/campaigns"),
        ("/v1/campaigns/{id}", "/v1/campaigns/words"),
        ("/v1/campaigns/{id}/items", "/v1/campaigns/words/items?item=alpha"),
        ("/v1/campaigns/{id}/charts/{key}", "/v1/campaigns/words/charts/groups"),
    ],
)
def test_what_is_there_has_the_documented_shape(pages: httpx.Client, path: str, asked: str) -> None:
    answer = pages.get(asked)
    assert answer.status_code == 200
    schema[path]["GET"].validate_response(answer)
