"""What is killed in the middle of a job costs time, never a report: the same result, or a failure and no output."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.faults.collection import JOBS, SECONDS, Collection, assert_failed_in_one_sentence, finished, started
from tests.faults.conftest import Note
from tests.faults.flink_faults import failures, kill_task_manager, running, wait_until_working

APART = tuple(job for job in JOBS if job != "discover")
"""Jobs of one pipeline each: discover by both parties is the last two, one after the other."""


@pytest.mark.parametrize("job", APART)
def test_with_restarts_a_killed_task_manager_changes_nothing(
    collection: Collection, fetched: Path, tmp_path: Path, note: Note, job: str
) -> None:
    out = tmp_path / "out"
    with running(fetched, tmp_path / "flink", restarts=5) as (cluster, options):
        with started(*collection.arguments(job, out), *options) as process:
            found, victim = wait_until_working(cluster)
            kill_task_manager(cluster, victim)
            _, told = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, told
        # Flink lost work and did it again: the kill was not too late to matter.
        assert failures(cluster, found)
    collection.assert_same(job, out)
    collection.assert_input_intact()
    note("kill -9 a TaskManager, restarts", job, "work was lost and done again; the same result")


@pytest.mark.parametrize("job", APART)
def test_without_restarts_the_job_fails_whole_and_runs_again(
    collection: Collection, fetched: Path, tmp_path: Path, note: Note, job: str
) -> None:
    out = tmp_path / "out"
    with running(fetched, tmp_path / "flink", restarts=0) as (cluster, options):
        with started(*collection.arguments(job, out), *options) as process:
            kill_task_manager(cluster, wait_until_working(cluster)[1])
            _, told = process.communicate(timeout=SECONDS)
        assert_failed_in_one_sentence(process, told, "released nothing; the input is untouched")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["flink"]
        collection.assert_input_intact()
        finished(*collection.arguments(job, out), *options)
    collection.assert_same(job, out)
    note("kill -9 a TaskManager, no restarts", job, "status 1, no output; run again: the same result")


@pytest.mark.parametrize("job", APART)
def test_a_killed_command_leaves_no_output_and_the_next_gives_the_result(
    collection: Collection, fetched: Path, tmp_path: Path, note: Note, job: str
) -> None:
    out = tmp_path / "out"
    with running(fetched, tmp_path / "flink", restarts=0) as (cluster, options):
        with started(*collection.arguments(job, out), *options) as process:
            wait_until_working(cluster)
            process.send_signal(signal.SIGKILL)
            process.wait(SECONDS)
        assert process.returncode == -signal.SIGKILL
        assert not out.exists()
        finished(*collection.arguments(job, out), *options)
    collection.assert_same(job, out)
    collection.assert_input_intact()
    note("kill -9 the command on Flink", job, "no output; run again: the same result")
