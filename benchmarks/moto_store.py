"""An S3 store in its own process, which holds the files of a folder and counts its requests.

`python -m benchmarks.moto_store FOLDER PORT`: moto keeps all files in memory. The real service needs tens of
milliseconds, and answers many requests at once. moto needs two or three milliseconds, and answers one after the other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from socket import socket
from typing import Any
from urllib.parse import urlsplit

BUCKET = "store"
_ASKED = "/requests"
_SECONDS = 600.0
_ACCOUNT = "123456789012"
"""The account that moto uses for any access key."""


@contextmanager
def moto(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the address of a store with the files of a folder, and the environment variables for its clients."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "benchmarks.moto_store", str(folder), str(port)]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603  # our own module
    try:
        _await(server, address)
        account = {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "us-east-1"}
        yield address, {**os.environ, **account, "AWS_ENDPOINT_URL": address}
    finally:
        server.kill()
        server.wait()


def requests(address: str) -> Counter[str]:
    """Return the number of requests of each kind since the last call."""
    asked = HTTPConnection(urlsplit(address).netloc)
    asked.request("GET", _ASKED)
    return Counter(json.load(asked.getresponse()))


def _await(server: subprocess.Popen[bytes], address: str) -> None:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until and server.poll() is None:
        try:
            requests(address)
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the store did not start")


class _Counted:
    """A WSGI application that counts requests before it passes them on."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app, self._kinds = app, Counter[str]()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == _ASKED:
            kinds, self._kinds = self._kinds, Counter()
            start("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(kinds).encode()]
        method, is_listing = environ["REQUEST_METHOD"], "list-type=2" in environ["QUERY_STRING"]
        self._kinds["LIST" if is_listing else method] += 1
        return self._app(environ, start)


def main() -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from moto.s3.models import s3_backends
    from werkzeug.serving import WSGIRequestHandler, run_simple

    folder, port = Path(sys.argv[1]), int(sys.argv[2])
    backend = s3_backends[_ACCOUNT]["aws"]
    backend.create_bucket(BUCKET, "us-east-1")
    for path in folder.rglob("*"):
        if path.is_file():
            backend.put_object(BUCKET, str(path.relative_to(folder)), path.read_bytes())

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_request(self, *_: object) -> None:
            """Log nothing."""

    app = _Counted(DomainDispatcherApplication(create_backend_app))
    run_simple("127.0.0.1", port, app, threaded=True, request_handler=Quiet)


if __name__ == "__main__":
    main()
