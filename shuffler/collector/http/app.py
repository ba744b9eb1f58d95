"""The collector's answers: a plain ASGI application, because a framework costs as much as the rest (docs/adr/0027).

It reads neither the sender's address nor any header that is not named here.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from shuffler.collector.admission.limits import ClientGone, Receive, read_body, too_long
from shuffler.collector.admission.refusals import MEDIA_TYPE, REFUSED_OUTSIDE, Headers, Refused, try_again
from shuffler.collector.campaigns import CollectedCampaign, CollectedEpoch, Document, Target
from shuffler.collector.http.cors import PREFLIGHT, may_read, shared_with
from shuffler.collector.http.openapi import openapi
from shuffler.collector.service import Collector

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_PREFIX = "/v1/campaigns/"
_REPORTS = b"application/octet-stream"
_JSON = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))
_FINGERPRINT = re.compile(r"(?:^|&)fingerprint=([0-9a-f]{64})(?:&|$)")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_LONGEST_CACHED = 300


def application(collector: Collector) -> App:
    """Return the ASGI application of a collector that was started."""
    origins = frozenset(collector.setup.settings.origins)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        shared = shared_with(origins, _header(scope["headers"], b"origin")) if origins else ()
        # Campaign and epoch, as far as they are known: a refusal is counted there.
        place: list[Any] = ["", 0]
        try:
            if path.startswith(_PREFIX):
                campaign, _, rest = path[len(_PREFIX) :].partition("/")
                if scope["method"] == "OPTIONS" and may_read(shared):
                    await _answer(send, 204, (*PREFLIGHT, *shared), None)
                elif rest in ("reports", "discovery"):
                    await _take(collector, scope, receive, campaign, rest, place)
                    await _answer(send, 202, shared, b"")
                else:
                    await _serve(collector, scope, send, campaign, rest, shared)
            else:
                await _tell(collector, scope, send, path)
        except Refused as refused:
            collector.metrics.refused.labels(refused.reason.name).inc()
            if place[0]:
                collector.refusals[place[0], place[1], refused.reason.name] += 1
            headers = ((b"content-type", MEDIA_TYPE), (b"cache-control", b"no-store"), *refused.headers, *shared)
            await _answer(send, refused.reason.status, headers, refused.body)
        except ClientGone:
            outside = scope.get("extensions", {}).get(REFUSED_OUTSIDE)
            if outside is None:
                collector.metrics.incomplete.inc()
            elif place[0]:
                collector.refusals[place[0], place[1], outside["reason"]] += 1

    return app


async def _take(
    collector: Collector, scope: Scope, receive: Receive, campaign: str, stream: str, place: list[Any]
) -> None:
    """Check a request, read its body, and return when its reports are durable; else raise Refused."""
    _require(scope, "POST")
    collected = _campaign(collector, campaign)
    place[0] = campaign
    _require_clock(collector)
    now = time.time()
    target = _target(collected, scope["query_string"].decode("latin-1"), stream, now, place)
    client = collector.setup.authenticator.client(_header(scope["headers"], collector.setup.authenticator.header))
    length = _check_headers(collector, scope["headers"], target)
    _require_capacity(collector, 1 if length is None else length // target.sealed_bytes)
    body = await read_body(receive, collector.setup.settings.most_body_bytes, collector.incoming)
    if len(body) % target.sealed_bytes or not body:
        raise _wrong_length(target)
    reports = len(body) // target.sealed_bytes
    # Other requests may have come meanwhile.
    _require_capacity(collector, reports)
    window = collector.writer.window
    collector.client_limit.reserve(client, reports, window)
    kept = False
    try:
        kept = await collector.writer.keep(target, body, reports, client)
    finally:
        if not kept:
            collector.client_limit.give_back(client, reports, window)
    if not kept:
        _require_clock(collector)
        raise try_again("storage_failing")


def _campaign(collector: Collector, campaign: str) -> CollectedCampaign:
    collected = collector.campaigns.get(campaign)
    if collected is None:
        raise Refused("unknown_campaign", "Check the campaign's id in the path.")
    if not collected.epochs and collected.fault is not None:
        raise try_again("campaign_unreadable")
    return collected


def _target(collected: CollectedCampaign, query: str, stream: str, now: float, place: list[Any]) -> Target:
    match = _FINGERPRINT.search(query)
    if match is None:
        raise Refused(
            "missing_fingerprint",
            "Add ?fingerprint=HEX, the 64 hexadecimal digits of the fingerprint of the campaign file that the reports "
            "were made with.",
        )
    # Clients may invent fingerprints, and these counts are in memory: only published epochs get one.
    place[1] = collected.numbers.get(match[1], 0)
    epoch = _accepted(collected, match[1], now)
    for name, target in epoch.targets.items():
        if name == stream:
            return target
    raise Refused("unknown_stream", f"This campaign collects: {', '.join(epoch.targets)}.")


def _accepted(collected: CollectedCampaign, fingerprint: str, now: float) -> CollectedEpoch:
    """Return the epoch of a campaign file whose reports are accepted now; else raise Refused."""
    epoch = collected.epochs.get(fingerprint)
    if epoch is not None and epoch.accepts(now):
        return epoch
    current = collected.current(now)
    if fingerprint not in collected.numbers:
        reason = "unknown_fingerprint"
    else:
        reason = "epoch_closed" if epoch is None or epoch.begins <= now else "epoch_not_begun"
    raise Refused(
        reason,
        "Get the current campaign file, make a new report with it, and send that with its fingerprint."
        if current is not None
        else "No epoch is current: wait until one begins.",
        current_epoch=None if current is None else current.epoch,
    )


def _check_headers(collector: Collector, headers: list[tuple[bytes, bytes]], target: Target) -> int | None:
    """Check the headers before the body is read; return its length if they tell it."""
    media_type = length = None
    for name, value in headers:
        if name == b"content-type":
            media_type = value
        elif name == b"content-length":
            length = value
        elif name == b"content-encoding" and value.lower() != b"identity":
            raise Refused("wrong_type", "Send the reports without Content-Encoding.")
    if media_type != _REPORTS and (media_type or b"").partition(b";")[0].strip().lower() != _REPORTS:
        raise Refused("wrong_type", f"Send the reports as {_REPORTS.decode()}.")
    if length is None:
        return None
    number = int(length) if _LENGTH.fullmatch(length) else 0
    most = collector.setup.settings.most_body_bytes
    if number > most:
        raise too_long(most)
    if number % target.sealed_bytes or not number:
        raise _wrong_length(target)
    return number


def _require_clock(collector: Collector) -> None:
    if collector.writer.clock_ahead is not None:
        raise try_again("clock_ahead")


def _require_capacity(collector: Collector, reports: int) -> None:
    if collector.stopping:
        raise try_again("stopping")
    if not collector.room:
        raise try_again("disk_full")
    if not collector.writer.has_room(reports):
        raise try_again("queue_full")


def _wrong_length(target: Target) -> Refused:
    return Refused(
        "wrong_length",
        f"Send one sealed report of {target.sealed_bytes} bytes, or several one after another.",
        report_bytes=target.sealed_bytes,
    )


async def _serve(collector: Collector, scope: Scope, send: Send, campaign: str, rest: str, shared: Headers) -> None:
    """Answer with a public file of a campaign."""
    if rest not in ("", "dictionary", "log"):
        raise _not_found()
    _require(scope, "GET", "HEAD")
    collected = _campaign(collector, campaign)
    document, seconds = _document(collected, rest, scope["query_string"].decode("latin-1"), time.time())
    caching = ((b"cache-control", b"public, max-age=%d" % min(_LONGEST_CACHED, max(0.0, seconds))),)
    if _matches(document, _header(scope["headers"], b"if-none-match")):
        await _answer(send, 304, (*document.headers[1:], *caching, *shared), None)
        return
    await _answer(send, 200, (*document.headers, *caching, *shared), document.data)


def _document(collected: CollectedCampaign, rest: str, query: str, now: float) -> tuple[Document, float]:
    """Return the campaign's file of that name, and for how many seconds it is the present one."""
    epoch = collected.current(now)
    left = 0.0 if epoch is None else epoch.ends - now
    if rest == "log":
        if collected.log is None:
            raise try_again("campaign_unreadable")
        # A new epoch is in the log at once.
        return collected.log, 0.0
    match = _FINGERPRINT.search(query)
    if match is not None and rest == "dictionary":
        epoch, left = _accepted(collected, match[1], now), _LONGEST_CACHED
    if epoch is None:
        raise Refused("epoch_not_begun", "No epoch is current: wait until one begins.", current_epoch=None)
    document = epoch.dictionary if rest else epoch.campaign_file
    if document is None:
        raise Refused("not_found", "This campaign has no dictionary: any string is an item.")
    return document, left


def _matches(document: Document, condition: bytes | None) -> bool:
    if condition is None:
        return False
    tags = [tag.strip().removeprefix(b"W/") for tag in condition.split(b",")]
    return b"*" in tags or document.etag in tags


async def _tell(collector: Collector, scope: Scope, send: Send, path: str) -> None:
    """Answer about the collector itself."""
    if path not in ("/healthz", "/readyz", "/metrics", "/openapi.json"):
        raise _not_found()
    _require(scope, "GET", "HEAD")
    if path == "/healthz":
        await _answer(send, 200, _JSON, b'{"alive": true}')
    elif path == "/readyz":
        faults = collector.faults()
        body: Mapping[str, Any] = {"ready": not faults, "faults": faults}
        await _answer(send, 503 if faults else 200, _JSON, json.dumps(body).encode())
    elif path == "/metrics":
        headers = ((b"content-type", CONTENT_TYPE_PLAIN_0_0_4.encode()), (b"cache-control", b"no-store"))
        await _answer(send, 200, headers, generate_latest(collector.metrics.registry))
    else:
        await _answer(send, 200, _JSON, json.dumps(openapi(collector.setup.authenticator.way)).encode())


def _not_found() -> Refused:
    return Refused("not_found", "See /openapi.json for all addresses.")


def _require(scope: Scope, *methods: str) -> None:
    if scope["method"] not in methods:
        allowed = ", ".join(methods)
        raise Refused("wrong_method", f"Use {allowed}.", ((b"allow", allowed.encode()),))


def _header(headers: list[tuple[bytes, bytes]], name: bytes | None) -> bytes | None:
    """Return the value of a request's header, the first of several."""
    return next((value for key, value in headers if key == name), None)


async def _answer(send: Send, status: int, headers: Headers, body: bytes | None) -> None:
    fields = list(headers) if body is None else [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body or b""})
