"""The [evaluator] table of a deployment file."""

from __future__ import annotations

from pydantic import Field, model_validator

from hushcount.discovery.oblivious import ELEMENT_BYTES, MOST_EVALUATIONS
from hushcount.senders import tells_clients_apart
from service.settings import ServicePart

_A_CLIENT = 20


class EvaluatorPart(ServicePart):
    """One evaluator: one process, which uses one core. Paths are relative to the deployment file."""

    port: int = Field(default=8081, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    counts: str = Field(
        default="evaluator", min_length=1, description="directory of the present window's counts, on a local disk"
    )
    keys: str = Field(
        default="evaluator-keys", min_length=1, description="key directory with the evaluator's keys, and no others"
    )
    queue_evaluations: int = Field(
        default=10_000, ge=MOST_EVALUATIONS, le=10**6, description="most evaluations that wait for their answer"
    )
    most_evaluations_a_client: int | None = Field(
        default=None,
        ge=1,
        le=10**6,
        description="most evaluations of one client token for one campaign file in a window, or the campaign's cap if "
        f"that is more; further ones get 429; unset: {_A_CLIENT} with client-token or privacy-pass, else no limit",
    )
    verifier_token: str | None = Field(
        default=None, description="file with the digest of the analyzer's bearer token, in the format of tokens"
    )
    most_evaluations_verifier: int = Field(
        default=100_000,
        ge=1,
        le=10**9,
        description="most evaluations for one campaign file in a window with verifier_token: at least as many as "
        "values may be discovered",
    )

    @model_validator(mode="after")
    def _check(self) -> EvaluatorPart:
        if self.most_evaluations_a_client is not None and not tells_clients_apart(self.authentication):
            raise ValueError(
                "most_evaluations_a_client: needs authentication client-token or privacy-pass, which tell clients apart"
            )
        return self

    @property
    def longest_body(self) -> int:
        return MOST_EVALUATIONS * ELEMENT_BYTES

    @property
    def evaluations_a_client(self) -> int | None:
        """The limit of one client; None: no limit, because clients are not told apart."""
        if self.most_evaluations_a_client is None and tells_clients_apart(self.authentication):
            return _A_CLIENT
        return self.most_evaluations_a_client
