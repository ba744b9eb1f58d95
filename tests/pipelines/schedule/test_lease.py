"""The lease: a second run of the same parties leaves or waits; nobody is locked out by one that is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import pytest

from pipelines.deployment.settings import Deployment
from pipelines.files import leases as lease_module
from pipelines.files import storage
from pipelines.files.leases import Patience
from pipelines.files.storage_errors import StorageError
from pipelines.schedule.run import AnotherRun, leased
from tests.shuffler.collector.running import wait_for
from tests.support.decisions import deployment_in

QUICK = Patience(raised=0.05, still=0.5, look=0.02)
WAIT = 60.0


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return deployment_in(tmp_path)


@pytest.fixture
def path(deployment: Deployment) -> Path:
    return Path(deployment.folder("log", "shuffler+aux-server+analyzer.lease.json"))


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every lease be of another machine, of which nobody here can tell whether its process lives."""
    monkeypatch.setattr(lease_module, "_boot", lambda: "")


def leave(path: Path, **fields: object) -> None:
    """Leave the lease of a run that was killed, or stopped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lease = lease_module.Lease(owner="f" * 16, counter=7, boot=lease_module._boot(), process="")
    path.write_text(lease.model_copy(update=fields).model_dump_json())


def taken(deployment: Deployment, *, wait: bool) -> float:
    """Return how long it took until the lease was held."""
    began = monotonic()
    with leased(deployment, wait, QUICK):
        return monotonic() - began


def test_a_lease_is_there_while_a_run_is_at_work_and_no_longer(deployment: Deployment, path: Path) -> None:
    with leased(deployment, False, QUICK):
        first = path.read_bytes()
        wait_for(lambda: path.read_bytes() != first, WAIT)
    assert not path.exists()
    with suppress(KeyboardInterrupt), leased(deployment, False, QUICK):
        raise KeyboardInterrupt
    assert not path.exists()


def test_the_parties_of_another_deployment_have_a_lease_of_their_own(tmp_path: Path, deployment: Deployment) -> None:
    config = tmp_path / "deployment.toml"
    with leased(deployment, False, QUICK):
        config.write_text(f'parties = ["shuffler"]\n{config.read_text()}')
        assert taken(Deployment.read(config), wait=False) < QUICK.still


def test_a_second_run_on_this_machine_leaves_at_once(deployment: Deployment, path: Path) -> None:
    with leased(deployment, False, QUICK):
        began = monotonic()
        with pytest.raises(AnotherRun, match="another run is at work, by its lease"):
            taken(deployment, wait=False)
        assert monotonic() - began < QUICK.still
        assert path.exists()


@pytest.mark.usefixtures("elsewhere")
def test_a_second_run_on_another_machine_leaves_when_it_saw_the_counter_move(deployment: Deployment) -> None:
    with leased(deployment, False, QUICK):
        began = monotonic()
        with pytest.raises(AnotherRun):
            taken(deployment, wait=False)
        assert monotonic() - began < QUICK.still


@pytest.mark.parametrize("machine", ["this", "another"])
def test_who_waits_begins_when_the_other_ended(
    deployment: Deployment, machine: str, request: pytest.FixtureRequest
) -> None:
    if machine == "another":
        request.getfixturevalue("elsewhere")
    order: list[str] = []
    with leased(deployment, False, QUICK):

        def second() -> None:
            with leased(deployment, True, QUICK):
                order.append("second")

        thread = Thread(target=second)
        thread.start()
        # For longer than a lease that stands still is waited for.
        Event().wait(2 * QUICK.still)
        order.append("first")
    thread.join(WAIT)
    assert order == ["first", "second"]


@pytest.mark.usefixtures("elsewhere")
def test_a_lease_that_stands_still_is_taken_over(deployment: Deployment, path: Path) -> None:
    for wait in (False, True):
        leave(path)
        assert taken(deployment, wait=wait) >= QUICK.still
        assert not path.exists()


def test_a_process_of_this_machine_is_waited_for_as_long_as_it_is_there(deployment: Deployment, path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stopped:
        leave(path, process=lease_module._process(stopped.pid))
        # It may go on at any time: who does not wait leaves it alone.
        with pytest.raises(AnotherRun):
            taken(deployment, wait=False)
        assert taken(deployment, wait=True) >= QUICK.still
        leave(path, process=lease_module._process(stopped.pid))
        stopped.kill()
    assert taken(deployment, wait=True) < QUICK.still
    # Its number may be another process's by now.
    leave(path, process=f"{os.getpid()}-1")
    assert taken(deployment, wait=False) < QUICK.still


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b'{"owner": "x"}', b"\xff"])
def test_a_file_that_is_no_lease_is_taken_over_at_once(deployment: Deployment, path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert taken(deployment, wait=False) < QUICK.still


def test_to_delete_it_is_always_allowed(deployment: Deployment, path: Path) -> None:
    """The one whose lease it was goes on, and leaves that of the next one alone."""
    with leased(deployment, False, QUICK):
        path.unlink()
        with leased(deployment, False, QUICK):
            mine = path.read_text()
            wait_for(lambda: path.read_text() != mine, WAIT)
            owner = lease_module.Lease.model_validate_json(path.read_text()).owner
            assert owner in mine
    assert not path.exists()
    with leased(deployment, False, QUICK):
        path.unlink()
        # Nobody else took it: it is there again.
        wait_for(path.exists, WAIT)
    assert not path.exists()


def test_who_lost_its_lease_does_not_take_it_back(deployment: Deployment, path: Path) -> None:
    with leased(deployment, False, QUICK):
        leave(path, owner="0" * 16)
        other = path.read_bytes()
        Event().wait(6 * QUICK.raised)
        assert path.read_bytes() == other
    assert path.read_bytes() == other


@pytest.mark.parametrize("error", [StorageError("connection reset"), OSError(5, "Input/output error")])
def test_a_store_that_is_away_for_a_while_ends_nothing(
    deployment: Deployment, path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    real, failed = storage.write_whole, Event()

    def away(*_: object) -> None:
        failed.set()
        raise error

    def back(name: str, write: Callable[..., None]) -> None:
        monkeypatch.setattr(storage, name, write)

    with leased(deployment, False, QUICK):
        before = path.read_bytes()
        back("write_whole", away)
        assert failed.wait(WAIT)
        assert path.read_bytes() == before
        back("write_whole", real)
        wait_for(lambda: path.read_bytes() != before, WAIT)
        # It ends with a store that is away.
        back("remove", away)
    assert path.exists()
    monkeypatch.undo()
    # Its next look, in a watch, is not held up by it.
    assert taken(deployment, wait=False) < QUICK.still
