"""Every job on a Flink cluster of containers, as deploy/kubernetes starts one: make test-containers.

What comes out is what the engine within one process gives. A TaskManager that is killed with its workers costs time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.containers.engine import docker
from tests.containers.flink import DATA, Flink, cluster
from tests.faults.collection import Collection, collect
from tests.faults.flink_faults import failures, wait_until_working
from tests.support import streams
from tests.support.jobs import Chain
from tests.support.streams import FIRST, Collected, require_equal

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
def collected(tmp_path_factory: pytest.TempPathFactory) -> Collected:
    """A window of a collector, for a job that streams."""
    made = streams.collect(tmp_path_factory.mktemp("streaming") / "collected")
    made.segment(FIRST, "one-1", 0, 300)
    return made


@pytest.fixture(scope="module")
def flink(
    flink_images: dict[str, str], collection: Collection, collected: Collected, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Flink]:
    """The cluster, with the input of all jobs. Each party's workers have its own key, and the shuffler's have none."""
    directories = (collection.chain.keys, collected.chain.keys)
    keys = {
        party: "".join(path.read_text() for keys in directories for path in keys.glob(f"{role}-*.key"))
        for party, role in (("analyzer", "analyzer"), ("aux-server", "aux_server"))
    }
    with cluster(flink_images, tmp_path_factory.mktemp("flink"), keys) as made:
        for root in (collection.chain.campaign_path.parent, collected.store.parent):
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


def test_a_job_that_streams_closes_a_window(flink: Flink, collected: Collected, tmp_path: Path) -> None:
    chain = Chain(DATA / "collected" / collected.chain.campaign_path.name, KEYS)
    here = replace(collected, chain=chain, store=DATA / "collected" / collected.store.name)
    words = here.arguments(DATA / "streamed", "--every", "1s", *flink.options("analyzer"))
    with flink.started("analyzer", *words) as command:
        last = f"streamed/{FIRST.name}/results/summary.json"
        flink.wait_until(lambda: flink.holds(last), "the window is not closed")
        docker("kill", "--signal=TERM", command.get_container_id())
        flink.ended(command)
    window = flink.data.take("streamed", tmp_path / "out") / FIRST.name
    require_equal(window, collected.batch(collected.store / FIRST.name, tmp_path / "batch"))
