"""Who is killed while a cluster runs leaves none of its processes behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from deploy.flink import cluster
from tests.faults.conftest import Note
from tests.faults.processes import descendants, is_alive


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_no_part_of_a_cluster_outlives_who_started_it(fetched: Path, note: Note, sent: signal.Signals) -> None:
    command = [sys.executable, cluster.__file__, "--engines", str(fetched)]
    with Popen(command, stdout=PIPE, text=True) as process:  # noqa: S603  # our own program
        assert process.stdout is not None
        assert process.stdout.readline().startswith("hushcount JOB")
        parts = descendants(process.pid)
        # JobManager, two TaskManagers, job server, worker pool, and a reaper for each.
        assert len(parts) >= 10
        os.kill(process.pid, sent)
    end = time.monotonic() + 20.0
    while any(map(is_alive, parts)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not [pid for pid in parts if is_alive(pid)]
    note(f"{sent.name} to who started a cluster", "none", "no process is left")
