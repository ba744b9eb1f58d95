"""Faults that the engine makes, on one deployment one after the other: each acknowledged report is counted once.

The tests run in their order. `make test-containers-quick` runs the kills only. `pytest -s` prints the table; it is in
build/container-faults.md too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.containers import acts
from tests.containers.trial import HANDING_ON, SCHEDULES, SERVICES, Clocks, Trial, lay_out_trial

HOUR = 3600


@pytest.fixture(scope="module")
def laid_out(images: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Trial, Clocks]]:
    site, clocks = lay_out_trial(tmp_path_factory.mktemp("faults") / "site", "hushcount-faults", images["python"])
    trial = Trial(site)
    with site.running():
        yield trial, clocks
    Path("build").mkdir(exist_ok=True)
    Path("build/container-faults.md").write_text(trial.table(), encoding="utf-8")
    print(f"\n{trial.table()}")


@pytest.fixture
def trial(laid_out: tuple[Trial, Clocks]) -> Trial:
    return laid_out[0]


@pytest.fixture
def clocks(laid_out: tuple[Trial, Clocks]) -> Clocks:
    return laid_out[1]


def killed(trial: Trial, service: str) -> None:
    """Kill a container's program, and see that the engine has started it again."""
    before = acts.state(trial.site, service)["RestartCount"]
    acts.kill(trial.site, service)
    while acts.state(trial.site, service)["RestartCount"] == before:
        time.sleep(0.1)


@pytest.mark.parametrize("service", ["collector", "proxy"])
def test_killed_while_posts_arrive(trial: Trial, service: str) -> None:
    with trial.befalls(f"kill -9 of {service} while posts arrive"):
        killed(trial, service)


def test_killed_in_the_middle_of_their_jobs(trial: Trial) -> None:
    with trial.befalls("kill -9 of each schedule at work, and of what hands on"), ThreadPoolExecutor() as threads:
        now = time.time()
        at_work = [threads.submit(acts.kill_at_work, trial.site, party) for party in ("aux-server", "analyzer")]
        acts.wait_until_at(trial.site, "shuffler", "shuffle")
        acts.kill(trial.site, "shuffler")
        for handing_on in HANDING_ON:
            acts.wait_for_line(trial.site, handing_on.removesuffix("-hand-on"), "done: ", now)
            acts.kill(trial.site, handing_on)
        for killing in at_work:
            killing.result()
    trial.reconcile("kills")
    assert all(acts.state(trial.site, service)["RestartCount"] for service in (*SCHEDULES, *HANDING_ON))


@pytest.mark.long
@pytest.mark.parametrize("service", ["collector", "shuffler"])
def test_paused_for_longer_than_its_health_check_allows(trial: Trial, service: str) -> None:
    with trial.befalls(f"{service} paused for 20 s"), acts.paused(trial.site, service):
        time.sleep(20.0)


@pytest.mark.long
@pytest.mark.parametrize(("network", "services"), [("outside", ("proxy",)), ("front", ("collector",))])
def test_cut_off_from_clients(trial: Trial, network: str, services: tuple[str, ...]) -> None:
    with trial.befalls(f"network {network} taken away for 3 s"), acts.cut_off(trial.site, network, *services):
        time.sleep(3.0)
    trial.reconcile(f"network {network} that was away")


@pytest.mark.long
def test_a_journal_on_a_full_volume(trial: Trial) -> None:
    keeper = trial.site.container("keeper")
    with trial.befalls("volume of the journal full"), acts.filled(keeper, "/journal"):
        time.sleep(5.0)


@pytest.mark.long
def test_a_party_whose_volumes_are_full(trial: Trial) -> None:
    keeper, analyzer = trial.site.container("keeper"), trial.site.container("analyzer")
    with trial.befalls("/tmp of the analyzer full for 30 s"), acts.filled(analyzer, "/tmp"):  # noqa: S108
        time.sleep(30.0)
    with trial.befalls("volume of the analyzer's ledger full"), acts.filled(keeper, "/analyzer-state"):
        acts.wait_for_line(trial.site, "analyzer", "No space left", time.time())
    trial.reconcile("full volumes")


@pytest.mark.long
def test_clocks_that_jump_ahead(trial: Trial, clocks: Clocks) -> None:
    with trial.befalls("clock of the collector an hour ahead for 10 s"):
        clocks.set("collector", HOUR)
        time.sleep(10.0)
        clocks.set("collector", 0)
    with trial.befalls("clocks of shuffler and analyzer three days ahead, until both said so"):
        now = time.time()
        for service in ("shuffler", "analyzer"):
            clocks.set(service, 72 * HOUR)
        for service in ("shuffler", "analyzer"):
            acts.wait_for_line(trial.site, service, "all was done as at", now)
            clocks.set(service, 0)
    # What was written in the hour that was not reached yet is ahead of everything, and `doctor` may say so for an hour.
    trial.true_faults.update(("clock beside the ledger", "clock beside the log"))
    trial.reconcile("clocks that were ahead")


@pytest.mark.long
def test_each_container_ends_by_itself_when_it_is_told(trial: Trial) -> None:
    with trial.befalls("all containers told to stop, and started again"):
        # Not the keeper: the volumes in memory would go.
        trial.site.docker_compose("stop", *SERVICES)
        codes = {service: acts.state(trial.site, service)["State"]["ExitCode"] for service in SERVICES}
        assert codes == dict.fromkeys(SERVICES, 0)
        trial.site.up()
    trial.reconcile("all")
