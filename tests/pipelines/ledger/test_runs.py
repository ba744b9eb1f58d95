"""Which runs are under way on a ledger: a lock says it, and not who they were."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from pipelines.ledger.file import LedgerError
from pipelines.ledger.own_time import believed
from pipelines.ledger.runs import is_stale, living, under_way
from tests.pipelines.ledger.test_charging import NOW, made

HOLD = """
import sys, time
from pathlib import Path
from pipelines.ledger.runs import under_way
with under_way(Path(sys.argv[1])) as run:
    print(run, flush=True)
    time.sleep(600)
"""
DAY = timedelta(days=1)
HELD = replace(made(1, NOW), state="reserved", committed_at=None, pid=os.getpid())


def test_a_run_is_under_way_until_its_process_is_killed(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    command = [sys.executable, "-c", HOLD, str(ledger)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  # our own program
        assert process.stdout is not None
        # As in a container that starts again, its number is that of a process that lives.
        held = replace(HELD, run=process.stdout.readline().strip())
        assert living(ledger, [held], NOW) == [held]
        process.send_signal(signal.SIGKILL)
    assert living(ledger, [held], NOW) == []
    assert living(ledger, [done := replace(held, state="committed")], NOW) == [done]


def test_a_living_reservation_outlives_a_clock_that_is_ahead(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    with under_way(ledger) as run:
        held = replace(HELD, run=run)
        for ahead in (DAY, 400 * DAY):
            assert not is_stale(ledger, held, believed(NOW + ahead, NOW))
        assert is_stale(ledger, held, NOW + 4 * DAY)
    assert is_stale(ledger, held, NOW)


def test_files_that_killed_runs_left_are_removed_after_days(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    with under_way(ledger) as first:
        folder = tmp_path / "ledger.db.runs"
        for name in ("old", "young"):
            (folder / name).touch()
        for name in ("old", first):
            os.utime(folder / name, (0, 0))
        with under_way(ledger) as second:
            assert {path.name for path in folder.iterdir()} == {first, second, "young"}
    assert [path.name for path in folder.iterdir()] == ["young"]


def test_where_no_run_can_be_named_the_job_says_so(tmp_path: Path) -> None:
    (tmp_path / "ledger.db.runs").touch()
    with pytest.raises(LedgerError, match=r"ledger\.db\.runs"), under_way(tmp_path / "ledger.db"):
        pass
