"""Limits that the HTTP server lacks: on the number of connections, and on the time and the length of a request.

A client that sends a byte now and then, an endless head, or the rest of a refused body can keep its connection only for
a limited time. All connections are checked together twice a second, so that the checks do not slow down requests.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from service.metrics import ServiceMetrics
from service.refusals import (
    HEAD_TOO_LONG,
    MALFORMED_REQUEST,
    MEDIA_TYPE,
    REFUSED_OUTSIDE,
    TOO_MANY_CONNECTIONS,
    TOO_SLOW,
    Refused,
    try_again,
)
from service.settings import ListeningPart

_LOG = logging.getLogger("hushcount.service")
_MOST_HEAD_BYTES = 1 << 14
"""This also limits the bytes of a body that are no content: sizes and extensions of chunks, headers after the last
chunk."""
_MOST_HEADERS = 100
_CHUNK_SIGNS = 16
"""How many bytes each chunk may use for its size."""
_SWEEP_SECONDS = 0.5


class LimitedConfig(Config):
    """The server's configuration, with the service's settings and metrics for each connection."""

    def __init__(self, app: Any, settings: ListeningPart, metrics: ServiceMetrics) -> None:
        super().__init__(
            app,
            http=LimitedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            backlog=4096,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=int(settings.body_seconds) + 5,
        )
        self.settings = settings
        self.metrics = metrics


class LimitedProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(
        self, config: LimitedConfig, server_state: ServerState, app_state: dict[str, Any], _loop: Any = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._settings = config.settings
        self._metrics = config.metrics
        # Start of the incomplete request, or of the wait for a request; None: the request is complete.
        self._since: float | None = None
        # Bytes received since `_since`, and whether they include the whole head; reset when the request is complete.
        self._arrived = 0
        self._head_done = False
        # How many more bytes, besides the content of a body, the parser may get.
        self._room = _MOST_HEAD_BYTES
        # Bytes of answers that the peer had not read at the last check (-1: no check), and the time when this number
        # last changed.
        self._unread = -1
        self._unread_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        if len(self.connections) > self._settings.most_connections:
            self._end(try_again(TOO_MANY_CONNECTIONS))

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._since is None and (self.cycle is None or self.cycle.response_complete):
            # Any byte ends the keep-alive time, even if it does not begin a request.
            self._since = self.loop.time()
        self._arrived += len(data)
        # The parser has no limits and does not report bytes that it drops, so it never gets more than `_room` bytes.
        while data and not self.transport.is_closing():
            if self._room == 0:
                self._refuse(_chunks_too_long() if self._head_done else _head_too_long())
                return
            piece, data = data[: self._room], data[self._room :]
            self._room -= len(piece)
            self._parse(piece)
        if self._answered and self._arrived > self._settings.longest_body and not self.transport.is_closing():
            # The client still sends the body of a refused request.
            self.transport.close()

    def _parse(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        while data and not self.transport.is_closing():
            try:
                self.parser.feed_data(data)
                return
            except HttpParserUpgrade as stopped:
                data = data[stopped.args[0] :]
                self._parse_without_offer()
            except HttpParserError:
                self._refuse(_malformed())

    def _parse_without_offer(self) -> None:
        """Parse a head again without its Upgrade header: the parser ends a message at an offer of another protocol.

        The bytes after the head are then read as the body (RFC 9110, 7.8), as any proxy before this server reads them.
        """
        if self.transport.is_closing():
            return
        if self.parser.get_method() == b"CONNECT":
            self._refuse(_malformed())
            return
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        began = self._since
        self._parse(b"\r\n".join([*lines, b"", b""]))
        if self._since is not None:
            self._since = began

    def _give_room(self, length: int) -> None:
        self._room = min(_MOST_HEAD_BYTES, self._room + length)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._since = self.loop.time()
        # At least the first byte of a head has arrived, so a sender that is too slow gets an answer.
        self._arrived = 1
        self._head_done = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head_done or self.transport.is_closing():
            # Headers that come after the body are ignored.
            return
        if len(self.headers) == _MOST_HEADERS:
            self._end(_head_too_long())
            return
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.transport.is_closing() or self.parser.should_upgrade():
            return
        # This call raises if the target is not a URL. `_head_done` is set after it, because `_answered` would
        # otherwise look at an earlier request.
        super().on_headers_complete()
        self._head_done = True
        self._room = _MOST_HEAD_BYTES

    def on_chunk_header(self) -> None:
        """Allow the bytes that the next chunk's size may take; the parser calls this at the end of a size line."""
        self._give_room(_CHUNK_SIGNS)

    def on_body(self, body: bytes) -> None:
        if self._head_done:
            self._give_room(len(body))
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._head_done:
            # The head was refused, or is parsed again without its Upgrade header: ignore the rest of the message.
            return
        super().on_message_complete()
        # A refused request is answered before its body arrives: its keep-alive time has begun and ended already, so
        # the wait for the next request begins now.
        answered = self.cycle is not None and self.cycle.response_complete
        self._since = self.loop.time() if answered else None
        self._arrived = 0
        self._head_done = False
        self._room = _MOST_HEAD_BYTES

    def _refuse(self, refused: Refused) -> None:
        """Refuse the request, if it has no answer yet, and close the connection, which cannot be parsed further."""
        if self._answered:
            self.transport.close()
        else:
            self._end(refused)

    def enforce(self, now: float) -> None:
        """Close the connection if its request takes too long, or if its peer does not read the answers."""
        if self.transport is None:
            return
        if self._stalled(now):
            self.transport.abort()
            return
        if self._since is None:
            return
        late = now - self._since > self._settings.body_seconds
        if self.transport.is_closing():
            if late:
                # The peer has not read the answer in time, so the connection is cut off.
                self.transport.abort()
            return
        silent = not self._head_done and self._arrived == 0
        if late and (silent or self._answered):
            self.transport.close()
        elif late:
            self._end(Refused(TOO_SLOW, f"Send a request within {self._settings.body_seconds:g} seconds."))

    def _stalled(self, now: float) -> bool:
        """Return whether the peer has read no byte of the answers for too long; a slow reader reads some bytes."""
        if not (self.flow.write_paused or self.transport.is_closing()):
            self._unread = -1
            return False
        # While writing is paused, the application adds no bytes, so the size changes only if the peer reads.
        unread = self.transport.get_write_buffer_size()
        if unread != self._unread:
            self._unread, self._unread_since = unread, now
        return now - self._unread_since > self._settings.body_seconds

    @property
    def _answered(self) -> bool:
        """Whether the incoming request was answered already."""
        return self._head_done and self.cycle is not None and bool(self.cycle.response_complete)

    def _end(self, refused: Refused) -> None:
        """Count a refusal, send it as the answer if the application has begun no answer, and close."""
        self._metrics.refused.labels(refused.reason.name).inc()
        cycle = self.cycle
        pending = cycle is not None and not cycle.response_complete
        if not (pending and cycle.response_started):
            body = refused.body
            headers = ((b"content-type", MEDIA_TYPE), (b"content-length", str(len(body)).encode()), *refused.headers)
            lines = [STATUS_LINE[refused.reason.status], *(name + b": " + value + b"\r\n" for name, value in headers)]
            self.transport.write(b"".join([*lines, b"connection: close\r\n\r\n", body]))
        if pending:
            cycle.scope.setdefault("extensions", {})[REFUSED_OUTSIDE] = {"reason": refused.reason.name}
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()


def _head_too_long() -> Refused:
    return Refused(HEAD_TOO_LONG, f"Send at most {_MOST_HEAD_BYTES} bytes and {_MOST_HEADERS} headers before the body.")


def _malformed() -> Refused:
    return Refused(MALFORMED_REQUEST, "Send HTTP/1.1, with Content-Length or Transfer-Encoding: chunked.")


def _chunks_too_long() -> Refused:
    return Refused(MALFORMED_REQUEST, "Send chunks without extensions, and no headers after the last one.")


async def enforce_limits(state: ServerState) -> None:
    """Check all connections twice a second, until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        enforce_on_all(state, loop.time())


def enforce_on_all(state: ServerState, now: float) -> None:
    """Check all connections; `now` is a time of the event loop's clock."""
    for connection in list(state.connections):
        if isinstance(connection, LimitedProtocol):
            try:
                connection.enforce(now)
            except Exception:
                # An error in one check must not end the loop: this connection would have no limit, and other
                # connections no check.
                _LOG.exception("connection cannot be limited")
                connection.transport.abort()
