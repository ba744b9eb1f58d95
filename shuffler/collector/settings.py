"""The [collector] table of a deployment file."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from hushcount.collection.manifests import CollectorName
from hushcount.formats.models import Part, text_of
from hushcount.senders import Authentication, tells_clients_apart

Origin = Annotated[
    str,
    text_of(r"^(\*|https?://[a-z0-9.:\[\]-]{1,255})$", "must be '*', or scheme, host and port: https://example.com"),
]
"""Where a web page comes from, as browsers write it: in lower case, without a path."""


class CollectorPart(Part):
    """One collector. Paths are relative to the deployment file."""

    name: CollectorName = Field(description="name of this collector, unique among those that write to one store")
    host: str = Field(default="127.0.0.1", min_length=1, description="address to listen on")
    port: int = Field(default=8080, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    journal: str = Field(default="journal", min_length=1, description="directory on a local, durable disk")
    authentication: Authentication = Field(
        default="client-token", description="what a request must show; only client-token lets the cap bind a client"
    )
    tokens: str | None = Field(default=None, description="file of the apps' token digests, for bearer")
    most_body_bytes: int = Field(default=1 << 20, ge=1 << 10, le=1 << 28, description="longest body of a request")
    most_incoming_bytes: int = Field(
        default=64 << 20,
        ge=1 << 10,
        le=1 << 40,
        description="most bytes of incomplete bodies in memory",
    )
    queue_reports: int = Field(default=100_000, ge=1, le=10**9, description="most reports that wait for the journal")
    segment_bytes: int = Field(
        default=64 << 20, ge=1 << 16, le=1 << 30, description="length in bytes at which a journal becomes a segment"
    )
    least_free_bytes: int = Field(
        default=256 << 20,
        ge=0,
        le=1 << 50,
        description="free bytes on the journal's disk below which reports are refused",
    )
    body_seconds: float = Field(default=10.0, gt=0.0, le=600.0, description="how long a request may take to arrive")
    most_reports_a_client: int | None = Field(
        default=None,
        ge=1,
        le=10**9,
        description="most reports of one client token in a window; more get 429; without it there is no limit",
    )
    origins: tuple[Origin, ...] = Field(
        default=(), description="origins of web pages whose client may report, as https://example.com; '*': of all"
    )
    most_connections: int = Field(default=8192, ge=1, le=1 << 20, description="most open connections")

    @model_validator(mode="after")
    def _check(self) -> CollectorPart:
        if (self.authentication == "bearer") != (self.tokens is not None):
            raise ValueError("tokens: must be given with authentication bearer, and only then")
        if self.most_reports_a_client is not None and not tells_clients_apart(self.authentication):
            raise ValueError(
                "most_reports_a_client: needs authentication client-token: only these tokens tell clients apart"
            )
        if self.most_incoming_bytes < self.most_body_bytes:
            raise ValueError(
                f"most_incoming_bytes: is {self.most_incoming_bytes}, must be at least most_body_bytes, "
                f"{self.most_body_bytes}, for the longest body to fit"
            )
        return self
