"""Which web pages may talk to the collector, and what their browsers ask before: CORS, of the Fetch standard.

A browser sends a report from any page anyway: CORS protects nobody's privacy here. It lets the page's client send its
token and read the answer. Cookies are never asked for.
"""

from __future__ import annotations

from collections.abc import Collection

from shuffler.collector.admission.refusals import Headers

ANY_ORIGIN = "*"
PREFLIGHT: Headers = (
    (b"access-control-allow-methods", b"GET, HEAD, POST"),
    (b"access-control-allow-headers", b"authorization, client-token, content-type, if-none-match"),
    (b"access-control-max-age", b"7200"),
)
"""What a page may send; the answer to the browser's question."""


def shared_with(origins: Collection[str], origin: bytes | None) -> Headers:
    """Return the headers that let a page of this origin read the answer; none if it is not among the origins."""
    if origin is None or not origins:
        return ()
    anyone = ANY_ORIGIN in origins
    if not anyone and origin.decode("latin-1") not in origins:
        return ((b"vary", b"origin"),)
    return (
        (b"access-control-allow-origin", b"*" if anyone else origin),
        (b"access-control-expose-headers", b"campaign-signature, etag, retry-after"),
        (b"vary", b"origin"),
    )
