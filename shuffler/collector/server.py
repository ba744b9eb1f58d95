"""Runs a collector behind its HTTP server until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
import uvloop

from hushcount.errors import HushcountError, UsageError
from shuffler.collector import window_files
from shuffler.collector.app import application
from shuffler.collector.protocol import LimitedConfig, enforce_limits
from shuffler.collector.service import Collector, Surroundings

_LOG = logging.getLogger("hushcount.collector")


def serve(around: Surroundings) -> None:
    """Collect until SIGTERM or SIGINT; what was acknowledged is on the disk or in the store when this returns.

    Raises:
        UsageError: the address, the journal directory or the campaigns cannot be used.
        HushcountError: another collector runs on the journal directory, or its disk fails.
    """
    with window_files.locked(around.journal), _listening(around.settings.host, around.settings.port) as listener:
        uvloop.run(_serve(around, listener))


async def _serve(around: Surroundings, listener: socket.socket) -> None:
    collector = Collector(around)
    try:
        await collector.start()
    except OSError as error:
        raise HushcountError(f"cannot write journal directory {around.journal}: {error.strerror}") from None
    server = _Server(LimitedConfig(application(collector), around.settings, collector.metrics))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    limits = asyncio.create_task(enforce_limits(server.server_state))
    host, port = listener.getsockname()[:2]
    _LOG.info(
        "started",
        extra={"host": host, "port": port, "campaigns": len(collector.campaigns), "collector": around.settings.name},
    )
    try:
        await server.serve([listener])
    finally:
        limits.cancel()
        # Whatever it ended with, the journals are to be sealed.
        for ended in await asyncio.gather(limits, return_exceptions=True):
            if isinstance(ended, Exception):
                _LOG.error("limits had failed", exc_info=ended)
        await collector.stop()
        _LOG.info("stopped", extra={"collector": around.settings.name})


class _Server(uvicorn.Server):
    """The server, which leaves signals to us: it would end the process before the journals are sealed."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Answer the requests that are here, and end."""
        self.should_exit = True


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=4096)
    except OSError as error:
        raise UsageError(f"cannot listen on {host} port {port}: {error.strerror}; set another host or port") from None
    with listener:
        yield listener
