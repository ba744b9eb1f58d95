"""The page over HTTP, for this machine only; each request computes the page again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pipelines.files.storage_errors import told
from pipelines.pages.assets import policy

_HOST = "127.0.0.1"


class PageServer(ThreadingHTTPServer):
    """Serves one page at / of a port; requests that come together wait for each other."""

    daemon_threads = True

    def __init__(self, port: int, make: Callable[[], str]) -> None:
        super().__init__((_HOST, port), _Handler)
        self._make = make
        self._one = threading.Lock()

    def handle_error(self, request: object, client_address: object) -> None:
        """Print no error, because the browser only closed the connection before it had the page."""

    @property
    def address(self) -> str:
        """The address to open in a browser."""
        return f"http://{_HOST}:{self.server_port}/"

    def page(self) -> str:
        """Return the page, computed from the present results."""
        with self._one:
            return self._make()


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version = "hushcount"
    sys_version = ""

    def do_GET(self) -> None:  # the name that the server calls
        # Without this check, a page of another site could point its own host name to this machine, and read the answer.
        own = {f"{host}:{self.server.server_port}" for host in (_HOST, "localhost")}
        if self.headers.get("Host", "") not in own:
            self._answer(421, "text/plain", "this host is not served\n")
        elif self.path != "/":
            self._answer(404, "text/plain", "only / is served\n")
        else:
            try:
                status, kind, text = 200, "text/html", self.server.page()
            except Exception as error:
                # Any exception is shown in the browser, because otherwise the reader would get an empty answer without
                # a reason.
                status, kind, text = 500, "text/plain", f"error: {told(error)}\n"
            self._answer(status, kind, text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name of the base class
        """Log no requests, because the page has only one reader."""

    def _answer(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        headers = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Content-Security-Policy": f"{policy()}; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
