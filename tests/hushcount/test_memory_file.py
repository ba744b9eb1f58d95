"""The file of a client's memory and the process around it: power cuts, and processes that fork."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hushcount.formats import client_files, whole_files
from hushcount.memory import ClientMemory

KEY = bytes(32)


def test_an_answers_name_is_on_the_disk_before_it_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes were synced and the directory was not: after a power cut the old file, or none, answered anew."""
    done: list[tuple[str, Path]] = []
    replace, sync = os.replace, whole_files.sync

    def replaced(source: Path, target: Path) -> None:
        replace(source, target)
        done.append(("replaced", Path(target)))

    def synced(path: Path) -> None:
        sync(path)
        done.append(("synced", path))

    monkeypatch.setattr(os, "replace", replaced)
    monkeypatch.setattr(client_files, "sync", synced)
    path = tmp_path / "memory"
    assert ClientMemory(path).keep(KEY, b"answer") == b"answer"
    assert done == [("replaced", path), ("synced", tmp_path)]


FORKED = """
    import os, signal, sys, threading
    from pathlib import Path
    from hushcount.formats import client_files
    from hushcount.memory import ClientMemory

    held, go_on, write = threading.Event(), threading.Event(), client_files.write_private

    def slow(path, what, text):
        held.set()
        go_on.wait(120)
        write(path, what, text)

    client_files.write_private = slow
    kept = ClientMemory(Path(sys.argv[1]))
    thread = threading.Thread(target=kept.keep, args=(bytes(32), b"first"))
    thread.start()
    held.wait(120)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        client_files.write_private = write
        signal.alarm(120)
        assert kept.keep(bytes(32), b"second") == b"first"
        # The file that it inherited open must not keep the parent out: it lives until the parent was in.
        os.read(reading, 1)
        os._exit(0)
    go_on.set()
    thread.join()
    signal.alarm(120)
    client_files.write_private = write
    assert kept.keep(b"1" * 32, b"third") == b"third"
    os.write(writing, b"1")
    _, status = os.waitpid(child, 0)
    sys.exit(status != 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_process_that_forks_while_a_thread_keeps_an_answer_hangs_on_neither_side(tmp_path: Path) -> None:
    """A web server's worker: its copy of the lock was held for ever by a thread that it does not have."""
    script = textwrap.dedent(FORKED)
    command = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "memory")]
    ran = subprocess.run(command, timeout=300, capture_output=True, text=True, check=False)  # noqa: S603  # our script
    assert (ran.returncode, ran.stderr) == (0, "")
