"""Client tokens: what a client shows to a collector or an evaluator in one window (docs/adr/0051).

A token is derived from a secret of the queue, so no two windows and no two collectors see equal tokens of one client,
and nobody without the secret can link them. The secret is drawn when it is first needed, is never sent, and is deleted
with the queue.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import replace

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import DAY_SECONDS
from hushcount.delivery.queue import Queue
from hushcount.formats.reading import parse_object
from hushcount.newest import Untrusted
from hushcount.passes.slots import Slot
from hushcount.passes.tokens import Token

_PURPOSE = b"window token"
_KEY, _PASSES = "token_key", "passes"
_SECRET_BYTES = _TOKEN_BYTES = 32


def derived_token(secret: bytes, slot: Slot) -> str:
    """Return a keyed BLAKE2b of a slot, in base64url without padding.

    Args:
        secret: 32 random bytes.
        slot: begins when the window of the first attempt began, or the period of its pass; its name is never a part of
            an address.
    """
    return base64.urlsafe_b64encode(nonce_of(secret, slot)).rstrip(b"=").decode()


def nonce_of(secret: bytes, slot: Slot) -> bytes:
    """Return the bytes of a derived token, which are also the nonce of its pass."""
    return hashlib.blake2b(slot.octets, key=secret, digest_size=_TOKEN_BYTES, person=_PURPOSE).digest()


def shown(queue: Queue, slot: Slot, period: int) -> Mapping[str, str] | None:
    """Return the header by which a client shows its token; None: there is no pass for it.

    Args:
        slot: begins when the window of the first attempt began.
        period: seconds in which a pass is good; 0: the campaign asks for no passes.
    """
    if not period:
        return {"Client-Token": derived_token(secret_of(queue), slot)}
    header = kept_passes(queue).get(replace(slot, begins=slot.begins - slot.begins % period))
    return None if header is None else {"Authorization": header}


def kept_passes(queue: Queue) -> Mapping[Slot, str]:
    """Return the headers of the kept passes by slot."""
    return _read(queue, queue.fact(_PASSES))


def keep_passes(queue: Queue, passes: Mapping[Slot, Token], day: int) -> None:
    """Keep passes of a day that begins at `day`, in seconds since 1970, and delete those of days before yesterday."""

    def kept(fact: str | None) -> str:
        headers = {**_read(queue, fact), **{slot: one.header for slot, one in passes.items()}}
        recent = {slot: header for slot, header in headers.items() if slot.begins >= day - 2 * DAY_SECONDS}
        return json.dumps({"passes": [[slot.role, slot.name, slot.begins, header] for slot, header in recent.items()]})

    queue.change(_PASSES, kept)


def _read(queue: Queue, fact: str | None) -> dict[Slot, str]:
    rows = [] if fact is None else parse_object(fact.encode(), "what is kept of passes")["passes"]
    return {Slot(queue.campaign, role, name, begins): header for role, name, begins, header in rows}


def secret_of(queue: Queue) -> bytes:
    """Return the secret of the queue's client; HushcountError: it cannot be read or written.

    Randomness: the first call draws the secret from the operating system's cryptographic generator.
    """
    return bytes.fromhex(queue.noted_once(_KEY, lambda: secrets.token_hex(_SECRET_BYTES)))


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
