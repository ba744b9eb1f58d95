"""Reads requests and writes answers of an ASGI application, without a framework, to save the CPU that a framework uses.

An application reads neither the sender's address nor any header that is not named here (docs/adr/0027).

A body in one piece goes directly to the application. Only bodies in several pieces wait in memory until they are
complete, within the time limit of a request.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from service.cors import PREFLIGHT, may_read
from service.refusals import (
    MEDIA_TYPE,
    MISSING_FINGERPRINT,
    NOT_FOUND,
    QUEUE_FULL,
    TOO_LONG,
    WRONG_METHOD,
    WRONG_TYPE,
    Headers,
    Refused,
    try_again,
)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PREFIX = "/v1/campaigns/"
BYTES = b"application/octet-stream"
NOT_CACHED: Headers = ((b"cache-control", b"no-store"),)
JSON: Headers = ((b"content-type", b"application/json"), *NOT_CACHED)
METRICS: Headers = ((b"content-type", CONTENT_TYPE_PLAIN_0_0_4.encode()), *NOT_CACHED)
_FINGERPRINT = re.compile(r"(?:^|&)fingerprint=([0-9a-f]{64})(?:&|$)")
_LENGTH = re.compile(rb"[0-9]{1,18}")


class ClientGone(Exception):
    """The client disconnected before its request was complete."""


@dataclass
class IncomingBytes:
    """The bytes of incomplete bodies in memory (`present`), and their limit (`most`)."""

    most: int
    present: int = 0


async def read_body(receive: Receive, most: int, incoming: IncomingBytes) -> bytes:
    """Return a request's body; raise Refused as soon as the body, or the total of incomplete bodies, is too long."""
    parts: list[bytes] = []
    length, counted, more = 0, 0, True
    try:
        while more:
            if parts and incoming.present > incoming.most:
                raise try_again(QUEUE_FULL)
            message = await receive()
            if message["type"] != "http.request":
                raise ClientGone
            parts.append(message["body"])
            length += len(message["body"])
            if length > most:
                raise _too_long(most)
            more = message.get("more_body", False)
            if more or counted:
                incoming.present += length - counted
                counted = length
        return b"".join(parts)
    finally:
        incoming.present -= counted


def body_length(scope: Scope, what: str, most: int) -> int | None:
    """Check a binary body's headers before it is read; return Content-Length, None without one, 0 if malformed.

    `what` is the name of the content in messages.
    """
    media_type = length = None
    for name, value in scope["headers"]:
        if name == b"content-type":
            media_type = value
        elif name == b"content-length":
            length = value
        elif name == b"content-encoding" and value.lower() != b"identity":
            raise Refused(WRONG_TYPE, f"Send the {what} without Content-Encoding.")
    if media_type != BYTES and (media_type or b"").partition(b";")[0].strip().lower() != BYTES:
        raise Refused(WRONG_TYPE, f"Send the {what} as {BYTES.decode()}.")
    if length is None:
        return None
    number = int(length) if _LENGTH.fullmatch(length) else 0
    if number > most:
        raise _too_long(most)
    return number


def _too_long(most: int) -> Refused:
    """Return the refusal of a body that is too long."""
    return Refused(TOO_LONG, f"Send at most {most} bytes in one request.", most_bytes=most)


def named_fingerprint(scope: Scope) -> str | None:
    """Return the fingerprint of a campaign file in the query, if there is one."""
    match = _FINGERPRINT.search(scope["query_string"].decode("latin-1"))
    return None if match is None else match[1]


def required_fingerprint(scope: Scope, made: str) -> str:
    """Return the fingerprint in the query, or raise Refused; `made` names, in the message, what clients send."""
    fingerprint = named_fingerprint(scope)
    if fingerprint is None:
        raise Refused(
            MISSING_FINGERPRINT,
            f"Add ?fingerprint=HEX, the 64 hexadecimal digits of the fingerprint of the campaign file that the {made} "
            "were made with.",
        )
    return fingerprint


def not_found() -> Refused:
    """Return the refusal of an unknown address."""
    return Refused(NOT_FOUND, "The addresses begin with /v1/campaigns/ID.")


def require_method(scope: Scope, *methods: str) -> None:
    """Raise Refused for a method that is not in `methods`."""
    if scope["method"] not in methods:
        allowed = ", ".join(methods)
        raise Refused(WRONG_METHOD, f"Use {allowed}.", ((b"allow", allowed.encode()),))


def header(scope: Scope, name: bytes | None) -> bytes | None:
    """Return the value of a request's header; of several headers with this name, the first; None without one."""
    return next((value for key, value in scope["headers"] if key == name), None)


async def answer(send: Send, status: int, headers: Headers, body: bytes | None) -> None:
    """Send an answer; if `body` is None, the answer has neither a body nor a length."""
    fields = list(headers) if body is None else [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body or b""})


async def answer_refused(send: Send, refused: Refused, shared: Headers) -> None:
    """Answer with a refusal's problem details."""
    headers = ((b"content-type", MEDIA_TYPE), *NOT_CACHED, *refused.headers, *shared)
    await answer(send, refused.reason.status, headers, refused.body)


async def answered_preflight(scope: Scope, send: Send, shared: Headers) -> bool:
    """Answer a request if it is a browser's CORS preflight, and return whether it is."""
    asked = scope["method"] == "OPTIONS" and may_read(shared)
    if asked:
        await answer(send, 204, (*PREFLIGHT, *shared), None)
    return asked
