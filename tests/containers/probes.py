"""What a program in a container can reach. It is sent to a container's Python as text, so it has the stdlib only.

python - NAME ARGUMENTS_AS_JSON < probes.py
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_SECONDS = 3.0


def greetings(*places: tuple[str, int]) -> list[str]:
    """Return what is said at each host and port to whoever connects; "" where nobody is reached, or nothing said."""
    with ThreadPoolExecutor(len(places)) as threads:
        return list(threads.map(lambda place: _greeting(*place), places))


def _greeting(host: str, port: int) -> str:
    try:
        with socket.create_connection((host, port), timeout=_SECONDS) as connection:
            return connection.recv(64).decode("ascii")
    except (OSError, UnicodeDecodeError):
        return ""


def resolves(name: str) -> bool:
    """Return whether a name is resolved."""
    try:
        return bool(socket.getaddrinfo(name, None))
    except OSError:
        return False


def opens_database(address: str) -> str:
    """Return "" if a session is opened with the password of this container's file, or why not."""
    import psycopg

    password = Path(os.environ["PGPASSFILE"]).read_text(encoding="utf-8").strip().rpartition(":")[2]
    try:
        with psycopg.connect(address, password=password, connect_timeout=10) as connection:
            connection.execute("SELECT 1")
    except psycopg.Error as error:
        return str(error)
    return ""


PROBES: dict[str, Callable[..., object]] = {probe.__name__: probe for probe in (greetings, resolves, opens_database)}

if __name__ == "__main__":
    print(json.dumps(PROBES[sys.argv[1]](*json.loads(sys.argv[2]))))
