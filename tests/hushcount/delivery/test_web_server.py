"""The handler that docs/app-developers.md shows for web servers: cap, token and opt-out are one person's."""

from __future__ import annotations

import re
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest

from tests.hushcount.delivery.fake_collector import FakeCollector, campaign, collecting, policy

PAGE = Path(__file__).parents[3] / "docs" / "app-developers.md"
COLLECTOR = "https://collector.example.com"


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with collecting() as one:
        one.epochs[:] = [campaign(shuffle={"cap": 1, "minimum_batch": 10, "delta": 1e-7})]
        yield one


class Threads(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serving(application: Any) -> Iterator[str]:
    with make_server("127.0.0.1", 0, application, Threads, Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_two_people_have_a_cap_and_a_token_each_and_one_has_them_once(
    collector: FakeCollector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.json").write_text(policy().text())
    (block,) = re.findall(r"```python\n([^`]*def application.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    shown: dict[str, Any] = {}
    exec(block.replace(COLLECTOR, collector.address), shown)  # noqa: S102  # the page's own lines

    def visit(user: str) -> str:
        with urllib.request.urlopen(urllib.request.Request(address, headers={"X-User": user})) as answer:  # noqa: S310
            return str(answer.read().decode())

    with serving(shown["application"]) as address, ThreadPoolExecutor(4) as visitors:
        assert list(visitors.map(visit, ["ada", "ben", "eve"])) == ["queued"] * 3
        assert list(visitors.map(visit, ["ada", "ben", "eve"])) == ["over_cap"] * 3
    assert collector.posts == []
    for folder in shown["PEOPLE"].iterdir():
        shown["sender_of"](folder).deliver(early=True)
    shown["deliver"]()
    tokens = [post.token for post in collector.posts if post.stream == "reports"]
    assert len(set(tokens)) == len(tokens) == 3
    assert not any("ada" in str(path) for path in tmp_path.rglob("*"))
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "people").iterdir()} == {0o700}
    for folder in shown["PEOPLE"].iterdir():
        (folder / "queue.sqlite").write_bytes(b"damaged" * 1000)
    shown["deliver"]()
