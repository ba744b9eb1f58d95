"""The common part of all services' applications: health, readiness, metrics; counting and answering refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from email.utils import formatdate
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from prometheus_client.exposition import generate_latest

from hushcount.clock import Clock
from service.authentication import BearerToken
from service.cors import shared_with
from service.exchange import (
    JSON,
    METRICS,
    PREFIX,
    App,
    ClientGone,
    Receive,
    Scope,
    Send,
    answer,
    answer_refused,
    answered_preflight,
    header,
    not_found,
    require_method,
)
from service.metrics import ServiceMetrics
from service.refusals import REFUSED_OUTSIDE, Headers, Refused
from service.settings import ListeningPart

_DIRECTORIES = re.compile(r"\S*/")
PATHS = ("/healthz", "/readyz", "/metrics")
Place = TypeVar("Place")
"""A service's type for the campaign, epoch and more for which a refusal is counted. The service's handler fills in what
is known."""


class Setup(Protocol):
    """The settings of a service that its application reads."""

    @property
    def settings(self) -> ListeningPart: ...

    @property
    def metrics_reader(self) -> BearerToken | None: ...

    @property
    def clock(self) -> Clock: ...


class Told(Protocol):
    """A service with metrics and faults to show."""

    @property
    def setup(self) -> Setup: ...

    @property
    def metrics(self) -> ServiceMetrics: ...

    def faults(self) -> list[str]:
        """Return why the service is not ready, in sentences."""


def application_of(
    service: Told,
    new_place: Callable[[], Place],
    handle: Callable[[Scope, Receive, Send, Headers, Place], Awaitable[None]],
    count: Callable[[Place, str], None],
) -> App:
    """Return the ASGI application of a service that was started.

    Each answer has a `Date` of the moment at which it is sent. The server's own may be a second old, and a client
    would count a report in the window before that of its arrival.

    Args:
        handle: answers a request below /v1/campaigns/, or raises Refused; its argument of type Headers has the CORS
            headers for the answer.
        count: counts a refusal for a place, by its reason's name.
    """
    origins, clock = frozenset(service.setup.settings.origins), service.setup.clock

    async def app(scope: Scope, receive: Receive, reply: Send) -> None:
        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"].append((b"date", _date(int(clock.seconds()))))
            await reply(message)

        path: str = scope["path"]
        shared = shared_with(origins, header(scope, b"origin")) if origins and path.startswith(PREFIX) else ()
        place = new_place()
        try:
            if not path.startswith(PREFIX):
                await _tell(service, scope, send)
            elif not await answered_preflight(scope, send, shared):
                await handle(scope, receive, send, shared, place)
        except Refused as refused:
            service.metrics.refused.labels(refused.reason.name).inc()
            count(place, refused.reason.name)
            await answer_refused(send, refused, shared)
        except ClientGone:
            outside = scope.get("extensions", {}).get(REFUSED_OUTSIDE)
            if outside is None:
                service.metrics.incomplete.inc()
            else:
                count(place, outside["reason"])

    return app


@lru_cache(maxsize=1)
def _date(second: int) -> bytes:
    """Return a second since 1970 as the value of `Date`."""
    return formatdate(second, usegmt=True).encode()


async def _tell(service: Told, scope: Scope, send: Send) -> None:
    """Answer a request outside /v1.

    Reading the metrics needs a token; if no token is configured, nobody may read the metrics. A local address or Host
    header is not enough, because any page in a browser on this machine can send requests with them.
    """
    path, reader = scope["path"], service.setup.metrics_reader
    if path not in PATHS or (path == "/metrics" and reader is None):
        raise not_found()
    require_method(scope, "GET", "HEAD")
    if path == "/metrics" and reader is not None:
        reader.require_shown(header(scope, reader.header))
        await answer(send, 200, METRICS, generate_latest(service.metrics.registry))
    elif path == "/readyz":
        faults = [without_directories(fault) for fault in service.faults()]
        await answer(send, 503 if faults else 200, JSON, json.dumps({"ready": not faults, "faults": faults}).encode())
    else:
        await answer(send, 200, JSON, b'{"alive": true}')


def without_directories(fault: str) -> str:
    """Return a fault for whoever reaches the service: of each path only the last name is left; the log has the path."""
    return _DIRECTORIES.sub("", fault)
