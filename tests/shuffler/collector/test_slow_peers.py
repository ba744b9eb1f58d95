"""Who sends or reads nothing for longer than a request may take is cut off; who is slow and others are not."""

from __future__ import annotations

import json
import os
import select
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from service.connection_limits import _MOST_HEAD_BYTES, LimitedProtocol
from shuffler.collector.metrics import Metrics
from tests.shuffler.collector.in_a_thread import App, Server, collecting, served
from tests.shuffler.collector.running import STREAM, Site, make_site, wait_for
from tests.shuffler.collector.test_limits import read_all
from tests.support import patient

ANSWER = bytes(24 << 20)
"""Longer than what the operating system holds for a peer."""
MOST_HELD = 4 << 20
"""What a peer must have read so that the operating system takes more, whatever its buffers."""
GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


def path_of(site: Site) -> str:
    return f"/v1/campaigns/words/reports?fingerprint={site.fingerprint()}&window=19700101T000000Z"


def head_of(site: Site) -> bytes:
    """Return the head of a post, but for the length of its body."""
    head = f"POST {path_of(site)} HTTP/1.1\r\nHost: here\r\nContent-Type: application/octet-stream\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n"


@asynccontextmanager
async def long_answers() -> AsyncIterator[tuple[App, Metrics]]:
    async def app(_scope: object, _receive: object, send: Callable[[object], Awaitable[None]]) -> None:
        headers = [(b"content-length", str(len(ANSWER)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": ANSWER})

    yield app, Metrics()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server whose answers are long."""
    with served(long_answers()) as started:
        yield started


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return make_site(tmp_path_factory.mktemp("site"))


@pytest.fixture
def collector(site: Site) -> Iterator[Server]:
    with served(collecting(site)) as started:
        yield started


def answering(server: Server) -> LimitedProtocol:
    """Return the one connection, once more waits for its peer than the operating system takes."""
    wait_for(lambda: [one.flow.write_paused for one in server.connections] == [True], what="the answer")
    return server.connections[0]


def cut_off(server: Server, limits: float) -> bool:
    """Return whether no connection is left after so many limits more."""
    server.pass_by(limits)
    return not server.connections


def arrived(server: Server, number: int) -> None:
    """Wait until so many bytes of heads have come."""
    wait_for(lambda: sum(_MOST_HEAD_BYTES - one._room for one in server.connections) == number, what="the bytes")


@pytest.mark.parametrize("pieces", [1, 9], ids=["stops", "drips"])
def test_a_head_that_is_never_whole_is_answered_and_cut_off(collector: Server, site: Site, pieces: int) -> None:
    head = head_of(site)
    with collector.connect() as connection:
        for number in range(1, pieces + 1):
            connection.send(head[7 * number - 7 : 7 * number])
            arrived(collector, 7 * number)
            collector.pass_by(0.9 / pieces)
        assert select.select([connection], [], [], 0) == ([], [], [])
        collector.pass_by(0.2)
        fields, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert fields.startswith(b"HTTP/1.1 408 ")
    assert b"content-type: application/problem+json" in fields
    assert json.loads(body)["type"].endswith("too_slow")
    assert collector.value("requests_refused_total", reason="too_slow") == 1


def test_a_body_that_stays_away_is_answered_and_cut_off(collector: Server, site: Site) -> None:
    request = head_of(site) % site.campaign().sealed_bytes("reports") + b"only this"
    with collector.connect() as connection:
        connection.sendall(request)
        wait_for(lambda: any(one._head_done for one in collector.connections))
        collector.pass_by(0.9)
        assert select.select([connection], [], [], 0) == ([], [], [])
        collector.pass_by(0.2)
        assert read_all(connection).startswith(b"HTTP/1.1 408 ")
    collector.wait_idle()
    # It is counted once.
    assert collector.value("requests_refused_total", reason="too_slow") == 1
    assert collector.value("requests_incomplete_total") == 0


def test_a_connection_that_says_nothing_is_closed(collector: Server) -> None:
    with collector.connect() as connection:
        wait_for(lambda: len(collector.connections) == 1)
        collector.pass_by(0.9)
        assert select.select([connection], [], [], 0) == ([], [], [])
        collector.pass_by(0.2)
        assert read_all(connection) == b""


def test_slow_connections_do_not_keep_others_waiting(collector: Server, site: Site) -> None:
    slow = [collector.connect() for _ in range(200)]
    for connection in slow:
        connection.sendall(head_of(site)[:40])
    arrived(collector, 200 * 40)
    body = os.urandom(site.campaign().sealed_bytes("reports"))
    answer = patient.post(f"http://127.0.0.1:{collector.port}{path_of(site)}", content=body, headers=STREAM)
    assert answer.status_code == 202
    # None of them had to end for that.
    assert select.select(slow, [], [], 0) == ([], [], [])
    for connection in slow:
        connection.close()


def test_a_peer_that_reads_nothing_is_cut_off(subtests: pytest.Subtests, server: Server) -> None:
    for requests in [1, 50]:
        for last in [b"", b"Connection: close\r\n"]:
            with subtests.test(last=last, requests=requests), server.connect() as connection:
                connection.sendall(requests * GET.replace(b"\r\n\r\n", b"\r\n" + last + b"\r\n"))
                answering(server)
                assert not cut_off(server, 0.0)
                assert not cut_off(server, 0.9)
                # The operating system may have taken more between two looks.
                assert any(cut_off(server, 0.2) for _ in range(20))


def test_a_connection_that_cannot_be_looked_at_is_cut_off_and_the_others_are_looked_at(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with server.connect() as broken:
        wait_for(lambda: any(one._since is not None for one in server.connections))
        server.connections[0]._since = "no moment"
        with server.connect() as silent:
            wait_for(lambda: len(server.connections) == 2)
            server.pass_by(1.1)
            # Each of the two is closed: the one that broke the look at it, and one that says nothing.
            assert silent.recv(1) == b""
        assert broken.recv(1) == b""
    assert caplog.messages.count("connection cannot be limited") == 1


def test_a_peer_that_reads_slowly_gets_all_of_the_answer(subtests: pytest.Subtests, server: Server) -> None:
    for last in [b"", b"Connection: close\r\n"]:
        with subtests.test(last=last):
            received, limits = 0, 0.0
            with server.connect() as connection:
                connection.sendall(GET.replace(b"\r\n\r\n", b"\r\n" + last + b"\r\n"))
                peer = answering(server)
                while received < len(ANSWER):
                    unread, due = peer.transport.get_write_buffer_size(), min(len(ANSWER), received + MOST_HELD)
                    while received < due:
                        part = connection.recv(min(1 << 17, due - received))
                        assert part, f"cut off after {received} bytes"
                        received += len(part)
                    if unread:
                        wait_for(lambda: peer.transport.get_write_buffer_size() != unread, what="the writing of more")  # noqa: B023
                    server.pass_by(0.8)
                    limits += 0.8
            assert limits > 3
