"""A Flink cluster to be hurt: started for one trial, watched until it works, and a TaskManager of it killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deploy.flink.cluster import Cluster, flink, job_server, own_process
from tests.faults.collection import SECONDS


@contextmanager
def running(fetched: Path, directory: Path, restarts: int) -> Iterator[tuple[Cluster, tuple[str, ...]]]:
    """Start a cluster of two TaskManagers, of which one has room for a whole job, and yield it with a job's options."""
    directory.mkdir()
    with (
        flink(fetched, directory, task_managers=2, restarts=restarts) as cluster,
        job_server(fetched / "job-server-light.jar", directory, cluster.rest) as endpoint,
    ):
        workers = ("--environment_type=PROCESS", f"--environment_config={own_process()}")
        yield cluster, ("--runner", "PortableRunner", "--", f"--job_endpoint={endpoint}", "--parallelism=2", *workers)


def wait_until_working(cluster: Cluster, seconds: float = SECONDS) -> tuple[str, str]:
    """Return the job that runs, and the name of a TaskManager that has begun to work at it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for job, _, tasks in _vertices(cluster):
            for task in tasks:
                if task["status"] == "RUNNING":
                    return job, str(task["taskmanager-id"])
        time.sleep(0.05)
    raise AssertionError("no task ran")


def wait_until_drawn(cluster: Cluster, seconds: float = SECONDS) -> tuple[str, str]:
    """Return the job that runs, and a TaskManager that has drawn which bins are kept, when one has done so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for job in cluster.ask("/jobs/overview")["jobs"]:
            # Few evaluations: what follows the draw takes a second.
            for vertex in cluster.ask(f"/jobs/{job['jid']}")["vertices"] if job["state"] == "RUNNING" else ():
                if "keep" in vertex["name"] and vertex["tasks"]["FINISHED"]:
                    tasks = cluster.ask(f"/jobs/{job['jid']}/vertices/{vertex['id']}")["subtasks"]
                    drew = next(task for task in tasks if task["status"] == "FINISHED")
                    return str(job["jid"]), str(drew["taskmanager-id"])
        time.sleep(0.01)
    raise AssertionError("no task that draws ended while its job ran")


def _vertices(cluster: Cluster) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yield the running jobs' steps: job, name, tasks."""
    for job in cluster.ask("/jobs/overview")["jobs"]:
        if job["state"] == "RUNNING":
            for vertex in cluster.ask(f"/jobs/{job['jid']}")["vertices"]:
                tasks = cluster.ask(f"/jobs/{job['jid']}/vertices/{vertex['id']}")["subtasks"]
                yield str(job["jid"]), str(vertex["name"]), tasks


def kill_task_manager(cluster: Cluster, name: str) -> None:
    """Kill, by SIGKILL, the TaskManager of this name."""
    os.kill(cluster.task_managers[name].pid, signal.SIGKILL)


def failures(cluster: Cluster, job: str) -> int:
    """Return how often work of a job was lost and done again."""
    return len(cluster.ask(f"/jobs/{job}/exceptions")["exceptionHistory"]["entries"])
