"""Free ports for servers that a test starts."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress

_FIRST, _NUMBER = 20_000, 10_000
"""Below the range from which systems choose ports by themselves, so that nobody is given the port meanwhile."""


def free_port() -> int:
    """Return a port of this machine that nobody listens on now."""
    while True:
        port = _FIRST + secrets.randbelow(_NUMBER)
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port
