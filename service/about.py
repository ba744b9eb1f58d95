"""What each service tells about itself: that it lives, whether it is ready, its metrics and its interface."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Protocol

from prometheus_client.exposition import generate_latest

from service.authentication import BearerToken
from service.exchange import JSON, METRICS, Scope, Send, answer, header, not_found, require_method
from service.metrics import ServiceMetrics
from service.openapi import Json

PATHS = ("/healthz", "/readyz", "/metrics", "/openapi.json")


class Told(Protocol):
    """A service that tells about itself."""

    @property
    def metrics(self) -> ServiceMetrics: ...

    def faults(self) -> list[str]:
        """Return why it is not ready, in sentences."""


async def tell(
    service: Told, scope: Scope, send: Send, interface: Callable[[], Json], reader: BearerToken | None
) -> None:
    """Answer a request outside /v1.

    Args:
        interface: makes the OpenAPI document.
        reader: who may read the metrics; None: nobody. An address or a Host tells nothing: any page that a browser of
            this machine shows can have them.
    """
    path: str = scope["path"]
    if path not in PATHS or (path == "/metrics" and reader is None):
        raise not_found()
    require_method(scope, "GET", "HEAD")
    if path == "/healthz":
        await answer(send, 200, JSON, b'{"alive": true}')
    elif path == "/readyz":
        faults = service.faults()
        await answer(send, 503 if faults else 200, JSON, json.dumps({"ready": not faults, "faults": faults}).encode())
    elif path == "/metrics" and reader is not None:
        reader.client(header(scope, reader.header))
        await answer(send, 200, METRICS, generate_latest(service.metrics.registry))
    else:
        await answer(send, 200, JSON, json.dumps(interface()).encode())
