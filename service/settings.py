"""The settings that the tables of all HTTP services in a deployment file share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from hushcount.collection.manifests import CollectorName
from hushcount.formats.models import Part, text_of
from hushcount.senders import Authentication

Origin = Annotated[
    str,
    text_of(r"^(\*|https?://[a-z0-9.:\[\]-]{1,255})$", "must be '*', or scheme, host and port: https://example.com"),
]
"""The origin of a web page as browsers write it: in lower case, without a path."""


class ListeningPart(Part):
    """Where a service listens, and the limits of connections."""

    name: CollectorName = Field(description="name of the service, unique among all that write to one store")
    host: str = Field(default="127.0.0.1", min_length=1, description="address to listen on")
    port: int = Field(default=8080, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    metrics_token: str | None = Field(
        default=None,
        description="file with the digest of the bearer token for /metrics, in the format of tokens; unset: there is "
        "no /metrics",
    )
    most_incoming_bytes: int = Field(
        default=64 << 20,
        ge=1 << 10,
        le=1 << 40,
        description="most bytes of incomplete bodies in memory",
    )
    body_seconds: float = Field(default=10.0, gt=0.0, le=600.0, description="how long a request may take to arrive")
    origins: tuple[Origin, ...] = Field(
        default=(), description="origins of the web pages that may send, such as https://example.com; '*': all pages"
    )
    most_connections: int = Field(default=8192, ge=1, le=1 << 20, description="most open connections")

    @property
    def longest_body(self) -> int:
        """Bytes of the longest body that a request may have."""
        raise NotImplementedError


class ServicePart(ListeningPart):
    """A service that clients send to: who may send."""

    authentication: Authentication = Field(
        default="client-token", description="what a request must show; client-token and privacy-pass tell clients apart"
    )
    tokens: str | None = Field(default=None, description="file of the apps' token digests, for bearer")

    @model_validator(mode="after")
    def _check_service(self) -> ServicePart:
        if (self.authentication == "bearer") != (self.tokens is not None):
            raise ValueError("tokens: must be set with authentication bearer, and only then")
        return self
