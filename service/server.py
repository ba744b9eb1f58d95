"""Runs a service behind its HTTP server until a signal stops it."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import uvicorn

from hushcount.errors import UsageError
from service.connection_limits import LimitedConfig, enforce_limits
from service.exchange import App
from service.metrics import ServiceMetrics
from service.settings import ServicePart

_LOG = logging.getLogger("hushcount.service")


class Service(Protocol):
    """What answers requests, after it was started."""

    @property
    def metrics(self) -> ServiceMetrics: ...

    async def stop(self) -> None: ...


async def serve_until_told(
    service: Service, app: App, settings: ServicePart, listener: socket.socket, log: logging.Logger, **facts: object
) -> None:
    """Answer until SIGTERM or SIGINT, then stop the service; the facts say in its log who started."""
    server = _Server(LimitedConfig(app, settings, service.metrics))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    limits = asyncio.create_task(enforce_limits(server.server_state))
    host, port = listener.getsockname()[:2]
    log.info("started", extra={"host": host, "port": port, **facts})
    try:
        await server.serve([listener])
    finally:
        limits.cancel()
        # However the server ended, what it acknowledged must be kept.
        for ended in await asyncio.gather(limits, return_exceptions=True):
            if isinstance(ended, Exception):
                _LOG.error("limits had failed", exc_info=ended)
        await service.stop()
        log.info("stopped", extra=facts)


class _Server(uvicorn.Server):
    """The server without its signal handlers, which would end the process before the service has stopped."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Answer the requests that have arrived, and end."""
        self.should_exit = True


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Listen for a block; UsageError: this address cannot be listened on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=4096)
    except OSError as error:
        raise UsageError(f"cannot listen on {host} port {port}: {error.strerror}; set another host or port") from None
    with listener:
        yield listener
