"""What a process that reads a private key leaves in memory and in core dumps."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from keys import records
from keys.private import PrivateKey

SECRET = os.urandom(32)
_PR_GET_DUMPABLE = 3
_OPEN = """
import ctypes, gc, os, resource, sys
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
from keys.directories import KeyReference
key = KeyReference(sys.argv[1], "analyzer", sys.argv[2]).read_any()
gc.collect()
"""


def child(directory: Path, id: str, then: str) -> subprocess.Popen[bytes]:
    """Start a Python that may dump core, opens the key, and goes on."""
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", _OPEN + then, str(directory), id],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=directory,
    )


@pytest.fixture
def opened(tmp_path: Path) -> tuple[Path, str]:
    """A key directory, and the id of the analyzer's key in it."""
    id = PrivateKey(SECRET).id
    path = records.key_path(tmp_path, "analyzer", id)
    path.write_text(records.record("analyzer", id, SECRET, None))
    path.chmod(0o600)
    return tmp_path, id


def test_a_process_with_a_key_makes_no_core_dump(opened: tuple[Path, str]) -> None:
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        pytest.skip("no process here may dump core: it was NOT seen that one is prevented")
    with child(*opened, f"print(ctypes.CDLL(None).prctl({_PR_GET_DUMPABLE}), flush=True); os.abort()") as started:
        assert started.stdout is not None
        assert started.stdout.read() == b"0\n"
        _, status = os.waitpid(started.pid, 0)
        started.returncode = 0
    assert os.WIFSIGNALED(status)
    assert not os.WCOREDUMP(status)
    assert not list(opened[0].glob("core*"))


def test_what_a_process_with_a_key_forks_or_starts_makes_none_either(opened: tuple[Path, str]) -> None:
    forks = (
        "if not os.fork(): os.abort()\n"
        "print(os.WCOREDUMP(os.wait()[1]))\n"
        "import subprocess\n"
        "print(subprocess.run(['sh', '-c', 'ulimit -Sc'], capture_output=True).stdout.decode(), end='')"
    )
    with child(*opened, forks) as started:
        assert started.communicate(timeout=60)[0] == b"False\n0\n"


def test_the_digits_of_a_key_file_are_nowhere_in_memory_once_it_is_read(opened: tuple[Path, str]) -> None:
    with child(*opened, "print('open', flush=True); sys.stdin.read()") as started:
        assert started.stdout is not None
        assert started.stdout.readline() == b"open\n"
        try:
            memory = b"\n".join(regions(started.pid))
        except PermissionError:
            pytest.skip("another process's memory cannot be read here: it was NOT searched")
        started.communicate(timeout=60)
    assert memory.find(SECRET) >= 0
    digits = SECRET.hex().encode()
    assert [memory.find(part) for part in (digits, digits[:32], digits[32:])] == [-1] * 3


def regions(pid: int) -> list[bytes]:
    """Return what a process has written into its memory, or could."""
    found = []
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            place, rights, *_ = line.split()
            if rights.startswith("rw") and "[v" not in line:
                start, end = (int(part, 16) for part in place.split("-"))
                memory.seek(start)
                found.append(memory.read(end - start))
    return found
