"""What is killed in the middle of a job costs time, never a report: the same result, or a failure and no output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from deploy.flink.cluster import Cluster, flink, job_server, own_process
from tests.engines.conftest import fetched
from tests.support.jobs import Chain, files_under, new_campaign, new_keys, summary, values_of, write_lines
from tests.support.records import as_set, read_rows

TRUTH = {"alpha": 90_000, "beta": 60_000, "gamma": 50_000}
TOTAL = sum(TRUTH.values())
PROGRAM = (sys.executable, "-m", "pipelines.cli")
SECONDS = 240

__all__ = ["fetched"]


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """A collection whose jobs take seconds, shuffled and analysed once. Nobody writes to these files."""
    root = tmp_path_factory.mktemp("collected")
    keys, dictionary = new_keys(root / "keys"), write_lines(root / "dictionary.txt", TRUTH)
    made = Chain(new_campaign(root / "faults.json", keys, mechanism="ais", dictionary=dictionary), keys)
    made.encode(write_lines(root / "values.txt", values_of(TRUTH)))
    made.shuffle()
    made.analyze()
    return made


@contextmanager
def running(fetched: Path, directory: Path, restarts: int) -> Iterator[tuple[Cluster, tuple[str, ...]]]:
    """Start a cluster of two TaskManagers, of which one has room for a whole job, and yield it with a job's options."""
    directory.mkdir()
    with (
        flink(fetched / "flink", directory, task_managers=2, restarts=restarts) as cluster,
        job_server(fetched / "job-server.jar", directory, cluster.rest) as endpoint,
    ):
        workers = ("--environment_type=PROCESS", f"--environment_config={own_process()}")
        yield cluster, ("--runner", "PortableRunner", "--", f"--job_endpoint={endpoint}", "--parallelism=2", *workers)


def arguments(chain: Chain, job: str, out: Path) -> tuple[str, ...]:
    """Return the arguments of a job that writes to `out`."""
    source = chain.path("encoded" if job == "shuffle" else "shuffled")
    keys = () if job == "shuffle" else ("--keys", str(chain.keys))
    return (job, "--campaign", str(chain.campaign_path), "--input", str(source), "--out", str(out), *keys)


@contextmanager
def started(*options: str) -> Iterator[subprocess.Popen[str]]:
    """Start a command of ours, and end it."""
    process = subprocess.Popen(  # noqa: S603  # our own program
        [*PROGRAM, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until_working(cluster: Cluster) -> tuple[str, str]:
    """Return the job that runs, and the name of a TaskManager that has begun to work at it."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for job in cluster.ask("/jobs/overview")["jobs"]:
            for vertex in cluster.ask(f"/jobs/{job['jid']}")["vertices"]:
                for task in cluster.ask(f"/jobs/{job['jid']}/vertices/{vertex['id']}")["subtasks"]:
                    if task["status"] == "RUNNING" and job["state"] == "RUNNING":
                        return str(job["jid"]), str(task["taskmanager-id"])
        time.sleep(0.05)
    raise AssertionError("no task ran")


def kill_task_manager(cluster: Cluster, name: str) -> None:
    """Kill, by SIGKILL, the TaskManager of this name."""
    os.kill(cluster.task_managers[name].pid, signal.SIGKILL)


def assert_same(chain: Chain, job: str, out: Path) -> None:
    """Check that a result is that of the undisturbed run, to the report."""
    undisturbed = chain.path("shuffled" if job == "shuffle" else "results")
    assert summary(out) == summary(undisturbed)
    assert summary(out)["accepted"] == TOTAL
    if job == "shuffle":
        rows = read_rows(out / "reports")
        assert len(rows) == TOTAL
        assert as_set(rows) == as_set(read_rows(undisturbed / "reports"))
        return
    with np.load(out / "tally.npz") as got, np.load(undisturbed / "tally.npz") as expected:
        assert got.files == expected.files
        assert all((got[name] == expected[name]).all() for name in expected.files)


@pytest.mark.parametrize("job", ["shuffle", "analyze"])
def test_with_restarts_a_killed_task_manager_changes_nothing(
    chain: Chain, fetched: Path, tmp_path: Path, job: str
) -> None:
    before = files_under(chain.path("encoded")), files_under(chain.path("shuffled"))
    with running(fetched, tmp_path / "flink", restarts=5) as (cluster, options):
        with started(*arguments(chain, job, tmp_path / "out"), *options) as process:
            found, victim = wait_until_working(cluster)
            kill_task_manager(cluster, victim)
            _, told = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, told
        # Flink lost work and did it again: the kill was not too late to matter.
        assert cluster.ask(f"/jobs/{found}/exceptions")["exceptionHistory"]["entries"]
    assert_same(chain, job, tmp_path / "out")
    assert (files_under(chain.path("encoded")), files_under(chain.path("shuffled"))) == before


@pytest.mark.parametrize("job", ["shuffle", "analyze"])
def test_without_restarts_the_job_fails_whole_and_runs_again(
    chain: Chain, fetched: Path, tmp_path: Path, job: str
) -> None:
    before = files_under(chain.path("encoded")), files_under(chain.path("shuffled"))
    out = tmp_path / "out"
    with running(fetched, tmp_path / "flink", restarts=0) as (cluster, options):
        with started(*arguments(chain, job, out), *options) as process:
            kill_task_manager(cluster, wait_until_working(cluster)[1])
            _, told = process.communicate(timeout=SECONDS)
        assert process.returncode == 1, told
        assert "released nothing; the input is untouched" in " ".join(told.split())
        assert "Traceback" not in told
        assert sorted(path.name for path in tmp_path.iterdir()) == ["flink"]
        assert (files_under(chain.path("encoded")), files_under(chain.path("shuffled"))) == before
        with started(*arguments(chain, job, out), *options) as process:
            _, told = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, told
    assert_same(chain, job, out)


@pytest.mark.parametrize("job", ["shuffle", "analyze"])
def test_a_killed_command_leaves_no_output_and_the_next_gives_the_result(
    chain: Chain, fetched: Path, tmp_path: Path, job: str
) -> None:
    out = tmp_path / "out"
    with running(fetched, tmp_path / "flink", restarts=0) as (cluster, options):
        with started(*arguments(chain, job, out), *options) as process:
            wait_until_working(cluster)
            process.send_signal(signal.SIGKILL)
            process.wait(SECONDS)
        assert process.returncode == -signal.SIGKILL
        assert not out.exists()
        with started(*arguments(chain, job, out), *options) as process:
            _, told = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, told
    assert_same(chain, job, out)
