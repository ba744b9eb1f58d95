"""A server with the collector's limits, in a thread of the test, which says how late it is there."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any

import uvicorn

from service.connection_limits import LimitedConfig, LimitedProtocol, enforce_on_all
from shuffler.collector.app import application
from shuffler.collector.metrics import Metrics
from shuffler.collector.settings import CollectorPart
from tests.shuffler.collector.in_process import collector_of
from tests.shuffler.collector.running import Site, wait_for

LIMIT = 600.0
"""Seconds that a request may take: longer than any test, so that no connection ends before it is said to be so late."""
App = Callable[[Any, Any, Any], Awaitable[None]]


class Clockwork(asyncio.SelectorEventLoop):
    """An event loop whose clock can be set forward."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


class Server:
    """The server, from the test's thread."""

    def __init__(self, loop: Clockwork, server: uvicorn.Server, metrics: Metrics, port: int) -> None:
        self._loop = loop
        self._server = server
        self.metrics = metrics
        self.port = port

    def connect(self) -> socket.socket:
        """Return a connection whose end holds few bytes that are not read."""
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        connection.settimeout(120)
        connection.connect(("127.0.0.1", self.port))
        return connection

    @property
    def connections(self) -> list[LimitedProtocol]:
        return [one for one in list(self._server.server_state.connections) if isinstance(one, LimitedProtocol)]

    def pass_by(self, limits: float) -> None:
        """Let so many limits pass by, and look at all connections then; return when that is done."""

        async def look() -> None:
            self._loop.ahead += limits * LIMIT
            enforce_on_all(self._server.server_state, self._loop.time())
            # What was aborted leaves in the loop's next turn.
            await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(look(), self._loop).result(120)

    def wait_idle(self) -> None:
        """Wait until the application works on no request."""
        wait_for(lambda: not self._server.server_state.tasks, what="the end of all requests")

    def value(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"hushcount_collector_{name}", labels) or 0.0


@asynccontextmanager
async def collecting(site: Site) -> AsyncIterator[tuple[App, Metrics]]:
    """The collector of a site."""
    collector = collector_of(site, timedelta(days=365))
    await collector.start()
    try:
        yield application(collector), collector.metrics
    finally:
        await collector.stop()


@contextmanager
def served(application: AbstractAsyncContextManager[tuple[App, Metrics]]) -> Iterator[Server]:
    """Serve an application for a block."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    started = threading.Event()
    made: list[tuple[uvicorn.Server, Server]] = []

    async def serve() -> None:
        async with application as (app, metrics):
            config = LimitedConfig(app, CollectorPart(name="one", body_seconds=LIMIT), metrics)
            config.timeout_keep_alive = 1 << 20
            server = uvicorn.Server(config)
            made.append((server, Server(loop, server, metrics, listener.getsockname()[1])))
            started.set()
            await server.serve([listener])

    loop = Clockwork()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert started.wait(120)
    ((server, seen),) = made
    yield seen
    server.should_exit = True
    thread.join(120)
    assert not thread.is_alive()
    loop.close()
