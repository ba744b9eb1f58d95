"""A real PostgreSQL server for one test session, in a directory of its own, on a socket that nobody else sees."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_USER = "postgres"


@dataclass(frozen=True)
class Server:
    """A server that runs.

    Attributes:
        url: of a database in it; it names no password.
    """

    url: str
    _control: tuple[object, ...]
    _identity: dict[str, Any]

    def stop(self) -> None:
        """End the server as a crash does: it tells its clients nothing."""
        _run([*self._control, "-m", "immediate", "-w", "stop"], self._identity)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        _run([*self._control, "-w", "start"], self._identity)


@contextmanager
def postgresql() -> Iterator[str]:
    """Start a server, yield its URL, and stop it; skip where PostgreSQL is not installed."""
    with server() as running:
        yield running.url


@contextmanager
def server(password: str = "") -> Iterator[Server]:
    """Start a server, yield it, and stop it; it asks for a password if one is given. Skip as `postgresql`."""
    initdb, control = _find("initdb"), _find("pg_ctl")
    if initdb is None or control is None:
        pytest.skip("PostgreSQL's initdb and pg_ctl are not installed: the state was NOT tested on a real server")
    identity = _identity()
    root = Path(tempfile.mkdtemp(prefix="hc-pg-"))
    try:
        data, secret = root / "data", root / "password"
        secret.write_text(password)
        if identity:
            for path in (root, secret):
                os.chown(path, identity["user"], identity["group"])
        asks = ["-A", "scram-sha-256", f"--pwfile={secret}"] if password else ["-A", "trust"]
        _run([initdb, "-D", data, "-U", "hushcount", *asks, "--no-sync"], identity)
        options = f"-k {root} -c listen_addresses='' -c fsync=off"
        url = f"postgresql://hushcount@/postgres?host={root}"
        running = Server(url, (control, "-D", data, "-l", root / "log", "-o", options), identity)
        running.start()
        try:
            yield running
        finally:
            running.stop()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def tool(name: str, *arguments: object) -> None:
    """Run one of PostgreSQL's programs, as an operator does."""
    found = _find(name)
    if found is None:
        pytest.skip(f"PostgreSQL's {name} is not installed: a restored state was NOT tested")
    _run([found, *arguments], {})


def _find(name: str) -> str | None:
    # Debian keeps the server's tools out of PATH.
    others = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(others[-1]) if others else None)


def _identity() -> dict[str, Any]:
    """Return whom to run the server as: it refuses to run as root."""
    if os.getuid() != 0:
        return {}
    try:
        entry = pwd.getpwnam(_USER)
    except KeyError:
        pytest.skip(f"PostgreSQL does not run as root and there is no user {_USER}: the state was NOT tested on it")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _run(command: list[object], identity: dict[str, Any]) -> None:
    arguments = [str(part) for part in command]
    subprocess.run(  # noqa: S603  # the server's own tools
        arguments, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/", **identity
    )
