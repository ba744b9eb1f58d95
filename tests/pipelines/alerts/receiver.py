"""A real receiver of webhooks, whose answers the tests choose, and a check of signatures without our code."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()


def is_signed(headers: Mapping[str, str], body: bytes, key: bytes = KEY) -> bool:
    """Return whether a message is signed, as Standard Webhooks and RFC 2104 say it."""
    block = key.ljust(64, b"\0")
    inner = bytes(byte ^ 0x36 for byte in block)
    outer = bytes(byte ^ 0x5C for byte in block)
    signed = headers["webhook-id"].encode() + b"." + headers["webhook-timestamp"].encode() + b"." + body
    proof = hashlib.sha256(outer + hashlib.sha256(inner + signed).digest()).digest()
    return headers["webhook-signature"] == "v1," + base64.b64encode(proof).decode()


@dataclass
class Receiver:
    """What came, and how it is answered.

    `hold`: not before the receiver ends. `drip`: a byte now and then, and never all of them.
    """

    port: int = 0
    status: int = 200
    hold: bool = False
    drip: bool = False
    length: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    on_request: Callable[[], None] = lambda: None
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?team=a"

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.got]

    @property
    def data(self) -> list[Any]:
        return [json.loads(body)["data"] for _, body in self.got]


@contextmanager
def receiving(context: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Run a receiver while the block runs."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
            assert self.path == "/hook?team=a"
            receiver.on_request()
            if receiver.hold:
                receiver.ended.wait()
            try:
                self.send_response(receiver.status)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(receiver.length + 1000 * receiver.drip))
                self.end_headers()
                self.wfile.write(b"x" * receiver.length)
                while receiver.drip and not receiver.ended.wait(0.1):
                    self.wfile.write(b"x")
                    self.wfile.flush()
            except OSError:
                pass

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
