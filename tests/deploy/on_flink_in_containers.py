"""A Flink cluster of containers, each TaskManager with a pool of our workers: make test-images.

Skipped, with the reason, where no Docker engine runs. None has run it yet; what can be said of it without one is in
tests/deploy/test_flink_containers.py. Everything made here has the prefix `hushcount-test`, and is removed at the end.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.conftest import DEPLOY, ROOT
from tests.deploy.on_docker import docker, engine
from tests.support.jobs import Chain

__all__ = ["engine"]
NAME = "hushcount-test"
TASK_MANAGERS = (f"{NAME}-tm-0", f"{NAME}-tm-1")
_WAIT = 180.0


def flink_image() -> str:
    """Return the image that the Kubernetes manifests name."""
    (image,) = re.findall(r"^ *image: (flink:\S+)$", _manifest(), re.MULTILINE)
    return str(image)


def _manifest() -> str:
    return (DEPLOY / "kubernetes" / "engine" / "flink.yaml").read_text(encoding="utf-8")


def properties() -> str:
    """Return the cluster's settings, those of the Kubernetes manifests, as Flink's image takes them: without spaces.

    It removes them from each line, so that Java's options cannot be among these.
    """
    pattern = r"^ *((?:taskmanager|restart-strategy)\.[\w.-]+): \"?([^\"\n]+)\"?$"
    kept = re.findall(pattern, _manifest(), re.MULTILINE)
    lines = [("jobmanager.rpc.address", f"{NAME}-jm"), *kept]
    return "\n".join(f"{name}: {value.replace(' ', '')}" for name, value in lines)


def flink(name: str, role: str) -> tuple[str, ...]:
    """Return the words after docker by which a JobManager or a TaskManager is started.

    As the image's own user, who alone may write its settings, and with nothing of the party's mounted.
    """
    opened = " ".join(re.findall(r"--add-opens=\S+|-Dorg\S+", _manifest()))
    settings = (f"--env=FLINK_PROPERTIES={properties()}", f"--env=FLINK_ENV_JAVA_OPTS={opened}")
    return ("run", "--detach", *settings, f"--name={name}", f"--network={NAME}", flink_image(), role)


@pytest.fixture(scope="module")
def images() -> Iterator[dict[str, str]]:
    """The analyzer's image, its workers' and the job server's."""
    made = {part: f"{NAME}-{part}" for part in ("analyzer", "worker", "job-server")}
    build = ("build", "--quiet", "--file")
    docker(*build, DEPLOY / "images" / "analyzer.Dockerfile", "--tag", made["analyzer"], ROOT)
    recipe = DEPLOY / "images" / "flink-worker.Dockerfile"
    docker(*build, recipe, "--build-arg", f"PARTY={made['analyzer']}", "--tag", made["worker"], ROOT)
    docker(*build, DEPLOY / "images" / "job-server.Dockerfile", "--tag", made["job-server"], ROOT)
    yield made
    for tag in reversed(list(made.values())):
        docker("image", "rm", "--force", tag, check=False)


@pytest.fixture(scope="module")
def cluster(images: dict[str, str], chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A JobManager, two TaskManagers and a job server on a network of their own; yields the directory they share."""
    work = tmp_path_factory.mktemp("work")
    owner = chain.campaign_path.stat()
    run = ("run", "--detach", f"--user={owner.st_uid}:{owner.st_gid}", f"--volume={work}:/work")
    run += (f"--volume={chain.campaign_path.parent}:/in:ro",)
    docker("network", "create", NAME)
    try:
        docker(*flink(f"{NAME}-jm", "jobmanager"))
        for name in TASK_MANAGERS:
            docker(*flink(name, "taskmanager"))
            # In the TaskManager's network: to it the pool is on localhost.
            docker(*run, f"--name={name}-pool", f"--network=container:{name}", images["worker"])
        docker(
            *run, f"--name={NAME}-js", f"--network={NAME}", images["job-server"], f"--flink-master={NAME}-jm:8081",
            "--job-host=0.0.0.0", "--job-port=8099", "--artifact-port=8098", "--expansion-port=8097",
        )  # fmt: skip
        _wait_for_task_managers()
        yield work
    finally:
        names = [f"{NAME}-js", *(f"{name}-pool" for name in TASK_MANAGERS), *TASK_MANAGERS, f"{NAME}-jm"]
        docker("rm", "--force", *names, check=False)
        docker("network", "rm", NAME, check=False)


def _wait_for_task_managers() -> None:
    end = time.monotonic() + _WAIT
    while True:
        told = docker("exec", f"{NAME}-jm", "curl", "--silent", "localhost:8081/overview", check=False).stdout
        if told.startswith("{") and json.loads(told).get("taskmanagers") == len(TASK_MANAGERS):
            return
        assert time.monotonic() < end, f"no two TaskManagers: {told}"
        time.sleep(1.0)


def test_analyze_on_a_cluster_of_containers_counts_what_was_shuffled(
    cluster: Path, images: dict[str, str], chain: Chain
) -> None:
    owner = chain.campaign_path.stat()
    docker(
        "run", "--rm", f"--network={NAME}", f"--user={owner.st_uid}:{owner.st_gid}", f"--volume={cluster}:/work",
        f"--volume={chain.campaign_path.parent}:/in:ro", images["analyzer"], "analyze",
        "--campaign", f"/in/{chain.campaign_path.name}", "--input", f"/in/{chain.path('shuffled').name}",
        "--keys", "/in/keys", "--out", "/work/results", "--runner", "PortableRunner", "--",
        f"--job_endpoint={NAME}-js:8099", f"--artifact_endpoint={NAME}-js:8098",
        "--environment_type=EXTERNAL", "--environment_config=localhost:50000", "--parallelism=2",
    )  # fmt: skip
    summary = json.loads((cluster / "results" / "summary.json").read_text())
    shuffled = json.loads((chain.path("shuffled") / "summary.json").read_text())
    assert summary["accepted"] == shuffled["streams"]["reports"]["accepted"]
