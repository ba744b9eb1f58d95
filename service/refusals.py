"""Refusals: the problem details of RFC 9457 for a client, and the reasons that are counted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

MEDIA_TYPE = b"application/problem+json"
_TYPE = "urn:hushcount:problem:"
REFUSED_OUTSIDE = "hushcount.refused"
"""Extension in a request's scope: the server refused and answered the request itself, for this `reason`. The server
counts the refusal in `/metrics`; the application counts it for the campaign."""
Headers = tuple[tuple[bytes, bytes], ...]
_RETRY: Headers = ((b"retry-after", b"5"),)


@dataclass(frozen=True)
class Reason:
    """A kind of refusal: its name in counts and in `type`, its status and its title."""

    name: str
    status: int
    title: str


MALFORMED_REQUEST = Reason("malformed_request", 400, "The request is not HTTP")
MISSING_FINGERPRINT = Reason("missing_fingerprint", 400, "The fingerprint of the campaign file is missing")
UNAUTHORISED = Reason("unauthorised", 401, "The request is not authorised")
WRONG_SLOT = Reason("wrong_slot", 401, "The pass is for another party, campaign or period")
WRONG_SIGNATURE = Reason("wrong_signature", 401, "The pass has no valid signature of the issuer")
NOT_FOUND = Reason("not_found", 404, "Nothing has this address")
UNKNOWN_CAMPAIGN = Reason("unknown_campaign", 404, "The campaign is unknown here")
WRONG_METHOD = Reason("wrong_method", 405, "The method is not allowed here")
TOO_SLOW = Reason("too_slow", 408, "The request took too long to arrive")
UNKNOWN_FINGERPRINT = Reason("unknown_fingerprint", 409, "No such campaign file is published here")
EPOCH_NOT_BEGUN = Reason("epoch_not_begun", 409, "The epoch has not begun")
EPOCH_CLOSED = Reason("epoch_closed", 409, "The epoch is closed")
TOO_LONG = Reason("too_long", 413, "The body is too long")
WRONG_TYPE = Reason("wrong_type", 415, "The body has the wrong type")
HEAD_TOO_LONG = Reason("head_too_long", 431, "The head of the request is too long")
QUEUE_FULL = Reason("queue_full", 503, "Too many requests are waiting")
CAMPAIGN_UNREADABLE = Reason("campaign_unreadable", 503, "The campaign's files cannot be read")
STORAGE_FAILING = Reason("storage_failing", 503, "The server cannot write to its disk")
TOO_MANY_CONNECTIONS = Reason("too_many_connections", 503, "Too many connections are open")
STOPPING = Reason("stopping", 503, "The server is stopping")


class Refused(Exception):
    """A request is refused for a reason, optionally with further headers and members of the body.

    `detail` tells the client's author what to change. Of what the client sent, `detail` repeats only numbers.
    """

    def __init__(self, reason: Reason, detail: str, headers: Headers = (), /, **members: Any) -> None:
        super().__init__(reason.name)
        self.reason = reason
        self.detail = detail
        self.headers = headers
        self.members = members

    @property
    def body(self) -> bytes:
        """The problem details."""
        reason = self.reason
        problem = {"type": _TYPE + reason.name, "title": reason.title, "status": reason.status, "detail": self.detail}
        return json.dumps({**problem, **self.members}).encode()


def try_again(reason: Reason) -> Refused:
    """Return a refusal after which the client may send the same request again."""
    return Refused(reason, "Nothing of this request was kept: send the same bytes again.", _RETRY)
