"""Requests that are too slow, too long or no HTTP: each gets an answer or is cut off, and the others go on."""

from __future__ import annotations

import os
import socket
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hushcount.windows import window_at
from shuffler.collector.allowance import Allowance
from shuffler.collector.problems import Refused
from tests.collector.running import Running, Site, make_site, running

BODY_SECONDS = 1.5
"""As the site of these tests sets it."""
GIB = 1 << 30


def connect(collector: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", collector.port), timeout=15)


def read_all(connection: socket.socket) -> bytes:
    """Return all that comes until the other side closes."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def head(collector: Running, length: int | str) -> bytes:
    return (
        f"POST {collector.path()} HTTP/1.1\r\nHost: here\r\nContent-Type: application/octet-stream\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def memory(collector: Running) -> int:
    """Return the resident bytes of the collector."""
    status = Path(f"/proc/{collector.process.pid}/statm").read_text()
    return int(status.split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_head_that_drips_is_answered_and_cut_off(collector: Running) -> None:
    with connect(collector) as connection:
        began = time.monotonic()
        try:
            for letter in head(collector, 10)[:60]:
                connection.send(bytes([letter]))
                time.sleep(0.05)
                if time.monotonic() - began > BODY_SECONDS + 1:
                    break
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"too_slow" in answer


def test_a_body_that_stays_away_is_answered_and_cut_off(collector: Running, site: Site) -> None:
    length = site.campaign().sealed_bytes("reports")
    with connect(collector) as connection:
        connection.sendall(head(collector, length) + b"only this")
        began = time.monotonic()
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert BODY_SECONDS - 0.5 < time.monotonic() - began < BODY_SECONDS + 5


def test_a_connection_that_says_nothing_is_closed(collector: Running) -> None:
    with connect(collector) as connection:
        assert read_all(connection) == b""


def test_slow_connections_do_not_keep_others_waiting(collector: Running, site: Site) -> None:
    slow = [connect(collector) for _ in range(200)]
    for connection in slow:
        connection.sendall(head(collector, 65)[:40])
    began = time.monotonic()
    assert collector.post(os.urandom(site.campaign().sealed_bytes("reports"))).status_code == 202
    assert time.monotonic() - began < BODY_SECONDS
    for connection in slow:
        connection.close()


def test_a_gibibyte_is_refused_by_its_stated_length_before_it_is_sent(collector: Running) -> None:
    with connect(collector) as connection:
        connection.sendall(head(collector, GIB))
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_a_gibibyte_that_is_sent_all_the_same_is_cut_off(collector: Running) -> None:
    before = memory(collector)
    sent = 0
    with connect(collector) as connection:
        connection.sendall(head(collector, GIB))
        try:
            while sent < GIB:
                sent += connection.send(bytes(1 << 20))
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert sent < GIB
    assert memory(collector) - before < 64 << 20


def test_a_gibibyte_in_chunks_is_refused_while_it_comes(collector: Running) -> None:
    before = memory(collector)
    sent, answer = 0, b""
    with connect(collector) as connection:
        connection.sendall(head(collector, "0").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked"))
        try:
            while sent < GIB:
                connection.sendall(b"10000\r\n" + bytes(1 << 16) + b"\r\n")
                sent += 1 << 16
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = read_all(connection)
    assert sent < GIB
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413 ")
    assert memory(collector) - before < 64 << 20


def test_a_head_without_end_is_cut_off(collector: Running) -> None:
    before = memory(collector)
    sent = 0
    with connect(collector) as connection:
        try:
            connection.sendall(b"GET /healthz HTTP/1.1\r\n")
            while sent < GIB:
                sent += connection.send(b"X-More: " + b"a" * 60_000 + b"\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert sent < 64 << 20
    assert memory(collector) - before < 64 << 20


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=["zeros", "no path", "version", "header", "negative", "two lengths", "chunk", "TLS", "HTTP/2"],
)
def test_what_is_no_http_is_answered_with_400_or_closed(collector: Running, garbage: bytes) -> None:
    with connect(collector) as connection:
        connection.sendall(garbage)
        answer = read_all(connection)
    assert answer == b"" or answer.split(b" ")[1] in (b"400", b"404", b"405", b"408")
    assert collector.get("/healthz").status_code == 200


def test_random_bytes_never_end_it(collector: Running) -> None:
    for _ in range(50):
        with connect(collector) as connection:
            connection.sendall(os.urandom(200) + b"\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            read_all(connection)
    assert collector.process.poll() is None


def test_a_hundred_continues_are_asked_for_only_if_the_body_is_wanted(collector: Running, site: Site) -> None:
    length = site.campaign().sealed_bytes("reports")
    expecting = b"Expect: 100-continue\r\nHost"
    with connect(collector) as connection:
        connection.sendall(head(collector, length).replace(b"Host", expecting))
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(os.urandom(length))
        assert connection.recv(65536).startswith(b"HTTP/1.1 202 ")
    with connect(collector) as connection:
        connection.sendall(head(collector, GIB).replace(b"Host", expecting))
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_connections_beyond_the_most_are_told_to_come_back(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", collector={"most_connections": 3, "body_seconds": BODY_SECONDS})
    with running(site) as collector:
        held = [connect(collector) for _ in range(3)]
        with connect(collector) as connection:
            answer = read_all(connection)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: " in answer
        for connection in held:
            connection.close()
        assert collector.get("/healthz").status_code == 200
        with connect(collector) as waiting:
            waiting.sendall(head(collector, 65))
            began = time.monotonic()
            # A body that stays away does not hold up a shutdown.
            assert collector.stop() == 0
            assert time.monotonic() - began < 15


def test_a_client_that_floods_is_told_to_wait_for_the_next_window_and_others_are_not(tmp_path: Path) -> None:
    settings = {"authentication": "client-token", "most_reports_a_client": 3}
    site = make_site(tmp_path / "site", collector=settings)
    length = site.campaign().sealed_bytes("reports")
    flood, other = ({"client-token": name * 16} for name in "ab")
    with running(site) as collector:
        assert collector.post(os.urandom(2 * length), headers=flood).status_code == 202
        answer = collector.post(os.urandom(2 * length), headers=flood)
        assert answer.status_code == 429
        assert answer.json()["type"].endswith("too_many_reports")
        assert "3 reports" in answer.json()["detail"]
        assert 0 < int(answer.headers["retry-after"]) <= 3600
        assert collector.post(os.urandom(length), headers=flood).status_code == 202
        assert collector.post(os.urandom(length), headers=flood).status_code == 429
        assert collector.post(os.urandom(3 * length), headers=other).status_code == 202
    assert len(site.sealed()) == 6


def test_an_allowance_is_of_one_window_and_counts_nothing_unasked() -> None:
    window = window_at(datetime(2026, 1, 1, tzinfo=timezone.utc), timedelta(days=365))
    allowance = Allowance(1)
    allowance.add(b"client", 1, window)
    with pytest.raises(Refused):
        allowance.require(b"client", 1, window)
    allowance.require(b"client", 1, window.next)
    allowance.require(None, 5, window)
    unlimited = Allowance(None)
    unlimited.add(b"client", 100, window)
    unlimited.require(b"client", 100, window)
