"""A Python worker is killed in the middle of a job: time is lost, or the job fails in one sentence with no output."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.flink.cluster import Cluster, flink, job_server, worker_pool
from tests.faults.collection import SECONDS, Collection, assert_failed_in_one_sentence, finished, started
from tests.faults.conftest import Note
from tests.faults.processes import kill_a_worker

PROCESSES = ("--", "--direct_num_workers=2", "--direct_running_mode=multi_processing")
APART = ("shuffle", "analyze", "aux-server")


@dataclass(frozen=True)
class Pool:
    """A cluster whose Python workers are processes of a pool.

    Attributes:
        cluster: the cluster.
        options: of a job, for it.
        restarts: how often the cluster may start a job's work again.
    """

    cluster: Cluster
    options: tuple[str, ...]
    restarts: int


@pytest.fixture(params=[0, 5], ids=["no restarts", "restarts"])
def pool(request: pytest.FixtureRequest, fetched: Path, tmp_path: Path) -> Iterator[Pool]:
    directory = tmp_path / "flink"
    directory.mkdir()
    with (
        flink(fetched, directory, task_managers=2, restarts=request.param) as cluster,
        job_server(fetched / "job-server-light.jar", directory, cluster.rest) as endpoint,
        worker_pool(directory) as address,
    ):
        workers = ("--environment_type=EXTERNAL", f"--environment_config={address}")
        options = ("--runner", "PortableRunner", "--", f"--job_endpoint={endpoint}", "--parallelism=2", *workers)
        yield Pool(cluster, options, request.param)


@pytest.mark.parametrize("job", APART)
def test_a_killed_worker_of_a_pool(collection: Collection, pool: Pool, tmp_path: Path, note: Note, job: str) -> None:
    out = tmp_path / "out"
    with started(*collection.arguments(job, out), *pool.options) as process:
        kill_a_worker(os.getpid(), SECONDS)
        _, told = process.communicate(timeout=SECONDS)
    outcome = "work was done again; the same result"
    # Work that is done again costs time, and must not cost the job.
    assert process.returncode == 0 or not pool.restarts, told
    if process.returncode:
        assert_failed_in_one_sentence(process, told, "released nothing; the input is untouched")
        assert not out.exists()
        finished(*collection.arguments(job, out), *pool.options)
        outcome = "status 1, no output; run again: the same result"
    collection.assert_same(job, out)
    collection.assert_input_intact()
    note("kill -9 a Python worker of a pool", job, outcome)


@pytest.mark.parametrize("job", APART)
def test_a_killed_worker_of_the_embedded_runner(collection: Collection, tmp_path: Path, note: Note, job: str) -> None:
    out = tmp_path / "out"
    with started(*collection.arguments(job, out), *PROCESSES) as process:
        kill_a_worker(process.pid, SECONDS)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 1, told
    assert "Traceback" not in told
    assert told.splitlines()[-1].endswith("input is untouched: a worker process ended in the middle of its work")
    assert sorted(tmp_path.iterdir()) == []
    finished(*collection.arguments(job, out), *PROCESSES)
    collection.assert_same(job, out)
    collection.assert_input_intact()
    note("kill -9 a worker of FnApiRunner, processes", job, "status 1, no output; run again: the same result")
