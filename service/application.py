"""What the applications of all services have in common: they tell about themselves, and count and answer refusals."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from prometheus_client.exposition import generate_latest

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
from service.settings import ServicePart

PATHS = ("/healthz", "/readyz", "/metrics")
Place = TypeVar("Place")
"""Where a refusal of a request counts, as far as it is known: a service's own type, which its handler fills."""


class Setup(Protocol):
    """What a service works with."""

    @property
    def settings(self) -> ServicePart: ...

    @property
    def metrics_reader(self) -> BearerToken | None: ...


class Told(Protocol):
    """A service that tells about itself."""

    @property
    def setup(self) -> Setup: ...

    @property
    def metrics(self) -> ServiceMetrics: ...

    def faults(self) -> list[str]:
        """Return why it is not ready, in sentences."""


def application_of(
    service: Told,
    new_place: Callable[[], Place],
    handle: Callable[[Scope, Receive, Send, Headers, Place], Awaitable[None]],
    count: Callable[[Place, str], None],
) -> App:
    """Return the ASGI application of a service that was started.

    Args:
        handle: answers a request below /v1/campaigns/, or raises Refused; the headers are for pages of other origins.
        count: counts a refusal where it belongs, by its reason's name.
    """
    origins = frozenset(service.setup.settings.origins)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
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


async def _tell(service: Told, scope: Scope, send: Send) -> None:
    """Answer a request outside /v1.

    Who may read the metrics shows a token; without one nobody may. An address or a Host tells nothing: any page that a
    browser of this machine shows can have them.
    """
    path, reader = scope["path"], service.setup.metrics_reader
    if path not in PATHS or (path == "/metrics" and reader is None):
        raise not_found()
    require_method(scope, "GET", "HEAD")
    if path == "/metrics" and reader is not None:
        reader.client(header(scope, reader.header))
        await answer(send, 200, METRICS, generate_latest(service.metrics.registry))
    elif path == "/readyz":
        faults = service.faults()
        await answer(send, 503 if faults else 200, JSON, json.dumps({"ready": not faults, "faults": faults}).encode())
    else:
        await answer(send, 200, JSON, b'{"alive": true}')
