"""The [issuer] table of a deployment file."""

from __future__ import annotations

from pydantic import Field, model_validator

from hushcount.campaigns.parts import MOST_PASSES_A_DAY
from hushcount.passes.tokens import REQUEST_BYTES
from service.settings import ListeningPart


class IssuerPart(ListeningPart):
    """One issuer. Paths are relative to the deployment file. Exactly one rule says who may ask."""

    port: int = Field(default=8082, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    keys: str = Field(
        default="passes", min_length=1, description="directory of the private keys that hushcount keys passes makes"
    )
    issued: str = Field(
        default="issued", min_length=1, description="directory on a local disk that counts what each account was given"
    )
    command: tuple[str, ...] = Field(
        default=(),
        description="rule: program and arguments, run in the directory of the deployment file; it reads the header "
        "Authorization from standard input; exit status 0 and the account's name on standard output mean yes, 1 means "
        "no",
    )
    hook: str | None = Field(
        default=None,
        description="rule: https address that gets the header Authorization in a POST; it answers 200 and JSON "
        '{"account": "NAME"}, or 401 or 403',
    )
    secret: str | None = Field(
        default=None,
        description="rule: private file with a secret; the header is Bearer ACCOUNT.HEX, HEX is the HMAC-SHA-256 of "
        "ACCOUNT under the secret",
    )
    rule_seconds: float = Field(default=5.0, gt=0.0, le=60.0, description="how long command or hook may take")
    most_a_day: int = Field(
        default=3, ge=1, le=10**6, description="most installations of one account that get passes of one day"
    )

    @model_validator(mode="after")
    def _check(self) -> IssuerPart:
        if (rules := bool(self.command) + (self.hook is not None) + (self.secret is not None)) != 1:
            raise ValueError(f"command, hook, secret: {rules} of them are given, must be exactly one")
        return self

    @property
    def longest_body(self) -> int:
        return MOST_PASSES_A_DAY * REQUEST_BYTES
