"""Refusals: the problem details of RFC 9457 for a client, and the reasons that are counted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

MEDIA_TYPE = b"application/problem+json"
_TYPE = "urn:hushcount:problem:"
REFUSED_OUTSIDE = "hushcount.refused"
"""Extension in the scope of a request that the server refused and answered itself, with the name of the `reason`. The
server counts it in `/metrics`, the application in the campaign's counts."""
Headers = tuple[tuple[bytes, bytes], ...]
_RETRY: Headers = ((b"retry-after", b"5"),)


@dataclass(frozen=True)
class Reason:
    """A kind of refusal: its name in counts and in `type`, its status and its title."""

    name: str
    status: int
    title: str


REASONS = {
    reason.name: reason
    for reason in (
        Reason("malformed_request", 400, "The request is not HTTP"),
        Reason("missing_fingerprint", 400, "The fingerprint of the campaign file is missing"),
        Reason("wrong_length", 400, "The body is not one or more whole reports"),
        Reason("unauthorised", 401, "The request is not authorised"),
        Reason("not_found", 404, "Nothing has this address"),
        Reason("unknown_campaign", 404, "The campaign is not collected here"),
        Reason("unknown_stream", 404, "The campaign does not collect this stream"),
        Reason("wrong_method", 405, "The method is not allowed here"),
        Reason("too_slow", 408, "The request took too long to arrive"),
        Reason("unknown_fingerprint", 409, "No such campaign file is published here"),
        Reason("epoch_not_begun", 409, "The epoch has not begun"),
        Reason("epoch_closed", 409, "The epoch is closed"),
        Reason("too_long", 413, "The body is too long"),
        Reason("too_many_reports_at_once", 413, "The body holds more reports than a client may send"),
        Reason("wrong_type", 415, "The body has the wrong type"),
        Reason("too_many_reports", 429, "The client has sent all its reports for this window"),
        Reason("head_too_long", 431, "The head of the request is too long"),
        Reason("queue_full", 503, "Too many reports are waiting"),
        Reason("disk_full", 503, "The collector's disk is full"),
        Reason("storage_failing", 503, "The collector cannot store reports"),
        Reason("clock_ahead", 503, "The collector's clock is wrong"),
        Reason("campaign_unreadable", 503, "The campaign's files cannot be read"),
        Reason("too_many_connections", 503, "Too many connections are open"),
        Reason("stopping", 503, "The collector is stopping"),
    )
}


class Refused(Exception):
    """A request is refused for a named reason, with more headers and members of the body if need be.

    `detail` tells the client's author what to change. It repeats nothing that the client sent, except numbers.
    """

    def __init__(self, reason: str, detail: str, headers: Headers = (), **members: Any) -> None:
        super().__init__(reason)
        self.reason = REASONS[reason]
        self.detail = detail
        self.headers = headers
        self.members = members

    @property
    def body(self) -> bytes:
        """The problem details."""
        reason = self.reason
        problem = {"type": _TYPE + reason.name, "title": reason.title, "status": reason.status, "detail": self.detail}
        return json.dumps({**problem, **self.members}).encode()


def try_again(reason: str) -> Refused:
    """Return a refusal that may not happen at a later try."""
    return Refused(reason, "Nothing of this request was kept: send the same bytes again.", _RETRY)
