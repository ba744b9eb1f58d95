"""Serve a page's files with a strict content security policy, and nothing else."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread


class Pages(ThreadingHTTPServer):
    """A web server on this machine alone.

    Args:
        folders: folders with the files that are served; the first folder with a file's name wins, and subfolders are
            not served.
        port: port to listen on; 0 takes a free port.
    """

    daemon_threads = True

    def __init__(self, folders: list[Path], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self._files = {f"/{path.name}": path for folder in reversed(folders) for path in folder.iterdir()}
        # Content that this server makes itself and does not read from a file, by path, such as /settings.json.
        self.made: dict[str, bytes] = {}
        self.collector = ""

    @property
    def origin(self) -> str:
        """The server's origin, as browsers write it."""
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def policy(self) -> str:
        """The content security policy: own files, and requests to the collector."""
        own = "script-src 'self'; style-src 'self'; img-src 'self'"
        return f"default-src 'none'; {own}; connect-src 'self' {self.collector}; require-trusted-types-for 'script'"

    def find(self, path: str) -> bytes | None:
        """Return the content at a path."""
        if path in self.made:
            return self.made[path]
        file = self._files.get("/index.html" if path == "/" else path)
        return file.read_bytes() if file is not None and file.is_file() else None

    @contextmanager
    def serving(self) -> Iterator[Pages]:
        """Serve in a thread while the block runs."""
        thread = Thread(target=self.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Pages

    def do_GET(self) -> None:  # the standard library prescribes this name
        path = self.path.partition("?")[0]
        content = self.server.find(path)
        self.send_response(200 if content is not None else 404)
        kind = mimetypes.guess_type(path)[0] if path != "/" else "text/html"
        self.send_header("Content-Type", f"{kind or 'application/octet-stream'}; charset=utf-8")
        self.send_header("Content-Security-Policy", self.server.policy)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *_: object) -> None:
        """Write no access log."""
