"""Bodies of requests: a limit for each, and one for all that are incomplete.

A body that comes in one piece goes straight to the queue, which has its own limit. Only bodies in several pieces wait
in memory for their ends, within the time of a request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from shuffler.collector.admission.refusals import Refused, try_again

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
