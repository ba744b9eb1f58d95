"""Serves the pages of a deployment until a signal ends it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial

import uvicorn

from hushcount.clock import MACHINE
from hushcount.errors import UsageError
from pipelines.deployment.settings import Deployment
from pipelines.questions.spans import Span
from pipelines.served.app import application
from pipelines.served.kept import Campaigns
from pipelines.served.login import login_of
from service.server import Server

_MOST_AT_ONCE = 256
_MOST_HEAD_BYTES = 16 << 10


def serve(deployment: Deployment, port: int, span: Span, ready: Callable[[str], None]) -> None:
    """Answer until SIGTERM or SIGINT.

    Args:
        port: of the address that `[dashboard]` names; 0: any free port.
        span: which windows of each campaign a page shows.
        ready: called with the address to open, once the server listens.

    Raises:
        UsageError: the port cannot be used, or the login is wrong.
    """
    own = deployment.file.dashboard
    family = socket.AF_INET6 if ":" in own.host else socket.AF_INET
    try:
        listener = socket.create_server((own.host, port), family=family)
    except OSError as error:
        raise UsageError(
            f"cannot serve on {own.host} port {port}: {error.strerror}; give another --port, or 0"
        ) from None
    with listener:
        port = listener.getsockname()[1]
        app = application(Campaigns(deployment, MACHINE, span), login_of(deployment, port), MACHINE)
        host = f"[{own.host}]" if ":" in own.host else own.host
        here = f"http://{host}:{port}"
        shown = f"{here}/" if own.address is None else f"{own.address} at {here}"
        # A team's proxy stands before it; h11 bounds the head of a request.
        config = uvicorn.Config(
            app, http="h11", ws="none", lifespan="off", log_config=None, access_log=False, proxy_headers=False,
            server_header=False, limit_concurrency=_MOST_AT_ONCE, h11_max_incomplete_event_size=_MOST_HEAD_BYTES,
        )  # fmt: skip
        asyncio.run(Server(config).until_signalled(listener, partial(ready, shown)))
