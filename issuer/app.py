"""The issuer's answers: a plain ASGI application, as in the collector (docs/adr/0027)."""

from __future__ import annotations

import re
from datetime import date, datetime
from functools import partial

from hushcount.passes.blind_signatures import KEY_BYTES, pieces
from hushcount.passes.slots import TOKEN_TYPE
from hushcount.passes.tokens import REQUEST_BYTES
from issuer.keys_here import CampaignKeys
from issuer.refusals import NO_KEYS, WRONG_REQUESTS
from issuer.service import Issuer, IssuerSetup
from keys.issuing import IssuingKey
from service.application import application_of
from service.exchange import (
    BYTES,
    NOT_CACHED,
    PREFIX,
    App,
    Receive,
    Scope,
    Send,
    answer,
    body_length,
    header,
    not_found,
    read_body,
    require_method,
)
from service.refusals import UNAUTHORISED, UNKNOWN_CAMPAIGN, Headers, Refused
from service.server import Kept
from service.server import serve as serve_service

_KEYS = ((b"content-type", BYTES), (b"cache-control", b"public, max-age=3600"))
_SIGNATURES = ((b"content-type", BYTES), *NOT_CACHED)
_DAY = re.compile(r"(?:^|&)day=([0-9]{8})(?:&|$)")
_COLLECTOR = re.compile(r"(?:^|&)collector=([a-z0-9._-]{1,64})(?:&|$)")
_SHOWN = re.compile(rb"[\x20-\x7e]{1,4096}")


def serve(setup: IssuerSetup) -> None:
    """Issue until SIGTERM or SIGINT.

    Raises:
        UsageError: the address or a directory cannot be used.
        HushcountError: another issuer runs on the directory of counts, or its disk fails.
    """
    kept = Kept("issuer", "directory of counts", setup.issued)
    serve_service(partial(Issuer, setup), application, setup.settings, kept)


def application(issuer: Issuer) -> App:
    """Return the ASGI application of an issuer that was started."""

    async def handle(scope: Scope, receive: Receive, send: Send, shared: Headers, _: None) -> None:
        campaign, _, rest = scope["path"][len(PREFIX) :].partition("/")
        if rest != "passes":
            raise not_found()
        require_method(scope, "GET", "HEAD", "POST")
        keys = issuer.campaigns.find(campaign)
        if keys is None:
            raise Refused(UNKNOWN_CAMPAIGN, "Check the campaign's id in the path.")
        query = scope["query_string"].decode("latin-1")
        day = _day(issuer, keys, query)
        if scope["method"] != "POST":
            await answer(send, 200, (*_KEYS, *shared), b"".join(key.public_key for key in keys.of_day(day)))
            return
        signed = await _signed(issuer, scope, receive, campaign, keys, day, query)
        await answer(send, 200, (*_SIGNATURES, *shared), signed)

    return application_of(issuer, lambda: None, handle, lambda _, __: None)


def _day(issuer: Issuer, keys: CampaignKeys, query: str) -> date:
    match = _DAY.search(query)
    try:
        day = None if match is None else datetime.strptime(match[1], "%Y%m%d").date()
    except ValueError:
        day = None
    if day is None or not issuer.issues(day) or not keys.of_day(day):
        raise Refused(NO_KEYS, "Add ?day=20261128, a day in UTC, today or tomorrow, for which there are keys.")
    return day


async def _signed(
    issuer: Issuer, scope: Scope, receive: Receive, campaign: str, keys: CampaignKeys, day: date, query: str
) -> bytes:
    shown = header(scope, b"authorization")
    if shown is None or not _SHOWN.fullmatch(shown):
        raise Refused(UNAUTHORISED, "Send the header Authorization, as the issuer's operator says.")
    collector = _COLLECTOR.search(query)
    wanted = [] if collector is None else keys.of_client(day, collector[1])
    length = body_length(scope, "token requests", issuer.setup.settings.longest_body)
    body = await read_body(receive, issuer.setup.settings.longest_body, issuer.incoming) if length != 0 else b""
    blinded = _blinded(wanted, body)
    return await issuer.answer(campaign, day, wanted, blinded, shown.decode("latin-1"))


def _blinded(keys: list[IssuingKey], body: bytes) -> list[bytes]:
    """Return the blinded messages of a body of token requests, one for each key; else raise Refused."""
    parts = pieces(body, REQUEST_BYTES)
    whole = bool(keys) and len(body) == len(keys) * REQUEST_BYTES
    if whole and all(_fits(key, part) for key, part in zip(keys, parts, strict=True)):
        return [part[REQUEST_BYTES - KEY_BYTES :] for part in parts]
    raise Refused(
        WRONG_REQUESTS,
        f"Add &collector=NAME, and send {len(keys)} token requests of {REQUEST_BYTES} bytes, one for each slot of that "
        "collector and of the evaluator.",
        passes=len(keys),
    )


def _fits(key: IssuingKey, request: bytes) -> bool:
    """Return whether a token request is for a key: its type, the last byte of the key's id, a message for the key."""
    return request[:3] == TOKEN_TYPE + key.token_key_id[-1:] and key.takes(request[3:])
