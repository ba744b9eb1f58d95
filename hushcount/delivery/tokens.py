"""Client tokens: what a client shows to a collector or an evaluator in one window (docs/adr/0051).

A token is derived from a secret of the queue, so no two windows and no two collectors see equal tokens of one client,
and nobody without the secret can link them. The secret is drawn when it is first needed, is never sent, and is deleted
with the queue.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import Literal

from hushcount.campaigns.campaign import Campaign
from hushcount.delivery.queue import Queue
from hushcount.newest import Untrusted

Role = Literal["collector", "evaluator"]
"""Who gets the token. An evaluator that knew a token for the collector could use up the client's cap there."""
EVALUATOR_NAME = "evaluator"
"""The name of every evaluator in the derivation of its tokens."""
_PURPOSE = b"window token"
_KEY = "token_key"
_SECRET_BYTES = _TOKEN_BYTES = 32


def derived_token(secret: bytes, role: Role, campaign: str, name: str, window: int) -> str:
    """Return a keyed BLAKE2b, in base64url without padding, of each text with its length, and of the window.

    Args:
        secret: 32 random bytes.
        name: the collector's name in the signed campaign file, or EVALUATOR_NAME; never a part of an address.
        window: when the window of the first attempt began, in seconds since 1970.
    """
    texts = b"".join(_sized(text.encode()) for text in (role, campaign, name))
    message = texts + window.to_bytes(8, "big", signed=True)
    derived = hashlib.blake2b(message, key=secret, digest_size=_TOKEN_BYTES, person=_PURPOSE).digest()
    return base64.urlsafe_b64encode(derived).rstrip(b"=").decode()


def token_of(queue: Queue, role: Role, name: str, window: int) -> str:
    """Return the token of the queue's client; HushcountError: the secret cannot be read or written.

    Randomness: the first call draws the secret from the operating system's cryptographic generator.
    """
    secret = queue.noted_once(_KEY, lambda: secrets.token_hex(_SECRET_BYTES))
    return derived_token(bytes.fromhex(secret), role, queue.campaign, name, window)


def collector_name(campaign: Campaign, given: str | None) -> str:
    """Return the name of the collector at a site: the given one, or that of the campaign's only collector.

    Raises:
        Untrusted: the campaign has several collectors and no name is given, or it lacks the given one.
    """
    named = campaign.collectors
    if given is None and len(named) == 1:
        return named[0]
    if given not in named:
        said = "missing" if given is None else repr(given)
        raise Untrusted(
            f"name of the site is {said}, must be one of the collectors of campaign {campaign.id}, "
            f"{', '.join(named)}: give Site(address, name=...)"
        )
    return given


def _sized(octets: bytes) -> bytes:
    return len(octets).to_bytes(2, "big") + octets
