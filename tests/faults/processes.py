"""Processes of this machine, as Linux lists them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

WORKER = b"sdk_worker_main"
"""In the command line of every Python worker of Beam."""


def descendants(ancestor: int) -> list[int]:
    """Return the processes that a process started, and that these started."""
    parents = {pid: parent for pid in _pids() if (parent := _parent(pid)) is not None}
    found, wanted = [], {ancestor}
    while wanted:
        wanted = {pid for pid, parent in parents.items() if parent in wanted}
        found += sorted(wanted)
    return found


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def workers(ancestor: int) -> list[int]:
    """Return the Python workers among the processes that a process started."""
    found = []
    for pid in descendants(ancestor):
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        # Not the shell that started one.
        if any(WORKER in argument for argument in arguments[1:3]) and b"python" in arguments[0]:
            found.append(pid)
    return found


def cpu_seconds(pid: int) -> float:
    """Return how much CPU time a process has used, 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kill_a_worker(ancestor: int, seconds: float) -> int:
    """Kill, by SIGKILL, the first Python worker that has started to work, and return its number.

    Raises:
        AssertionError: none did within these seconds.
    """
    before: dict[int, float] = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for pid in workers(ancestor):
            if _connected(pid) and cpu_seconds(pid) > before.setdefault(pid, cpu_seconds(pid)) + 0.1:
                os.kill(pid, signal.SIGKILL)
                return pid
        time.sleep(0.02)
    raise AssertionError(f"no worker of process {ancestor} worked within {seconds} s")


def _connected(pid: int) -> bool:
    """Return whether a worker has its libraries, and so can have been given work: importing them takes a second."""
    try:
        return b"_sodium" in Path(f"/proc/{pid}/maps").read_bytes()
    except OSError:
        return False


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except OSError:
        return None
