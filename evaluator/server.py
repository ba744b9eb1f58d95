"""Runs an evaluator behind its HTTP server until a signal stops it."""

from __future__ import annotations

import logging
import socket

import uvloop

from evaluator.app import application
from evaluator.evaluator import Evaluator, EvaluatorSetup
from hushcount.errors import HushcountError
from service.server import listening, serve_until_told
from service.window_folders import locked

_LOG = logging.getLogger("hushcount.evaluator")


def serve(setup: EvaluatorSetup) -> None:
    """Answer until SIGTERM or SIGINT; every answered evaluation is counted on the disk when this returns.

    Raises:
        UsageError: the address, the directory of counts, the keys or the campaigns cannot be used.
        HushcountError: another evaluator runs on the directory of counts, or its disk fails.
    """
    settings = setup.settings
    with locked(setup.counts, "directory of counts", "evaluator"), listening(settings.host, settings.port) as listener:
        uvloop.run(_serve(setup, listener))


async def _serve(setup: EvaluatorSetup, listener: socket.socket) -> None:
    evaluator = Evaluator(setup)
    try:
        await evaluator.start()
    except OSError as error:
        raise HushcountError(f"cannot write directory of counts {setup.counts}: {error.strerror}") from None
    facts = {"campaigns": len(evaluator.campaigns), "evaluator": setup.settings.name}
    await serve_until_told(evaluator, application(evaluator), setup.settings, listener, _LOG, **facts)
