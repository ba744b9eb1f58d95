"""Compose from nothing to a result, as deploy/README.md says it: 50,000 clients, down, up, and on.

Run it with -s for the transcript: what was typed, and what it printed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import socket
import ssl
import time
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.discovery.oblivious import evaluations_of
from hushcount.passes.blind_signatures import EXPONENT
from hushcount.passes.slots import TOKEN_TYPE
from hushcount.passes.tokens import key_id_of
from tests.containers.compose.conftest import WINDOW, say
from tests.containers.deployment import ITEMS, Site, documented, lay_out_evaluator, lay_out_issuer, paste
from tests.containers.engine import docker
from tests.support import patient
from tests.support.statistics import deviations

CLIENTS = int(os.environ.get("CLIENTS", "50000"))
NEW = "dark-mode"
"""The dictionary lacks it, and 300 clients of each wave send it."""
NEW_CLIENTS = 300
DISCOVERY_CLIENTS = 2_500
"""Of each wave; these send a report of each stream, the others one of their item."""
COMMON = ITEMS[0]
PEOPLE = 3
"""Who report by `hushcount send`."""
SHARES = (0.4, 0.2)
"""Of the common item in the first and in the second wave."""


def wave(number: int, share: float, seed: int) -> list[str]:
    """Return what clients send: the new value first, as those report to discovery too."""
    common = round(number * share)
    others = number - common - NEW_CLIENTS
    values = [COMMON] * common + [ITEMS[1 + place % (len(ITEMS) - 1)] for place in range(others)]
    Random(seed).shuffle(values)
    return [NEW] * NEW_CLIENTS + values


@pytest.fixture(scope="module")
def sent(site: Site) -> Counter[str]:
    """Let 50,000 clients report in two waves, and wait for the results; how often each value was sent."""
    counts: Counter[str] = Counter()
    for seed, share in enumerate(SHARES):
        post(site, wave(CLIENTS // len(SHARES), share, seed), counts)
        wait_for_another_window()
    settle(site, counts)
    return counts


def post(site: Site, values: list[str], counts: Counter[str]) -> None:
    made = site.reports_of(values)
    made["discovery"] = made["discovery"][:DISCOVERY_CLIENTS]
    posted = site.post_made(made)
    assert posted.acknowledged == {stream: len(rows) for stream, rows in made.items()}
    assert not posted.unsure
    assert not posted.refused
    say(f"{len(values):,} clients posted by TLS, all were answered 202: {dict(posted.acknowledged)}")
    counts.update(values)


def wait_for_another_window() -> None:
    begun = time.time() // WINDOW
    while time.time() // WINDOW == begun:
        time.sleep(0.2)


def settle(site: Site, counts: Counter[str]) -> None:
    """Wait until every report is counted; where fewer than the minimum batch wait for others, these come."""
    site.wait_until_counted(900, lambda: post(site, ITEMS * 50, counts))


def ask(site: Site, question: str, *options: str) -> Any:
    return json.loads(site.hushcount("analyzer", "ask", question, *options, "--campaign", "settings", "--json").stdout)


def client(site: Site) -> httpx.Client:
    authority = ssl.create_default_context(cafile=str(site.directory / "root.crt"))
    return patient.Client(base_url=f"https://localhost:{site.port}", verify=authority)


def test_the_proxy_forwards_v1_and_nothing_else(site: Site) -> None:
    with client(site) as asking:
        assert asking.get("/v1/campaigns/settings").json()["id"] == "settings"
        for path in ("/", "/metrics", "/readyz", "/openapi.json", "/v1", "/v1x/campaigns/settings", "//metrics"):
            assert asking.get(path).status_code == 404, path
        for raw in ("/v1/../metrics", "/v1/%2e%2e/metrics", "/v1/..%2fmetrics", "/v1//..//metrics"):
            # Not as a client would rewrite it, but as it is.
            assert (
                asking.get(httpx.URL(f"https://localhost:{site.port}").copy_with(raw_path=raw.encode())).status_code
                == 404
            )
        place = f"/v1/campaigns/settings/reports?fingerprint={site.campaign.fingerprint.hex()}&window=19700101T000000Z"
        headers = {"client-token": "a" * 16, "content-type": "application/octet-stream"}
        longest = asking.post(place, content=bytes((1 << 20) + 1), headers=headers)
        # Older versions of the proxy say 502.
        assert longest.status_code in (413, 502)


def test_the_proxy_writes_no_address_and_no_request(site: Site) -> None:
    """Also of requests that fail: a body that ends early, one that is too long, an unknown host.

    They name a campaign that is not collected, because the proxy may forward a head before the connection ends: of a
    campaign that is, the collector would then count a refusal.
    """
    context = ssl.create_default_context(cafile=str(site.directory / "root.crt"))
    for length in ("1000", "99999999999", "nonsense"):
        head = f"POST /v1/campaigns/absent/reports HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
        with (
            socket.create_connection(("localhost", site.port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as speaking,
        ):
            speaking.sendall(f"{head}begin".encode())
    with socket.create_connection(("localhost", site.port)) as no_tls:
        no_tls.sendall(b"GET / HTTP/1.1\r\n\r\n")
        no_tls.recv(100)
    (network,) = json.loads(docker("network", "inspect", f"{site.project}_outside").stdout)
    gateway = network["IPAM"]["Config"][0]["Gateway"]
    logs = site.logs("proxy", "collector")
    assert '"level"' in logs
    for secret in (gateway, "127.0.0.1:", "/v1/campaigns", "User-Agent"):
        assert secret not in logs, logs


def test_every_report_is_counted_once(site: Site, sent: Counter[str]) -> None:
    assert site.received() == site.acknowledged
    assert site.acknowledged["reports"] == sum(sent.values()) >= CLIENTS
    for party in ("shuffler", "aux-server", "analyzer"):
        status = site.status(party)
        assert (status["waiting"], status["differences"]) == ([], [])
        refused = sum(map(Counter, status["refused"].values()), Counter[str]())
        # The one that the test of the proxy sent.
        assert refused == ({"too_long": 1} if party == "shuffler" else {})
        assert all(hop["received"] == hop["accepted"] and not hop["rejected"] for hop in status["hops"]), status
    say(f"$ docker compose exec analyzer hushcount status\n{site.hushcount('analyzer', 'status').stdout}")


def test_estimates_are_near_the_truth(site: Site, sent: Counter[str]) -> None:
    rows = ask(site, "item", *(word for item in ITEMS for word in ("--item", item)))["rows"]
    counts, squares = Counter[str](), Counter[str]()
    for row in rows:
        counts[row["item"]] += row["count"]
        squares[row["item"]] += math.hypot(row["standard_error"], row["collision_error"]) ** 2
    assert set(counts) == set(ITEMS)
    for item in ITEMS:
        assert abs(counts[item] - sent[item]) < deviations(len(ITEMS)) * math.sqrt(squares[item]), item
    say(f"$ docker compose exec analyzer hushcount ask top\n{shown(site, 'top')}")


def test_discovery_finds_the_planted_value_and_nothing_else(site: Site, sent: Counter[str]) -> None:
    assert sent[NEW] == NEW_CLIENTS * len(SHARES)
    assert {row["item"] for row in ask(site, "new")["rows"]} == {NEW}
    say(f"$ docker compose exec analyzer hushcount ask new\n{shown(site, 'new')}")


def test_an_items_share_falls_from_the_first_wave_to_the_second(site: Site, sent: Counter[str]) -> None:
    """Over all windows of a wave, because a slow machine cuts it into many small ones."""
    assert sent
    rows = ask(site, "item", "--item", COMMON)["rows"]
    reports, counts, errors = (np.array([row[name] for row in rows]) for name in ("reports", "count", "standard_error"))
    late = 2 * reports.cumsum() > reports.sum()
    first, last = (counts[wave].sum() / reports[wave].sum() for wave in (~late, late))
    error = math.hypot(*(errors / np.where(late, reports[late].sum(), reports[~late].sum())))
    assert first - last > 5 * error
    say(f"$ docker compose exec analyzer hushcount ask item --item {COMMON}")
    say(shown(site, "item", "--item", COMMON))


def shown(site: Site, question: str, *options: str) -> str:
    return site.hushcount("analyzer", "ask", question, *options, "--campaign", "settings").stdout


@pytest.mark.parametrize("party", ["shuffler", "aux-server", "analyzer"])
def test_doctor_is_good(site: Site, party: str) -> None:
    found = site.hushcount(party, "doctor")
    say(f"$ docker compose exec {party} hushcount doctor\n{found.stdout}")
    assert site.doctor(party) == []


def test_people_report_by_the_documented_commands(site: Site) -> None:
    """That all of them arrived is seen after the next wave."""
    commands = documented("hushcount send").replace("seq 30", f"seq {PEOPLE}").replace("ITEM", ITEMS[3])
    paste(commands.replace("localhost:8443", f"localhost:{site.port}"), site.directory)
    for stream in site.acknowledged:
        site.acknowledged[stream] += PEOPLE


def test_it_goes_on_after_down_and_up(site: Site, sent: Counter[str]) -> None:
    before = len(site.status("analyzer")["hops"])
    site.down()
    site.up()
    say("$ docker compose down; docker compose up --detach --wait")
    more: Counter[str] = Counter()
    post(site, wave(4_000, SHARES[-1], 9), more)
    settle(site, more)
    assert len(site.status("analyzer")["hops"]) > before
    assert site.received() == site.acknowledged
    assert site.acknowledged["reports"] == sum(sent.values()) + sum(more.values()) + PEOPLE
    assert site.doctor("analyzer") == []


def test_an_evaluator_alone_evaluates_and_nothing_else(images: dict[str, str], tmp_path: Path) -> None:
    apart = lay_out_evaluator(tmp_path / "site", f"hushcount-evaluator-{os.getpid()}", images)
    campaign = Campaign.read(apart.directory / "typed.json")
    evaluations = evaluations_of([b"first", b"second"])
    place = f"/v1/campaigns/{campaign.id}/evaluations?fingerprint={campaign.fingerprint.hex()}"
    token = (apart.directory / "analyzer-token").read_text()
    with apart.running(), client(apart) as asking:
        kinds = {"content-type": "application/octet-stream"}
        for shown in ({"client-token": "a" * 16}, {"authorization": f"Bearer {token}"}):
            answer = asking.post(place, content=evaluations.blinded, headers={**kinds, **shown})
            assert answer.status_code == 200, answer.text
            assert len(evaluations.finish(answer.content, campaign.require_evaluator_key())) == 2
        stranger = {**kinds, "authorization": f"Bearer {token[:-1]}x"}
        assert asking.post(place, content=evaluations.blinded, headers=stranger).status_code == 401
        for path in ("/", "/metrics", "/readyz", "/v1/campaigns/typed", "/v1/campaigns/typed/reports"):
            assert asking.get(path).status_code == 404, path


def test_an_issuer_alone_signs_and_nothing_else(images: dict[str, str], tmp_path: Path) -> None:
    apart = lay_out_issuer(tmp_path / "site", f"hushcount-issuer-{os.getpid()}", images)
    secret = (apart.directory / "app-secret").read_bytes().strip()
    place = f"/v1/campaigns/pages/passes?day={datetime.now(timezone.utc):%Y%m%d}"
    with apart.running(), client(apart) as asking:
        modulus = asking.get(place).content
        blinded = (2).to_bytes(len(modulus), "big")
        requests = TOKEN_TYPE + key_id_of(modulus)[-1:] + blinded
        kinds = {"content-type": "application/octet-stream"}
        for account, shown, status in (("ann", "ann", 200), ("ann", "bob", 401)):
            made = hmac.new(secret, account.encode(), hashlib.sha256).hexdigest()
            headers = {**kinds, "authorization": f"Bearer {shown}.{made}"}
            answer = asking.post(f"{place}&collector=one", content=requests, headers=headers)
            assert answer.status_code == status, answer.text
            if status == 200:
                signed = int.from_bytes(answer.content, "big")
                assert pow(signed, EXPONENT, int.from_bytes(modulus, "big")) == 2
        for path in ("/", "/metrics", "/readyz", "/v1/campaigns/pages", "/v1/campaigns/pages/reports"):
            assert asking.get(path).status_code == 404, path
