"""Bodies of requests: how long each may be, and how many bytes of all may have come in.

A report that comes in one piece goes straight to the queue, which has a bound of its own. Only bodies that come in
several pieces wait in memory for their ends, as long as their senders like within the time of a request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from shuffler.collector.admission.refusals import Refused, try_again

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class ClientGone(Exception):
    """The client went away before its request was complete."""


@dataclass
class IncomingBytes:
    """Bodies that are being read.

    Attributes:
        most: how many bytes of them may be here.
        held: how many are here.
    """

    most: int
    held: int = 0


async def read_body(receive: Receive, most: int, incoming: IncomingBytes) -> bytes:
    """Return a request's body; refuse as soon as it is longer than it may be, or all bodies are.

    Raises:
        Refused: it is too long, or too much of other bodies waits for its end.
        ClientGone: the client went away.
    """
    parts: list[bytes] = []
    length, held, more = 0, 0, True
    try:
        while more:
            if parts and incoming.held > incoming.most:
                raise try_again("queue_full")
            message = await receive()
            if message["type"] != "http.request":
                raise ClientGone
            parts.append(message["body"])
            length += len(message["body"])
            if length > most:
                raise too_long(most)
            more = message.get("more_body", False)
            if more or held:
                incoming.held += length - held
                held = length
        return b"".join(parts)
    finally:
        incoming.held -= held


def too_long(most: int) -> Refused:
    """Return the refusal of a body that is longer than it may be."""
    return Refused("too_long", f"Send at most {most} bytes in one request.", most_bytes=most)
