"""Pages of the sites that the operator names may call a collector from a browser, others may not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hushcount.errors import UsageError
from hushcount.formats.reading import validated
from shuffler.collector.settings import CollectorPart
from tests.shuffler.collector.running import STREAM, Running, make_site, running

PAGE = "https://www.example.org"
ALLOWED = "access-control-allow-origin"
ASKS = {"access-control-request-method": "POST", "access-control-request-headers": "client-token,content-type"}
FILES = ("/v1/campaigns/words", "/v1/campaigns/words/dictionary", "/v1/campaigns/words/log")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    settings = {"origins": [PAGE, "http://localhost:8000"], "authentication": "client-token"}
    with running(make_site(tmp_path_factory.mktemp("site"), collector=settings)) as started:
        yield started


def asked(collector: Running, origin: str, path: str | None = None) -> dict[str, str]:
    """Ask as a browser does before it posts, and return the headers of an answer that allows it, or none."""
    from httpx import options

    answer = options(collector.url + (path or collector.path()), headers={"origin": origin, **ASKS})
    return dict(answer.headers) if answer.status_code == 204 else {}


def test_a_named_page_may_post_and_read_every_answer(opened: Running) -> None:
    headers = asked(opened, PAGE)
    assert headers[ALLOWED] == PAGE
    assert "POST" in headers["access-control-allow-methods"]
    assert {"client-token", "content-type"} <= set(headers["access-control-allow-headers"].split(", "))
    # No page gets a cookie sent along.
    assert "access-control-allow-credentials" not in headers
    body = os.urandom(opened.site.campaign().sealed_bytes("reports"))
    token = {"client-token": "0123456789abcdef"}
    for sent, status in ((body, 202), (body[1:], 400)):
        answer = opened.post(sent, headers={"origin": PAGE, **token})
        assert (answer.status_code, answer.headers[ALLOWED]) == (status, PAGE)
        assert {"date", "retry-after"} <= set(answer.headers["access-control-expose-headers"].split(", "))
        assert answer.headers["date"].endswith(" GMT")
    for path in FILES:
        answer = opened.get(path, headers={"origin": PAGE})
        assert (answer.status_code, answer.headers[ALLOWED]) == (200, PAGE)
        assert {"etag", "campaign-signature"} <= set(answer.headers["access-control-expose-headers"].split(", "))
        # Caches must not give the answer to another page.
        assert opened.get(path).headers["vary"] == "origin"


def test_another_page_may_not(subtests: pytest.Subtests, opened: Running) -> None:
    for origin in ["https://example.org", PAGE + ".evil.example", PAGE + ":444", "null", ""]:
        with subtests.test(origin=origin):
            assert asked(opened, origin) == {}
            assert ALLOWED not in opened.get(FILES[0], headers={"origin": origin}).headers


def test_pages_may_not_read_about_the_collector_itself(opened: Running) -> None:
    assert asked(opened, PAGE, "/metrics") == {}
    assert ALLOWED not in opened.get("/metrics", headers={"origin": PAGE}).headers


def test_without_origins_no_page_may(collector: Running) -> None:
    assert asked(collector, PAGE) == {}
    answer = collector.get(FILES[0], headers={"origin": PAGE})
    assert ALLOWED not in answer.headers
    assert "vary" not in answer.headers


def test_all_pages_may_if_the_operator_says_so(tmp_path: Path) -> None:
    with running(make_site(tmp_path / "site", collector={"origins": ["*"]})) as collector:
        assert asked(collector, PAGE)[ALLOWED] == "*"
        answer = collector.post(b"x", headers={**STREAM, "origin": "null"})
        assert (answer.status_code, answer.headers[ALLOWED]) == (400, "*")


def test_a_wrong_origin_is_told(subtests: pytest.Subtests) -> None:
    for origin in [
        "www.example.org",
        PAGE + "/",
        PAGE + "/page",
        "https://WWW.example.org",
        "ftp://a",
        "null",
        "**",
        "",
    ]:
        with subtests.test(origin=origin), pytest.raises(UsageError, match="origins"):
            validated(CollectorPart, {"name": "one", "origins": [origin]}, "deployment file")
