"""Which web pages may talk to a service, and what their browsers ask before: CORS, of the Fetch standard.

A browser sends a report from any page anyway: CORS protects nobody's privacy here. It lets the page's client send its
token and read the answer. Cookies are never asked for.
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
"""What a page may send; the answer to the browser's question."""
_EXPOSED = (b"access-control-expose-headers", b"campaign-signature, date, etag, retry-after")
_VARIES: Headers = ((b"vary", b"origin"),)


def shared_with(origins: Collection[str], origin: bytes | None) -> Headers:
    """Return the headers that let pages read an answer; `origin` is the request's, None without one.

    A cache may give an answer to another page than the one that asked, or to one after a program that named none.
    """
    if ANY_ORIGIN in origins:
        return ((b"access-control-allow-origin", b"*"), _EXPOSED)
    if origin is None or origin.decode("latin-1") not in origins:
        return _VARIES
    return ((b"access-control-allow-origin", origin), _EXPOSED, *_VARIES)


def may_read(shared: Headers) -> bool:
    """Return whether these headers let the page that asks read the answer."""
    return len(shared) > 1
