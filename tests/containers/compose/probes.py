"""What a program in a container can reach. It is sent to a container's Python as text, so it has the stdlib only.

python - NAME ARGUMENTS_AS_JSON < probes.py
"""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_SECONDS = 3.0
_PIECE = 1 << 22


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


def restrictions() -> dict[str, str]:
    """Return what the kernel says of the container's first process and of the one that it started."""
    (child,) = Path("/proc/1/task/1/children").read_text(encoding="ascii").split()[:1]
    found: dict[str, str] = {}
    for line in Path(f"/proc/{child}/status").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":\t")
        if name in ("Uid", "Gid", "Groups", "CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd", "NoNewPrivs", "Seccomp"):
            found[name] = value.strip()
    return found


def writable() -> list[str]:
    """Return the topmost directories in which a file can be made, of all but the kernel's own."""
    found: list[str] = []
    for folder, names, _ in os.walk("/"):
        names[:] = [name for name in names if os.path.join(folder, name) not in ("/proc", "/sys", "/dev")]
        try:
            with tempfile.TemporaryFile(dir=folder):
                found.append(folder)
                names.clear()
        except OSError:
            continue
    return sorted(found)


def sockets() -> list[str]:
    """Return the sockets of other programs that lie in the file system."""
    found = []
    for folder, names, files in os.walk("/"):
        names[:] = [name for name in names if os.path.join(folder, name) not in ("/proc", "/sys")]
        found += [path for name in files if Path(path := os.path.join(folder, name)).is_socket()]
    return found


def held(*secrets: str) -> dict[str, str]:
    """Return which secrets some file, or the environment of a process, holds, each with the last such path.

    Args:
        secrets: their bytes in hexadecimal digits; they are looked for raw, and in hexadecimal and base64 digits.
    """
    forms = {
        form: secret
        for secret in secrets
        for raw in (bytes.fromhex(secret),)
        for form in (raw, secret.encode(), secret.upper().encode(), *_in_base64(raw))
    }
    return {secret: str(path) for path in _readable() for secret in _held_in(path, forms)}


def _in_base64(raw: bytes) -> Iterator[bytes]:
    """Yield what base64 makes of the bytes at any place of a longer text, without the digits that others share."""
    for offset in range(3):
        digits = base64.b64encode(bytes(offset) + raw)
        begins, ends = (8 * offset + 5) // 6, (8 * (offset + len(raw))) // 6
        yield digits[begins:ends]
        yield digits[begins:ends].translate(bytes.maketrans(b"+/", b"-_"))


def _readable() -> Iterator[Path]:
    for folder, names, files in os.walk("/"):
        names[:] = [name for name in names if os.path.join(folder, name) not in ("/proc", "/sys", "/dev")]
        yield from (Path(folder, name) for name in files)
    yield from Path("/proc").glob("[0-9]*/environ")


def _held_in(path: Path, forms: dict[bytes, str]) -> set[str]:
    longest, found, before = max(map(len, forms)), set(), b""
    try:
        if not (path.is_file() or path.name == "environ"):
            return set()
        with path.open("rb") as stream:
            while piece := stream.read(_PIECE):
                window = before + piece
                found |= {secret for form, secret in forms.items() if form in window}
                before = window[-longest:]
    except OSError:
        pass
    return found


PROBES: dict[str, Callable[..., object]] = {
    probe.__name__: probe for probe in (greetings, resolves, restrictions, writable, sockets, held)
}

if __name__ == "__main__":
    print(json.dumps(PROBES[sys.argv[1]](*json.loads(sys.argv[2]))))
