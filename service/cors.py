"""Decides which web pages may use a service, by CORS of the Fetch standard.

A browser sends a report from any page even without CORS, so CORS protects nobody's privacy here. CORS allows a client
in a page to send its token and to read the answer. Cookies are never used.
"""

from __future__ import annotations

from collections.abc import Collection

from service.refusals import Headers

ANY_ORIGIN = "*"
PREFLIGHT: Headers = (
    (b"access-control-allow-methods", b"GET, HEAD, POST"),
    (b"access-control-allow-headers", b"authorization, client-token, content-type, if-none-match"),
    (b"access-control-max-age", b"7200"),
)
"""The methods and headers that a page may send: the answer to a browser's preflight request."""
_EXPOSED = (b"access-control-expose-headers", b"age, campaign-signature, date, etag, retry-after")
_VARIES: Headers = ((b"vary", b"origin"),)


def shared_with(origins: Collection[str], origin: bytes | None) -> Headers:
    """Return the headers that let pages read an answer; `origin` is the request's Origin header, None without one.

    The headers say that answers vary by origin: a cache could otherwise give a page the answer that was sent to another
    page, or to a program without an origin.
    """
    if ANY_ORIGIN in origins:
        return ((b"access-control-allow-origin", b"*"), _EXPOSED)
    if origin is None or origin.decode("latin-1") not in origins:
        return _VARIES
    return ((b"access-control-allow-origin", origin), _EXPOSED, *_VARIES)


def may_read(shared: Headers) -> bool:
    """Return whether these headers let the requesting page read the answer."""
    return len(shared) > 1
