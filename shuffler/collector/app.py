"""The collector's answers: plain ASGI, because a framework almost doubles the CPU of a post (docs/adr/0027).

The application reads neither the sender's address nor any header that is not named here or in `service/exchange.py`.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache, partial
from typing import Any

from hushcount.collection.windows import window_start
from service.application import application_of
from service.epochs import accepted, current, served_campaign
from service.exchange import (
    PREFIX,
    App,
    Receive,
    Scope,
    Send,
    answer,
    body_length,
    header,
    named_fingerprint,
    not_found,
    read_body,
    require_method,
    required_fingerprint,
)
from service.refusals import (
    CAMPAIGN_UNREADABLE,
    EPOCH_NOT_BEGUN,
    NOT_FOUND,
    QUEUE_FULL,
    STOPPING,
    STORAGE_FAILING,
    Headers,
    Refused,
    try_again,
)
from service.server import Kept
from service.server import serve as serve_service
from shuffler.collector.campaigns import CollectedCampaign, Document, Target
from shuffler.collector.refusals import (
    CLOCK_AHEAD,
    DISK_FULL,
    MISSING_WINDOW,
    UNKNOWN_STREAM,
    WINDOW_NOT_BEGUN,
    WINDOW_OVER,
    WRONG_LENGTH,
)
from shuffler.collector.service import Collector, CollectorSetup

_LONGEST_CACHED = 300
_LONGEST_RETRY = 86_400
_WINDOW = re.compile(r"(?:^|&)window=([^&]*)")
_UNTIL = re.compile(r"(?:^|&)until=([^&]*)")
_TIME = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_COMMIT_SECONDS = 5.0
"""Reports that may be taken until a moment are refused so long before it, because a commit takes its time."""


def serve(setup: CollectorSetup) -> None:
    """Collect until SIGTERM or SIGINT; every acknowledged report is on the disk or in the store when this returns.

    Raises:
        UsageError: the address, the journal directory or the campaigns cannot be used.
        HushcountError: another collector runs on the journal directory, or its disk fails.
    """
    serve_service(
        partial(Collector, setup), application, setup.settings, Kept("collector", "journal directory", setup.journal)
    )


def application(collector: Collector) -> App:
    """Return the ASGI application of a collector that was started."""

    async def handle(scope: Scope, receive: Receive, send: Send, shared: Headers, place: list[Any]) -> None:
        campaign, _, rest = scope["path"][len(PREFIX) :].partition("/")
        if rest in ("reports", "discovery"):
            await _take(collector, scope, receive, campaign, rest, place)
            await answer(send, 202, shared, b"")
        else:
            await _serve(collector, scope, send, campaign, rest, shared)

    def count(place: list[Any], reason: str) -> None:
        if place[0]:
            collector.refusals[place[0], place[1], reason] += 1

    # A place is the campaign and epoch of a request, as far as known; a refusal is counted for this campaign and epoch.
    return application_of(collector, lambda: ["", 0], handle, count)


async def _take(
    collector: Collector, scope: Scope, receive: Receive, campaign: str, stream: str, place: list[Any]
) -> None:
    """Check a request, read its body, and return when its reports are durable; else raise Refused."""
    require_method(scope, "POST")
    collected = served_campaign(collector.campaigns, campaign)
    place[0] = campaign
    _require_clock(collector)
    now = collector.setup.clock.seconds()
    target = _target(collected, required_fingerprint(scope, "reports"), stream, now, place)
    _require_window(scope, now)
    client = _client(collector, scope, target, now)
    length = body_length(scope, "reports", collector.setup.settings.most_body_bytes)
    if length is not None and (length % target.sealed_bytes or not length):
        raise _wrong_length(target)
    _require_capacity(collector, 1 if length is None else length // target.sealed_bytes)
    body = await read_body(receive, collector.setup.settings.most_body_bytes, collector.incoming)
    if len(body) % target.sealed_bytes or not body:
        raise _wrong_length(target)
    reports = len(body) // target.sealed_bytes
    # The capacity is checked again, because other requests may have filled the queue while the body was read.
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
        raise try_again(STORAGE_FAILING)


def _client(collector: Collector, scope: Scope, target: Target, now: float) -> bytes | None:
    authenticator = collector.setup.authenticator
    return authenticator.client(header(scope, authenticator.header), target.passes, now)


def _target(collected: CollectedCampaign, fingerprint: str, stream: str, now: float, place: list[Any]) -> Target:
    # Only published epochs get a count of refusals, because the counts are in memory, and clients may invent
    # fingerprints.
    place[1] = collected.numbers.get(fingerprint, 0)
    epoch = accepted(collected, fingerprint, now)
    for name, target in epoch.targets.items():
        if name == stream:
            return target
    raise Refused(UNKNOWN_STREAM, f"This campaign collects: {', '.join(epoch.targets)}.")


def _require_window(scope: Scope, now: float) -> None:
    """Raise Refused unless the query names a window that has begun, and no end that is over.

    The client keeps its cap by these refusals (docs/adr/0051). The window is written nowhere: the shuffler counts a
    report in the window in which it arrives, and a retry in a later window may name an earlier one.
    """
    query = scope["query_string"].decode("latin-1")
    window, end = _WINDOW.search(query), _UNTIL.search(query)
    begins = None if window is None else _moment(window[1])
    until = math.inf if end is None else _moment(end[1])
    if begins is None or until is None:
        raise Refused(
            MISSING_WINDOW,
            "Add &window=TIME, when the window of the client token began, in UTC, as in 20261121T000000Z; and "
            "&until=TIME, if the reports may be taken only until then.",
        )
    if now > until - _COMMIT_SECONDS:
        raise Refused(WINDOW_OVER, "Send the same bytes under the same token, until a later time or without one.")
    if begins > now:
        seconds = min(math.ceil(begins - now), _LONGEST_RETRY)
        raise Refused(
            WINDOW_NOT_BEGUN,
            "Send the same bytes under the same token once the window begins by the Date of answers.",
            ((b"retry-after", b"%d" % seconds),),
        )


@lru_cache(maxsize=64)
def _moment(name: str) -> float | None:
    """Return a time of the query in seconds since 1970; None if it is not of the form 20261121T000000Z."""
    try:
        return window_start(name).timestamp() if _TIME.fullmatch(name) else None
    except ValueError:
        return None


def _require_clock(collector: Collector) -> None:
    if collector.writer.clock_ahead is not None:
        raise try_again(CLOCK_AHEAD)


def _require_capacity(collector: Collector, reports: int) -> None:
    if collector.stopping:
        raise try_again(STOPPING)
    if not collector.room:
        raise try_again(DISK_FULL)
    if not collector.writer.has_room(reports):
        raise try_again(QUEUE_FULL)


def _wrong_length(target: Target) -> Refused:
    return Refused(
        WRONG_LENGTH,
        f"Send one sealed report of {target.sealed_bytes} bytes, or several one after another.",
        report_bytes=target.sealed_bytes,
    )


async def _serve(collector: Collector, scope: Scope, send: Send, campaign: str, rest: str, shared: Headers) -> None:
    """Answer with a public file of a campaign."""
    if rest not in ("", "dictionary", "log"):
        raise not_found()
    require_method(scope, "GET", "HEAD")
    collected = served_campaign(collector.campaigns, campaign)
    document, seconds = _document(collected, rest, named_fingerprint(scope), collector.setup.clock.seconds())
    caching = ((b"cache-control", b"public, max-age=%d" % min(_LONGEST_CACHED, max(0.0, seconds))),)
    if _matches(document, header(scope, b"if-none-match")):
        await answer(send, 304, (*document.headers[1:], *caching, *shared), None)
        return
    await answer(send, 200, (*document.headers, *caching, *shared), document.data)


def _document(collected: CollectedCampaign, rest: str, fingerprint: str | None, now: float) -> tuple[Document, float]:
    """Return the campaign's file with the name `rest`, and for how many seconds this file is current."""
    epoch = current(collected, now)
    left = 0.0 if epoch is None else epoch.ends - now
    if rest == "log":
        if collected.log is None:
            raise try_again(CAMPAIGN_UNREADABLE)
        # The log is not cached, because clients must see a new epoch in the log at once.
        return collected.log, 0.0
    if fingerprint is not None and rest == "dictionary":
        epoch, left = accepted(collected, fingerprint, now), _LONGEST_CACHED
    if epoch is None:
        raise Refused(EPOCH_NOT_BEGUN, "No epoch is current: wait until one begins.", current_epoch=None)
    document = epoch.dictionary if rest else epoch.campaign_file
    if document is None:
        raise Refused(NOT_FOUND, "This campaign has no dictionary: any string is an item.")
    return document, left


def _matches(document: Document, condition: bytes | None) -> bool:
    if condition is None:
        return False
    tags = [tag.strip().removeprefix(b"W/") for tag in condition.split(b",")]
    return b"*" in tags or document.etag in tags
