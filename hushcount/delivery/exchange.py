"""One HTTP request and its answer, with limits on bytes and time that hold whatever the other side does.

An exchange follows no redirect and keeps no cookie. An exchange sends only the headers of the request, the app's token
for the site, and the headers that HTTP needs. Each exchange is a connection and a TLS session of its own, so no
connection links the requests of two windows.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import urlsplit

from hushcount.clock import MACHINE
from hushcount.delivery.site import Site
from hushcount.errors import HushcountError
from hushcount.window_starts import YEARS

_MOST_ANSWER_BYTES = 1 << 16
"""Most bytes in the body of an answer to a POST."""
_MOST_HEAD_BYTES = 1 << 16
"""Most bytes in the head of an answer, together with the framing of a body that is sent in chunks."""
_DATE_LETTERS = len("Thu, 26 Nov 2026 04:34:09 GMT")
Failure = Literal["unreachable", "bad_certificate", "too_slow", "too_long", "malformed"]
_SENTENCES: Mapping[Failure, str] = {
    "unreachable": "it cannot be reached",
    "bad_certificate": "its certificate is not trusted",
    "too_slow": "it did not answer in time",
    "too_long": "its answer is too long",
    "malformed": "its answer is not whole HTTP",
}


class NoAnswer(HushcountError):
    """No whole answer came. The request may or may not have arrived, so the caller sends the same bytes again."""

    def __init__(self, site: Site, failure: Failure) -> None:
        super().__init__(f"no answer of {site.host} port {site.port}: {_SENTENCES[failure]}")
        self.failure: Failure = failure


@dataclass(frozen=True)
class Request:
    """A request. `path` begins with a slash and may have a query."""

    method: Literal["GET", "POST"]
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True)
class Reply:
    """An answer; names of headers are in lower case, and if several headers have one name, only the first is kept."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def date(self) -> float | None:
        """When the answer was made, by the other side's clock, in seconds since 1970; None if that is not known.

        `Date` must be an IMF-fixdate, the form that RFC 9110, section 5.6.7, demands of senders, with a year that a
        window can have. An answer with `Age` was kept by a cache, so its `Date` may be old.
        """
        text = "" if "age" in self.headers else self.headers.get("date", "")
        try:
            moment = parsedate_to_datetime(text) if len(text) == _DATE_LETTERS else None
            if moment is None or format_datetime(moment, usegmt=True) != text or moment.year not in YEARS:
                return None
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
        return moment.timestamp()


def post_octets(site: Site, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Reply:
    """Post bytes, with the app's token if the site has a token; NoAnswer: no whole answer came."""
    app = {} if site.app_token is None else {"Authorization": f"Bearer {site.app_token}"}
    sent = {"Content-Type": "application/octet-stream", **app, **(headers or {})}
    return exchange(site, Request("POST", path, sent, body), _MOST_ANSWER_BYTES)


def exchange(site: Site, request: Request, most: int) -> Reply:
    """Send a request on a new connection and return the answer, which has a body of at most `most` bytes.

    Raises:
        NoAnswer: no connection was made, no head of an answer came within the site's seconds, or the status is 200 and
            the body is incomplete or too long.
    """
    line: _Line | None = None
    asked = False
    connection = connection_to(site)
    try:
        connection.connect()
        assert connection.sock is not None  # noqa: S101  # connect() raises if there is none
        line = _Line(connection.sock, MACHINE.steady() + site.seconds, most + _MOST_HEAD_BYTES)
        connection.sock = line  # _Line has the methods of a socket that http.client uses
        headers = {"Connection": "close", **request.headers}
        # A proxy may refuse a long body, and close the connection before it has read the whole body.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request(request.method, site.path + request.path, request.body, headers)
        asked = True
        answer = connection.getresponse()
        return Reply(answer.status, _first_of_each(answer), _body(site, answer, most))
    except _TooLong:
        raise NoAnswer(site, "too_long") from None
    except TimeoutError:
        raise NoAnswer(site, "too_slow") from None
    except ssl.SSLCertVerificationError:
        raise NoAnswer(site, "bad_certificate") from None
    except OSError:
        raise NoAnswer(site, "unreachable") from None
    except http.client.HTTPException:
        raise NoAnswer(site, "malformed") from None
    except (ValueError, OverflowError):
        if not asked:
            raise
        # http.client accepts a chunk with a length of -5 bytes, and then fails to read the chunk.
        raise NoAnswer(site, "malformed") from None
    finally:
        if line is not None:
            line.socket.close()
        connection.close()


def _body(site: Site, answer: http.client.HTTPResponse, most: int) -> bytes:
    """Return a body.

    If the body is too long or incomplete, raise an error for status 200, but return b"" for any other status, because
    then the status is enough.
    """
    try:
        # If Content-Length says that the body is too long, the body is not fetched.
        if (answer.length or 0) > most or len(body := answer.read(most + 1)) > most:
            raise NoAnswer(site, "too_long")
        if answer.length:
            # If a body ends too early, http.client returns the part that came.
            raise NoAnswer(site, "malformed")
    except (NoAnswer, _TooLong, OSError, http.client.HTTPException, ValueError, OverflowError):
        if answer.status == 200:
            raise
        return b""
    return body


def connection_to(site: Site) -> http.client.HTTPConnection:
    """Return a connection that is not open yet, through the proxy of the environment if the site permits it."""
    proxy = _proxy(site)
    host, port = (site.host, site.port) if proxy is None else proxy
    connection: http.client.HTTPConnection
    if site.by_tls:
        context = site.context or ssl.create_default_context()
        connection = http.client.HTTPSConnection(host, port, timeout=site.seconds, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=site.seconds)
    if proxy is not None:
        connection.set_tunnel(site.host, site.port)
    return connection


def _proxy(site: Site) -> tuple[str, int] | None:
    """Return host and port of the proxy that the environment names for a site; None if the site permits no proxy."""
    if not site.environment_proxies or urllib.request.proxy_bypass(f"{site.host}:{site.port}"):
        return None
    named = urllib.request.getproxies().get("https" if site.by_tls else "http", "")
    parts = urlsplit(named if "//" in named else f"//{named}")
    return (parts.hostname, parts.port or 80) if parts.hostname else None


def _first_of_each(answer: http.client.HTTPResponse) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in answer.getheaders():
        headers.setdefault(name.lower(), value)
    return headers


class _TooLong(Exception):
    """The answer has more bytes than it may have."""


class _Line:
    """A connected socket with one deadline for all sending and receiving, and a limit on the bytes received."""

    def __init__(self, connected: socket.socket, deadline: float, most: int) -> None:
        self.socket = connected
        self._deadline = deadline
        self._left = most

    def sendall(self, data: Any) -> None:
        rest = memoryview(data)
        while rest:
            self._set_time()
            rest = rest[self.socket.send(rest) :]

    def receive(self, buffer: memoryview) -> int:
        if not self._left:
            raise _TooLong
        self._set_time()
        received = self.socket.recv_into(buffer[: self._left])
        self._left -= received
        return received

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Received(self))

    def close(self) -> None:
        """Do nothing: http.client calls this before the answer is read, and later `exchange` closes the real socket."""

    def _set_time(self) -> None:
        left = self._deadline - MACHINE.steady()
        if left <= 0.0:
            raise TimeoutError
        self.socket.settimeout(left)


class _Received(io.RawIOBase):
    def __init__(self, line: _Line) -> None:
        self._line = line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._line.receive(memoryview(buffer))
