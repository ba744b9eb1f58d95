"""Every job on a Flink cluster of containers, as deploy/kubernetes starts one: make test-containers.

What comes out is what the engine within one process gives. A TaskManager that is killed with its workers costs time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.containers.engine import docker
from tests.containers.flink import DATA, Flink, cluster
from tests.faults.collection import Collection, collect
from tests.faults.flink_faults import failures, wait_until_working
from tests.support.collecting import collect as collect_window
from tests.support.jobs import Chain, summary
from tests.support.site import Site, values

LISTED = {"alpha": 3000, "beta": 2000, "gamma": 1000}
PARTIES = {"shuffle": "shuffler", "aux-server": "aux-server", "analyzer": "analyzer", "analyze": "analyzer"}
"""Whose job it is, and in whose image it runs."""
KEYS = Path("env:HUSHCOUNT_KEYS")

# What is expected comes of Beam's own engine.
pytestmark = [pytest.mark.beam, pytest.mark.long]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """What was collected, and what came of every job in this process."""
    return collect(tmp_path_factory.mktemp("collection"), LISTED)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A deployment with a window that waits, for a job that streams."""
    made = Site(tmp_path_factory.mktemp("streaming") / "site", settings='parties = ["shuffler", "analyzer"]')
    collect_window(made.store, made.campaign, values(300), day=-2)
    made.config.write_text(f'keys = "env:HUSHCOUNT_KEYS"\n{made.config.read_text()}')
    return made


def write_stream(site: Site, options: tuple[str, ...]) -> None:
    """Write the deployment file of the stream: the same, with the engine of a party."""
    _, runner, _, *given = options
    engine = f"[engine]\nrunner = {json.dumps(runner)}\noptions = {json.dumps(given)}\n"
    (site.root / "stream.toml").write_text(f"{site.config.read_text()}\n{engine}")


@pytest.fixture(scope="module")
def flink(
    flink_images: dict[str, str], collection: Collection, site: Site, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Flink]:
    """The cluster, with the input of all jobs. Each party's workers have its own key, and the shuffler's have none."""
    directories = (collection.chain.keys, site.keys)
    keys = {
        party: "".join(path.read_text() for keys in directories for path in keys.glob(f"{role}-*.key"))
        for party, role in (("analyzer", "analyzer"), ("aux-server", "aux_server"))
    }
    with cluster(flink_images, tmp_path_factory.mktemp("flink"), keys) as made:
        write_stream(site, made.options("analyzer"))
        for root in (collection.chain.campaign_path.parent, site.root):
            made.data.put(root, root.name)
        yield made


def there(collection: Collection) -> Collection:
    """Return the collection with the paths that containers know."""
    path = collection.chain.campaign_path
    return replace(collection, chain=Chain(DATA / path.parent.name / path.name, KEYS))


def arguments(flink: Flink, collection: Collection, job: str, out: str) -> tuple[str, ...]:
    return (*there(collection).arguments(job, DATA / out), *flink.options(PARTIES[job]))


@pytest.mark.parametrize("job", ["shuffle", "aux-server", "analyzer"])
def test_a_job_gives_what_it_gives_in_one_process(
    flink: Flink, collection: Collection, tmp_path: Path, job: str
) -> None:
    before = flink.ask("/overview")["jobs-finished"]
    flink.hushcount(PARTIES[job], *arguments(flink, collection, job, job))
    assert flink.ask("/overview")["jobs-finished"] > before
    collection.assert_same(job, flink.data.take(job, tmp_path / job))


def test_a_killed_task_manager_with_its_workers_costs_time_only(
    flink: Flink, collection: Collection, tmp_path: Path
) -> None:
    with flink.started("analyzer", *arguments(flink, collection, "analyze", "killed")) as command:
        job, _ = wait_until_working(flink)
        flink.kill("task-manager-1")
        flink.ended(command)
    # Flink lost work and did it again: the kill was not too late to matter.
    assert failures(flink, job)
    flink.wait_until(flink.met, "the TaskManager has not come back")
    collection.assert_same("analyze", flink.data.take("killed", tmp_path / "killed"))


def test_a_stream_carries_out_what_a_run_decides(flink: Flink, site: Site, tmp_path: Path) -> None:
    with flink.started(
        "analyzer", "job", "stream", "--config", DATA / "site" / "stream.toml", "--every", "1s"
    ) as command:
        flink.wait_until(lambda: flink.holds("site/store/orders/analyzer/stream.lease.json"), "no stream is at work")
        flink.hushcount("analyzer", "run", "--config", DATA / "site" / "deployment.toml")
        docker("kill", "--signal=TERM", command.get_container_id())
        flink.ended(command)
    # The run has no engine of its own there, and the order was carried out.
    assert flink.holds("site/store/orders/analyzer/0000000001.done")
    results = flink.data.take("site/store/results/words", tmp_path / "results")
    assert summary(results / site.batch(-2))["received"] == 300
