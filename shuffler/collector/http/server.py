"""Runs a collector behind its HTTP server until a signal stops it."""

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
from shuffler.collector.http.app import application
from shuffler.collector.http.connection_limits import LimitedConfig, enforce_limits
from shuffler.collector.service import Collector, CollectorSetup
from shuffler.collector.windows import window_files

_LOG = logging.getLogger("hushcount.collector")


def serve(setup: CollectorSetup) -> None:
    """Collect until SIGTERM or SIGINT; every acknowledged report is on the disk or in the store when this returns.

    Raises:
        UsageError: the address, the journal directory or the campaigns cannot be used.
        HushcountError: another collector runs on the journal directory, or its disk fails.
    """
    with window_files.locked(setup.journal), _listening(setup.settings.host, setup.settings.port) as listener:
        uvloop.run(_serve(setup, listener))


async def _serve(setup: CollectorSetup, listener: socket.socket) -> None:
    collector = Collector(setup)
    try:
        await collector.start()
    except OSError as error:
        raise HushcountError(f"cannot write journal directory {setup.journal}: {error.strerror}") from None
    server = _Server(LimitedConfig(application(collector), setup.settings, collector.metrics))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    limits = asyncio.create_task(enforce_limits(server.server_state))
    host, port = listener.getsockname()[:2]
    _LOG.info(
        "started",
        extra={"host": host, "port": port, "campaigns": len(collector.campaigns), "collector": setup.settings.name},
    )
    try:
        await server.serve([listener])
    finally:
        limits.cancel()
        # However the server ended, the journals must be uploaded.
        for ended in await asyncio.gather(limits, return_exceptions=True):
            if isinstance(ended, Exception):
                _LOG.error("limits had failed", exc_info=ended)
        await collector.stop()
        _LOG.info("stopped", extra={"collector": setup.settings.name})


class _Server(uvicorn.Server):
    """The server without its signal handlers, which would end the process before the journals are uploaded."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Answer the requests that have arrived, and end."""
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
