"""A real issuer signs what its rule allows, a fixed number a day, and forgets nothing that it gave."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from hushcount.errors import UsageError
from hushcount.passes.blind_signatures import KEY_BYTES
from hushcount.passes.pass_keys import day_octets, read_pass_keys
from issuer.rules import rule_of
from issuer.settings import IssuerPart
from tests.issuer.running import (
    SECRET,
    ask,
    authorization,
    issuing,
    keys_of,
    make_issuer,
    place,
    problem,
    requests,
)
from tests.shuffler.collector.running import wait_for
from tests.support import patient


def test_it_serves_the_days_keys_and_signs_with_them(tmp_path: Path) -> None:
    site = make_issuer(tmp_path / "site", evaluator=True)
    public = read_pass_keys(site.base / "passes" / "words.passes.json")
    with issuing(site) as issuer:
        served = patient.get(issuer.url + place().partition("&")[0])
        assert served.content == day_octets(public.days[1])
        reply = ask(issuer, requests(site))
    keys = keys_of(site)
    assert len(keys) == 4
    assert len(reply.content) == 4 * KEY_BYTES
    for number, key in enumerate(keys):
        signature = int.from_bytes(reply.content[number * KEY_BYTES : (number + 1) * KEY_BYTES], "big")
        assert pow(signature, 65537, int.from_bytes(key.public_key, "big")) == 1 + number


def test_an_equal_request_is_answered_again_and_others_only_so_often(tmp_path: Path) -> None:
    site = make_issuer(tmp_path / "site", most_a_day=2)
    bodies = [requests(site, start=start) for start in (2, 3, 4)]
    with issuing(site) as issuer:
        first = ask(issuer, bodies[0])
        assert ask(issuer, bodies[0]).content == first.content
        assert [problem(ask(issuer, body)) for body in bodies] == ["signed", "signed", "already_issued"]
        assert problem(ask(issuer, bodies[2], shown=authorization("another"))) == "signed"
        assert problem(ask(issuer, requests(site, 1), place(1))) == "signed"
        issuer.kill()
    with issuing(site) as again:
        assert [problem(ask(again, body)) for body in bodies] == ["signed", "signed", "already_issued"]


def test_of_many_requests_at_once_exactly_the_allowed_number_is_signed(tmp_path: Path) -> None:
    site = make_issuer(tmp_path / "site")
    with issuing(site) as issuer, ThreadPoolExecutor(16) as pool:
        said = list(pool.map(lambda start: problem(ask(issuer, requests(site, start=start))), range(2, 18)))
    assert sorted(said) == ["already_issued"] * 13 + ["signed"] * 3


@pytest.mark.parametrize(
    ("where", "change", "wanted"),
    [
        (place(campaign="other"), lambda body: body, "unknown_campaign"),
        (place(-2), lambda body: body, "no_keys"),
        (place(3), lambda body: body, "no_keys"),
        ("/v1/campaigns/words/passes?collector=one", lambda body: body, "no_keys"),
        ("/v1/campaigns/words/passes?day=20261340&collector=one", lambda body: body, "no_keys"),
        (place(collector="two"), lambda body: body, "wrong_requests"),
        (place().partition("&")[0], lambda body: body, "wrong_requests"),
        (place(), lambda body: body[:-1], "wrong_requests"),
        (place(), lambda body: body * 2, "wrong_requests"),
        (place(), lambda body: b"", "wrong_requests"),
        (place(), lambda body: b"\0\1" + body[2:], "wrong_requests"),
        (place(), lambda body: body[:2] + bytes([body[2] ^ 1]) + body[3:], "wrong_requests"),
        (place(), lambda body: body[:3] + b"\xff" * KEY_BYTES, "wrong_requests"),
        (place(), lambda body: body * 100, "too_long"),
        ("/v1/campaigns/words/reports", lambda body: body, "not_found"),
    ],
)
def test_a_wrong_request_is_one_problem(tmp_path: Path, where: str, change: object, wanted: str) -> None:
    site = make_issuer(tmp_path / "site")
    with issuing(site) as issuer:
        assert problem(ask(issuer, change(requests(site)), where)) == wanted  # type: ignore[operator]
        assert problem(ask(issuer, requests(site))) == "signed"


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (None, "unauthorised"),
        ("x" * 5000, "unauthorised"),
        (authorization()[:-1], "not_entitled"),
        (authorization(secret="another secret"), "not_entitled"),  # noqa: S106
        (authorization().replace("somebody", "somebody-else"), "not_entitled"),
        ("Bearer " + "a" * 64, "not_entitled"),
    ],
)
def test_without_the_secret_nobody_gets_passes(tmp_path: Path, shown: str | None, wanted: str) -> None:
    site = make_issuer(tmp_path / "site")
    with issuing(site) as issuer:
        assert problem(ask(issuer, requests(site), shown=shown)) == wanted
        log = issuer.log.read_text()
    assert SECRET not in log
    assert "somebody" not in log


_RULE = """
import subprocess, sys, time
shown = sys.stdin.read()
if shown == "slow":
    time.sleep(60)
if shown == "leaves a child":
    subprocess.Popen(["sleep", "60"])
while shown == "endless":
    print("x" * 10_000)
if shown.startswith("known "):
    print(shown[6:])
    sys.exit(0)
sys.exit({"failing": 3, "silent": 0, "leaves a child": 3}.get(shown, 1))
"""


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        ("known me", "signed"),
        ("unknown", "not_entitled"),
        ("failing", "rule_failing"),
        ("silent", "rule_failing"),
        ("slow", "rule_failing"),
        ("leaves a child", "rule_failing"),
        ("endless", "rule_failing"),
        ("known " + "x" * 300, "rule_failing"),
        ("known two words", "rule_failing"),
    ],
)
def test_a_command_decides(tmp_path: Path, shown: str, wanted: str) -> None:
    site = make_issuer(tmp_path / "site", command=[sys.executable, "rule.py"], rule_seconds=2.0)
    (tmp_path / "site" / "rule.py").write_text(_RULE)
    with issuing(site) as issuer:
        assert problem(ask(issuer, requests(site), shown=shown)) == wanted


@pytest.mark.parametrize("program", ["./missing", "./not_executable", "a-program-that-nobody-has"])
def test_a_command_that_cannot_run_is_refused_at_the_start(tmp_path: Path, program: str) -> None:
    (tmp_path / "not_executable").write_text("#!/bin/sh\n")
    with pytest.raises(UsageError, match=program):
        rule_of(IssuerPart(name="issuer", command=(program,)), tmp_path)
    (tmp_path / "fits").write_text("#!/bin/sh\necho ann\n")
    (tmp_path / "fits").chmod(0o700)
    assert rule_of(IssuerPart(name="issuer", command=("./fits",)), tmp_path)("Bearer") == "ann"


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        ("200 me", "signed"),
        ("401 me", "not_entitled"),
        ("403 me", "not_entitled"),
        ("500 me", "rule_failing"),
        ("302 me", "rule_failing"),
        ("200 {broken", "rule_failing"),
        ("200 long", "rule_failing"),
    ],
)
def test_a_hook_decides(tmp_path: Path, shown: str, wanted: str) -> None:
    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, account = self.headers["Authorization"].split(" ")
            body = json.dumps({"account": account}).encode()
            body = {"{broken": b"{", "long": body + b" " * 20_000}.get(account, body)
            self.send_response(int(status))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        site = make_issuer(tmp_path / "site", hook=f"http://127.0.0.1:{server.server_port}/may")
        with issuing(site) as issuer:
            assert problem(ask(issuer, requests(site), shown=shown)) == wanted
    finally:
        server.shutdown()
        server.server_close()


def test_a_rule_that_hangs_for_some_holds_up_no_others(tmp_path: Path) -> None:
    script = tmp_path / "rule.py"
    script.write_text(_RULE)
    site = make_issuer(tmp_path / "site", command=[sys.executable, str(script)], rule_seconds=15.0)
    with issuing(site) as issuer, ThreadPoolExecutor(12) as pool:
        began = time.monotonic()
        slow = [pool.submit(ask, issuer, requests(site), shown="slow") for _ in range(12)]
        time.sleep(1)
        assert problem(ask(issuer, requests(site), shown="known me")) == "signed"
        assert issuer.get("/healthz").status_code == 200
        assert time.monotonic() - began < 15
        assert {problem(one.result()) for one in slow} == {"rule_failing"}


def test_a_hook_that_is_away_is_no_refusal(tmp_path: Path) -> None:
    site = make_issuer(tmp_path / "site", hook="http://127.0.0.1:9/may")
    with issuing(site) as issuer:
        reply = ask(issuer, requests(site))
    assert problem(reply) == "rule_failing"
    assert int(reply.headers["retry-after"]) > 0


def test_added_days_are_read_by_a_running_issuer(tmp_path: Path) -> None:
    site = make_issuer(tmp_path / "site", days=2)
    longer = make_issuer(tmp_path / "longer", days=4)
    with issuing(site) as issuer:
        assert problem(ask(issuer, requests(longer, 1), place(1))) == "no_keys"
        os.replace(longer.base / "passes" / "words.private.json", site.base / "passes" / "words.private.json")
        wait_for(lambda: problem(ask(issuer, requests(site, 1), place(1))) == "signed")


def test_an_issuer_a_day_later_forgets_yesterdays_accounts(tmp_path: Path) -> None:
    site = make_issuer(tmp_path / "site")
    with issuing(site) as issuer:
        assert problem(ask(issuer, requests(site, -1), place(-1))) == "signed"
        issuer.stop()
    with issuing(site, timedelta(days=1)) as later:
        assert problem(ask(later, requests(site), place())) == "signed"
    rows = sqlite3.connect(site.base / "issued" / "issued.sqlite").execute("SELECT day, account FROM issued").fetchall()
    assert len(rows) == 1
    assert b"somebody" not in rows[0][1]


def test_a_page_may_ask(tmp_path: Path) -> None:
    site = make_issuer(tmp_path / "site")
    with issuing(site) as issuer:
        asked = {
            "origin": "https://app.example.com",
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization,content-type",
        }
        reply = httpx.options(issuer.url + place(), headers=asked)
    assert reply.status_code == 204
    assert "authorization" in reply.headers["access-control-allow-headers"]


def test_readiness_and_keys_that_others_can_read(tmp_path: Path) -> None:
    site = make_issuer(tmp_path / "site")
    (site.base / "passes" / "words.private.json").chmod(0o644)
    with issuing(site) as issuer:
        reply = issuer.get("/readyz")
        assert reply.status_code == 503
        assert "0600" in reply.text
        assert problem(ask(issuer, bytes(259))) == "unknown_campaign"
