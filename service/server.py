"""Runs a service behind its HTTP server until a signal stops it."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import uvicorn
import uvloop

from hushcount.errors import HushcountError, UsageError
from service.connection_limits import LimitedConfig, enforce_limits
from service.exchange import App
from service.metrics import ServiceMetrics
from service.settings import ListeningPart
from service.window_folders import locked

_LOG = logging.getLogger("hushcount.service")


class Service(Protocol):
    """A service that answers requests between `start` and `stop`."""

    @property
    def metrics(self) -> ServiceMetrics: ...

    @property
    def campaigns(self) -> Sized: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


Started = TypeVar("Started", bound=Service)


@dataclass(frozen=True)
class Kept:
    """The directory of a service on the local disk, and the names of service and directory in messages."""

    service: str
    what: str
    root: Path


def serve(
    make: Callable[[], Started], application: Callable[[Started], App], settings: ListeningPart, kept: Kept
) -> None:
    """Make a service, and answer until SIGTERM or SIGINT; then stop it.

    Raises:
        UsageError: the address or the directory cannot be used, or `make` raises UsageError.
        HushcountError: another process works on the directory, or its disk fails.
    """
    with locked(kept.root, kept.what, kept.service), listening(settings.host, settings.port) as listener:
        uvloop.run(serve_on(listener, make, application, settings, kept))


async def serve_on(
    listener: socket.socket,
    make: Callable[[], Started],
    application: Callable[[Started], App],
    settings: ListeningPart,
    kept: Kept,
) -> None:
    """Make a service, and answer on a listening socket until a signal; the directory is locked already."""
    service, log = make(), logging.getLogger(f"hushcount.{kept.service}")
    try:
        await service.start()
    except OSError as error:
        raise HushcountError(f"cannot write {kept.what} {kept.root}: {error.strerror}") from None
    server = Server(LimitedConfig(application(service), settings, service.metrics))
    limits = asyncio.create_task(enforce_limits(server.server_state))
    host, port = listener.getsockname()[:2]
    facts = {"campaigns": len(service.campaigns), kept.service: settings.name}
    started = partial(log.info, "started", extra={"host": host, "port": port, **facts})
    try:
        await server.until_signalled(listener, started)
    finally:
        limits.cancel()
        # Even if the server failed, the service must stop properly, so that the data of answered requests is on the
        # disk.
        for ended in await asyncio.gather(limits, return_exceptions=True):
            if isinstance(ended, Exception):
                _LOG.error("limits had failed", exc_info=ended)
        await service.stop()
        log.info("stopped", extra=facts)


class Server(uvicorn.Server):
    """The HTTP server without its signal handlers, which would end the process before the service has stopped."""

    async def until_signalled(self, listener: socket.socket, say_ready: Callable[[], object]) -> None:
        """Answer until SIGTERM or SIGINT; whoever hears that it is ready may send one at once."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        say_ready()
        await self.serve([listener])

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def _stop(self) -> None:
        self.should_exit = True


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Listen on an address while the block runs; UsageError: the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=4096)
    except OSError as error:
        raise UsageError(f"cannot listen on {host} port {port}: {error.strerror}; set another host or port") from None
    with listener:
        yield listener
