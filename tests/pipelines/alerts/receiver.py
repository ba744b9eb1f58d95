"""A real receiver of webhooks, whose answers the tests choose."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()


@dataclass
class Receiver:
    """What came, and how it is answered; `holds`: not before the receiver ends."""

    address: str
    status: int = 200
    holds: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    got: list[tuple[dict[str, str], Any]] = field(default_factory=list)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver while the block runs."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, json.loads(body)))
            assert self.path == "/hook?team=a"
            if receiver.holds:
                ended.wait()
            with suppress(OSError):
                self.send_response(receiver.status)
                for name, value in {**receiver.headers, "Content-Length": "0"}.items():
                    self.send_header(name, value)
                self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(f"http://127.0.0.1:{server.server_port}/hook?team=a")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
