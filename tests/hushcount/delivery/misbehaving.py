"""A server on a real socket that says whatever a test wants, whether that is HTTP or not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from hushcount.delivery.site import Site

Talk = Callable[[socket.socket], None]
"""What the server does with one connection."""


@dataclass
class Heard:
    """The server's address, and the heads of the requests that it read."""

    site: Site
    requests: list[bytes] = field(default_factory=list)


def read_request(connection: socket.socket) -> bytes:
    """Read a request with its body."""
    data = b""
    while b"\r\n\r\n" not in data and (more := connection.recv(65536)):
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while lengths and len(body) < int(lengths[0]) and (more := connection.recv(65536)):
        body += more
    return head + b"\r\n\r\n" + body


def saying(answer: bytes) -> Talk:
    """Return a talk that sends these bytes."""
    return lambda connection: connection.sendall(answer)


def http(status: int, body: bytes = b"", *headers: str) -> bytes:
    """Return a whole answer."""
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


@contextmanager
def serving(talk: Talk, seconds: float = 5.0, reads: bool = True) -> Iterator[Heard]:
    """Serve in a thread for a block, one connection after the other; requests are read first, if not by the talk."""
    listener = socket.create_server(("127.0.0.1", 0))
    heard = Heard(Site(f"http://127.0.0.1:{listener.getsockname()[1]}", seconds=seconds))

    def run() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                if reads:
                    heard.requests.append(read_request(connection))
                talk(connection)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield heard
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
