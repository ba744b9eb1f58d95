"""The signature of what is posted: Standard Webhooks 1.0, symmetric (v1: HMAC-SHA256).

Reference: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass, field

from hushcount.errors import UsageError
from pipelines.handover.evaluator_address import read_secret_text

PREFIX = "whsec_"
_LEAST_BYTES, _MOST_BYTES = 24, 64


@dataclass(frozen=True)
class Secret:
    """A key that sender and receiver share; it is printed nowhere."""

    key: bytes = field(repr=False)

    def __reduce__(self) -> tuple[type, ...]:
        raise TypeError("the secret of a webhook cannot be pickled or copied")

    def headers(self, id: str, seconds: int, body: bytes) -> dict[str, str]:
        """Return the headers that say which message was sent when, and prove it.

        Args:
            id: of the message, the same at every attempt.
            seconds: moment of the attempt, in whole seconds since 1970.
        """
        signed = b".".join((id.encode(), str(seconds).encode(), body))
        proof = base64.b64encode(hmac.digest(self.key, signed, hashlib.sha256)).decode()
        return {"webhook-id": id, "webhook-timestamp": str(seconds), "webhook-signature": f"v1,{proof}"}


def read_secret(reference: str) -> Secret:
    """Return the secret in a private file, env:NAME or gcp-secret://NAME; UsageError, without it, if it is none."""
    text = read_secret_text(reference, "webhook secret")
    try:
        key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.startswith(PREFIX) or not _LEAST_BYTES <= len(key) <= _MOST_BYTES:
        raise UsageError(
            f"secret {reference} holds no webhook secret: it must be {PREFIX} and {_LEAST_BYTES} to {_MOST_BYTES} "
            "random bytes in base64"
        )
    return Secret(key)
