"""Who does not read the answers is cut off, and who reads slowly is not."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest
import uvicorn

from shuffler.collector.http.connection_limits import LimitedConfig, enforce_limits
from shuffler.collector.metrics import Metrics
from shuffler.collector.settings import CollectorPart
from tests.shuffler.collector.running import wait_for

ANSWER = bytes(24 << 20)
"""Longer than what the operating system holds for a peer."""
BODY_SECONDS = 1.0
GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


@pytest.fixture
def server() -> Iterator[uvicorn.Server]:
    """A server with the collector's limits, whose answers are long."""

    async def app(_scope: object, _receive: object, send: Callable[[object], Awaitable[None]]) -> None:
        headers = [(b"content-length", str(len(ANSWER)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": ANSWER})

    listener = socket.create_server(("127.0.0.1", 0))
    settings = CollectorPart(name="one", body_seconds=BODY_SECONDS)
    made = uvicorn.Server(LimitedConfig(app, settings, Metrics()))

    async def serve() -> None:
        limits = asyncio.create_task(enforce_limits(made.server_state))
        await made.serve([listener])
        limits.cancel()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    made.config.port = listener.getsockname()[1]
    yield made
    made.should_exit = True
    thread.join(30)
    assert not thread.is_alive()


def connect(server: uvicorn.Server) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    connection.settimeout(20)
    connection.connect(("127.0.0.1", server.config.port))
    return connection


def open_connections(server: uvicorn.Server) -> int:
    return len(server.server_state.connections)


@pytest.mark.parametrize("requests", [1, 50], ids=["one", "pipelined"])
@pytest.mark.parametrize("last", [b"", b"Connection: close\r\n"], ids=["kept alive", "to be closed"])
def test_a_peer_that_reads_nothing_is_cut_off(server: uvicorn.Server, requests: int, last: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(requests * GET.replace(b"\r\n\r\n", b"\r\n" + last + b"\r\n"))
        time.sleep(0.5)
        assert open_connections(server) == 1
        wait_for(lambda: not open_connections(server), 9.5, "the end of the connection")


def test_a_connection_that_cannot_be_looked_at_is_cut_off_and_the_others_are_looked_at(
    server: uvicorn.Server, caplog: pytest.LogCaptureFixture
) -> None:
    with connect(server) as broken:
        connections = server.server_state.connections
        wait_for(lambda: any(held._since is not None for held in list(connections)))
        (held,) = connections
        held._since = "no moment"
        with connect(server) as silent:
            # Each of the two is closed: the one that broke the look at it, and one that says nothing.
            assert silent.recv(1) == b""
        assert broken.recv(1) == b""
    assert caplog.messages.count("connection cannot be limited") == 1


@pytest.mark.parametrize("last", [b"", b"Connection: close\r\n"], ids=["kept alive", "to be closed"])
def test_a_peer_that_reads_slowly_gets_all_of_the_answer(server: uvicorn.Server, last: bytes) -> None:
    began, received = time.monotonic(), 0
    with connect(server) as connection:
        connection.sendall(GET.replace(b"\r\n\r\n", b"\r\n" + last + b"\r\n"))
        while received < len(ANSWER):
            part = connection.recv(1 << 17)
            assert part, f"cut off after {received} bytes"
            received += len(part)
            # About 6 MiB a second, whatever the machine does besides.
            time.sleep(max(0.0, began + received / (6 << 20) - time.monotonic()))
    assert time.monotonic() - began > 3 * BODY_SECONDS
