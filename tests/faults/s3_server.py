"""Run `python -m tests.faults.s3_server PORT`: an S3 store in which a conditional put is one step, as it is in S3.

moto looks whether a name is taken before it puts, and serves several requests at a time. So of many writers two could
win. Here all writes wait for each other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple


def main() -> None:
    app, lock = DomainDispatcherApplication(create_backend_app), Lock()

    def one_write_at_a_time(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return app(environ, start)
        with lock:
            return list(app(environ, start))

    run_simple("127.0.0.1", int(sys.argv[1]), one_write_at_a_time, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main()
