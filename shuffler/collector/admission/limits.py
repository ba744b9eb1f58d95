"""Limits on what comes in: each body, all incomplete bodies, and each client's reports in the present window.

A body that comes in one piece goes straight to the queue, which has its own limit. Only bodies in several pieces wait
in memory for their ends, within the time of a request.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from hushcount.collection.windows import Window
from shuffler.collector.admission.refusals import Refused, try_again

_KEY_BYTES = 32
_HASH_BYTES = 8
_MOST_CLIENTS = 1 << 20
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class ClientGone(Exception):
    """The client disconnected before its request was complete."""


@dataclass
class IncomingBytes:
    """How many bytes of incomplete bodies are in memory, and how many may be."""

    most: int
    present: int = 0


async def read_body(receive: Receive, most: int, incoming: IncomingBytes) -> bytes:
    """Return a request's body, or raise Refused as soon as it, or all incomplete bodies, are too long."""
    parts: list[bytes] = []
    length, counted, more = 0, 0, True
    try:
        while more:
            if parts and incoming.present > incoming.most:
                raise try_again("queue_full")
            message = await receive()
            if message["type"] != "http.request":
                raise ClientGone
            parts.append(message["body"])
            length += len(message["body"])
            if length > most:
                raise too_long(most)
            more = message.get("more_body", False)
            if more or counted:
                incoming.present += length - counted
                counted = length
        return b"".join(parts)
    finally:
        incoming.present -= counted


def too_long(most: int) -> Refused:
    """Return the refusal of a body that is too long."""
    return Refused("too_long", f"Send at most {most} bytes in one request.", most_bytes=most)


class ClientLimit:
    """Counts by a keyed hash of what clients show, in memory only; forgotten with the window.

    It takes about 130 bytes for each of at most a million clients: an attacker may invent tokens, and each counts as a
    client. Beyond that number the client that has sent nothing for the longest is forgotten, and may send as much
    again; so may all clients after a restart. No client is refused because of others. This protects the collector; it
    is not the contribution cap, which the shuffler enforces.

    Args:
        most: reports of one client in one window; None: no limit, and nothing is counted.
        most_clients: how many are remembered, at least 1.
    """

    def __init__(self, most: int | None, most_clients: int = _MOST_CLIENTS) -> None:
        self._most = most
        self._most_clients = most_clients
        self._window: Window | None = None
        self._key = b""
        self._sent: OrderedDict[int, int] = OrderedDict()
        """Reports by hash; the client that sent last comes last."""

    def reserve(self, client: bytes | None, reports: int, window: Window | None) -> None:
        """Count reports of a client before they are kept, or raise Refused: other requests of it may be on the way."""
        if self._most is None or client is None or window is None:
            return
        if reports > self._most:
            raise Refused(
                "too_many_reports_at_once",
                f"Send at most {self._most} reports in one request: a client may send no more in a window.",
                most_reports=self._most,
            )
        if window != self._window:
            self._window, self._key = window, secrets.token_bytes(_KEY_BYTES)
            self._sent.clear()
        name = self._name(client)
        sent = self._sent.setdefault(name, 0) + reports
        self._sent.move_to_end(name)
        if len(self._sent) > self._most_clients:
            self._sent.popitem(last=False)
        if sent > self._most:
            left = max(1, int((window.end - datetime.now(timezone.utc)).total_seconds()) + 1)
            raise Refused(
                "too_many_reports",
                f"A client may send {self._most} reports in a window: send the others in the next.",
                ((b"retry-after", str(left).encode()),),
                most_reports=self._most,
            )
        self._sent[name] = sent

    def give_back(self, client: bytes | None, reports: int, window: Window | None) -> None:
        """Take back a reservation of a window for reports that were not kept."""
        if self._most is None or client is None or window is None or window != self._window:
            return
        name = self._name(client)
        if name in self._sent:
            # A client that was forgotten meanwhile may have fewer than it gives back.
            self._sent[name] = max(0, self._sent[name] - reports)

    @property
    def clients(self) -> int:
        """How many clients are remembered."""
        return len(self._sent)

    def _name(self, client: bytes) -> int:
        return int.from_bytes(hashlib.blake2b(client, digest_size=_HASH_BYTES, key=self._key).digest(), "big")
