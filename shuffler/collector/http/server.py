"""Runs a collector behind its HTTP server until a signal stops it."""

from __future__ import annotations

import logging
import socket

import uvloop

from hushcount.errors import HushcountError
from service.server import listening, serve_until_told
from service.window_folders import locked
from shuffler.collector.http.app import application
from shuffler.collector.service import Collector, CollectorSetup

_LOG = logging.getLogger("hushcount.collector")


def serve(setup: CollectorSetup) -> None:
    """Collect until SIGTERM or SIGINT; every acknowledged report is on the disk or in the store when this returns.

    Raises:
        UsageError: the address, the journal directory or the campaigns cannot be used.
        HushcountError: another collector runs on the journal directory, or its disk fails.
    """
    settings = setup.settings
    with locked(setup.journal, "journal directory", "collector"), listening(settings.host, settings.port) as listener:
        uvloop.run(_serve(setup, listener))


async def _serve(setup: CollectorSetup, listener: socket.socket) -> None:
    collector = Collector(setup)
    try:
        await collector.start()
    except OSError as error:
        raise HushcountError(f"cannot write journal directory {setup.journal}: {error.strerror}") from None
    facts = {"campaigns": len(collector.campaigns), "collector": setup.settings.name}
    await serve_until_told(collector, application(collector), setup.settings, listener, _LOG, **facts)
