"""Real engines, started once for the session, and one collection that all of them work on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.flink.cluster import Cluster, flink, job_server, own_process, worker_pool
from tests.support.jobs import Chain, new_campaign, new_keys, values_of, write_lines
from tests.support.records import read_rows, write_envelopes

LISTED = {"alpha": 9000, "beta": 6000, "gamma": 4000, "delta": 2500, "größe": 1200, "nobody": 0}
POPULAR = {"plantedsecret": 900, "zweiter Fund, ü": 700}
"""Values outside the dictionary that so many send that the keep rule keeps them for certain."""
RARE = {f"raresecret{index}": 1 for index in range(20)}
"""Values outside it that one client sends: all together kept with probability below 1e-6."""
TRUTH = {**LISTED, **POPULAR, **RARE}
TOTAL = sum(TRUTH.values())
COPIES = 500
"""Records of each stream that the collector stored twice."""

Engines = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Servers:
    """Where the job server of the cluster and its workers are."""

    cluster: Cluster
    options: Engines


def pytest_configure() -> None:
    """End on SIGTERM as on Ctrl-C: with fixtures undone, and with the engines that Beam starts by itself stopped."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def fetched() -> Path:
    """Where deploy/flink/fetch.py put the engines."""
    found = Path(os.environ.get("ENGINES", "build/engines")).absolute()
    for name in ("job-server.jar", "job-server-light.jar", "flink", "prism"):
        if not (found / name).exists():
            pytest.exit(f"{found / name} is missing: make test-engines fetches it", returncode=1)
    return found


@pytest.fixture(scope="session")
def servers(fetched: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """A cluster of a JobManager and two TaskManagers, its job server and a pool of Python workers."""
    directory = tmp_path_factory.mktemp("flink")
    with (
        flink(fetched, directory, task_managers=2) as cluster,
        job_server(fetched / "job-server.jar", directory, cluster.rest) as sending,
        job_server(fetched / "job-server-light.jar", directory, cluster.rest) as light,
        worker_pool(directory) as pool,
    ):
        common = ("--runner", "PortableRunner", "--", "--parallelism=2")
        yield Servers(
            cluster,
            {
                "Flink, worker pool": (
                    *common,
                    f"--job_endpoint={light}",
                    "--environment_type=EXTERNAL",
                    f"--environment_config={pool}",
                ),
                "Flink, processes": (
                    *common,
                    f"--job_endpoint={sending}",
                    "--environment_type=PROCESS",
                    f"--environment_config={own_process()}",
                ),
            },
        )


@pytest.fixture(scope="session")
def options(fetched: Path, servers: Servers) -> Engines:
    """Options of a job by the name of an engine."""
    jar = f"--flink_job_server_jar={fetched / 'job-server.jar'}"
    return {
        "FnApiRunner": (),
        "FnApiRunner, processes": ("--", "--direct_num_workers=2", "--direct_running_mode=multi_processing"),
        "Prism": ("--runner", "PrismRunner", "--", f"--prism_location={fetched / 'prism'}"),
        "Flink, embedded": ("--runner", "FlinkRunner", "--", jar, "--parallelism=2"),
        **servers.options,
    }


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """Both streams, with copies among the envelopes, and shuffled once. Nobody writes to these files."""
    root = tmp_path_factory.mktemp("collected")
    keys, dictionary = new_keys(root / "keys"), write_lines(root / "dictionary.txt", LISTED)
    path = new_campaign(root / "engines.json", keys, mechanism="ais", dictionary=dictionary, discovery=1.0)
    made = Chain(path, keys)
    made.encode(write_lines(root / "values.txt", values_of(TRUTH)))
    copy_some(made)
    made.shuffle()
    return made


def copy_some(chain: Chain) -> None:
    """Store some envelopes of each stream a second time, in a file of its own, and drop the count of a clean input."""
    encoded = chain.path("encoded")
    for stream in ("reports", "discovery"):
        rows = read_rows(encoded / stream)
        write_envelopes(encoded, chain.campaign, stream, rows[:COPIES], "copies")
    (encoded / "summary.json").unlink()
