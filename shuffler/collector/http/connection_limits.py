"""Limits that the HTTP server does not set: how many connections, how slow a request may be, how much of it is read.

A client that sends a byte now and then, one that sends a head without end, and one that goes on sending a body that was
refused: each holds a connection for a while and nothing else. One look at all connections twice a second costs the
requests nothing.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from shuffler.collector.admission.refusals import MEDIA_TYPE, REFUSED_OUTSIDE, Refused, try_again
from shuffler.collector.metrics import Metrics
from shuffler.collector.settings import CollectorPart

_LOG = logging.getLogger("hushcount.collector")
_MOST_HEAD_BYTES = 1 << 14
"""Also of what a body has besides its content: sizes of chunks, their extensions, headers after the last one."""
_MOST_HEADERS = 100
_CHUNK_SIGNS = 16
"""Bytes that each chunk may have for its size."""
_SWEEP_SECONDS = 0.5


class LimitedConfig(Config):
    """The server's configuration with the collector's settings, from which each connection has its limits.

    Args:
        app: the application.
        settings: of the collector.
        metrics: to count in.
    """

    def __init__(self, app: Any, settings: CollectorPart, metrics: Metrics) -> None:
        super().__init__(
            app,
            http=LimitedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
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
        # When the request began of which not all is here, or when one was first waited for; None: all is here.
        self._since: float | None = None
        # Bytes since then, and whether they hold a whole head: neither once all is here.
        self._arrived = 0
        self._head_done = False
        # How many bytes that are no content of a body the parser may still be given.
        self._room = _MOST_HEAD_BYTES
        # How many bytes of answers the peer did not take at the last look, and since when so many; -1: not looked at.
        self._unread = -1
        self._unread_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        if len(self.connections) > self._settings.most_connections:
            self._end(try_again("too_many_connections"))

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._since is None and (self.cycle is None or self.cycle.response_complete):
            # Bytes that begin no request end the keep-alive time as well.
            self._since = self.loop.time()
        self._arrived += len(data)
        # The parser gets no more at once than there is room for: it has no limits of its own, and says nothing of what
        # it drops.
        while data and not self.transport.is_closing():
            if self._room == 0:
                self._refuse(_chunks_too_long() if self._head_done else _head_too_long())
                return
            piece, data = data[: self._room], data[self._room :]
            self._room -= len(piece)
            super().data_received(piece)
        if self._answered and self._arrived > self._settings.most_body_bytes and not self.transport.is_closing():
            # It was refused, and comes all the same.
            self.transport.close()

    def _give_room(self, length: int) -> None:
        self._room = min(_MOST_HEAD_BYTES, self._room + length)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._since = self.loop.time()
        # The first byte of a head at least: who sends no more is told so.
        self._arrived = 1
        self._head_done = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head_done or self.transport.is_closing():
            # What comes after the body in the form of headers is dropped.
            return
        if len(self.headers) == _MOST_HEADERS:
            self._end(_head_too_long())
            return
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.transport.is_closing():
            return
        # It raises where the target is no URL: the answer to that request is missing then.
        super().on_headers_complete()
        self._head_done = True
        self._room = _MOST_HEAD_BYTES

    def on_chunk_header(self) -> None:
        """Take the size of a chunk; the parser calls it after what follows the size."""
        self._give_room(_CHUNK_SIGNS)

    def on_body(self, body: bytes) -> None:
        if self._head_done:
            self._give_room(len(body))
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._head_done:
            # Of a request whose head was refused nothing else is looked at.
            return
        super().on_message_complete()
        # A refused request has its answer before its body is here, and its keep-alive time has begun and ended.
        answered = self.cycle is not None and self.cycle.response_complete
        self._since = self.loop.time() if answered else None
        self._arrived = 0
        self._head_done = False
        self._room = _MOST_HEAD_BYTES

    def send_400_response(self, msg: str) -> None:
        if self.transport.is_closing():
            return
        self._refuse(Refused("malformed_request", "Send HTTP/1.1, with Content-Length or Transfer-Encoding: chunked."))

    def _refuse(self, refused: Refused) -> None:
        """End what cannot be read on; what comes after a refusal need not be HTTP, and gets no second answer."""
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
                # Its peer does not read the answer.
                self.transport.abort()
            return
        silent = not self._head_done and self._arrived == 0
        if late and (silent or self._answered):
            self.transport.close()
        elif late:
            self._end(Refused("too_slow", f"Send a request within {self._settings.body_seconds:g} seconds."))

    def _stalled(self, now: float) -> bool:
        """Return whether the peer takes nothing of what waits for it: someone who reads slowly takes some of it."""
        if not (self.flow.write_paused or self.transport.is_closing()):
            self._unread = -1
            return False
        # Nothing is added meanwhile.
        unread = self.transport.get_write_buffer_size()
        if unread != self._unread:
            self._unread, self._unread_since = unread, now
        return now - self._unread_since > self._settings.body_seconds

    @property
    def _answered(self) -> bool:
        """Whether the request that is coming in has its answer already."""
        return self._head_done and self.cycle is not None and bool(self.cycle.response_complete)

    def _end(self, refused: Refused) -> None:
        """Count, answer outside of the application if no answer has begun, and close."""
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
    return Refused(
        "head_too_long", f"Send at most {_MOST_HEAD_BYTES} bytes and {_MOST_HEADERS} headers before the body."
    )


def _chunks_too_long() -> Refused:
    return Refused("malformed_request", "Send chunks without extensions, and no headers after the last one.")


async def enforce_limits(state: ServerState) -> None:
    """Look at all connections twice a second, until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        enforce_on_all(state, loop.time())


def enforce_on_all(state: ServerState, now: float) -> None:
    """Look at all connections; `now` is a moment of the event loop's clock."""
    for connection in list(state.connections):
        if isinstance(connection, LimitedProtocol):
            try:
                connection.enforce(now)
            except Exception:
                # It would be held without a limit; the others are looked at all the same.
                _LOG.exception("connection cannot be limited")
                connection.transport.abort()
