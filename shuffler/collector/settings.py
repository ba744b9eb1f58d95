"""The [collector] table of a deployment file."""

from __future__ import annotations

from pydantic import Field, model_validator

from hushcount.senders import tells_clients_apart
from service.settings import ServicePart


class CollectorPart(ServicePart):
    """One collector. Paths are relative to the deployment file."""

    journal: str = Field(default="journal", min_length=1, description="directory on a local, durable disk")
    most_body_bytes: int = Field(default=1 << 20, ge=1 << 10, le=1 << 28, description="longest body of a request")
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
    most_reports_a_client: int | None = Field(
        default=None,
        ge=1,
        le=10**9,
        description="most reports of one client token in a window; further ones get 429; unset: no limit",
    )

    @model_validator(mode="after")
    def _check(self) -> CollectorPart:
        if self.most_reports_a_client is not None and not tells_clients_apart(self.authentication):
            raise ValueError(
                "most_reports_a_client: needs authentication client-token or privacy-pass, which tell clients apart"
            )
        if self.most_incoming_bytes < self.most_body_bytes:
            raise ValueError(
                f"most_incoming_bytes: is {self.most_incoming_bytes}, must be at least most_body_bytes, "
                f"{self.most_body_bytes}, for the longest body to fit"
            )
        return self

    @property
    def longest_body(self) -> int:
        return self.most_body_bytes
