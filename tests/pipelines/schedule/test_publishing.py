"""From an attempt to an output: wherever a publisher dies, and whoever publishes beside it, the output is the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from pipelines.deployment.settings import Deployment
from pipelines.files import moving, storage
from pipelines.handover.paths import Batch
from pipelines.log.entries import Decision, Deleting, Finished
from pipelines.log.log import Log
from pipelines.outputs.staging import SUMMARY
from pipelines.schedule.publishing import attempts_of, new_attempt, publish, publish_missing, sweep
from tests.support.decisions import CAMPAIGN, START, batch_of, closed, deployment_in, finished, path_of, taken
from tests.support.stub_store import StubStore
from tests.support.writes import Killed, kill

NAME = batch_of(0)
FILES = {"reports/part-00000-of-00002.blocks": b"one", "reports/part-00001-of-00002.blocks": b"two", SUMMARY: b"{}"}


@dataclass
class Place:
    """A store, and a batch in it that is shuffled and not published.

    Attributes:
        attempt, other: the attempt that is the output, and one of another run that was killed.
    """

    deployment: Deployment
    attempt: str
    other: str

    @property
    def log(self) -> Log:
        """Return the log as a new process reads it."""
        log = Log(self.deployment, "shuffler", CAMPAIGN)
        log.read()
        return log

    @property
    def out(self) -> str:
        return self.deployment.folder("shuffled", CAMPAIGN, NAME)

    def publish(self) -> bool:
        batch = Batch.named(CAMPAIGN, NAME)
        assert batch is not None
        return publish(self.deployment, self.log, batch, "shuffle", START)

    def files(self) -> dict[str, bytes]:
        """Return what lies in attempts and outputs, by its path in the store, without what is being written."""
        root = self.deployment.folder("log").rpartition("/")[0]
        return {
            storage.relative(path, root): storage.read_bytes(path)
            for folder in ("attempts", "shuffled")
            for path in storage.list_objects(f"{root}/{folder}")
            if not path.endswith(storage.TEMPORARY)
        }


def write(directory: str) -> None:
    for name, content in FILES.items():
        storage.write_whole(storage.join(directory, name), [content])


@pytest.fixture(params=["disk", "two disks", "objects"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    StubStore.clear()
    deployment_in(tmp_path)
    config = tmp_path / "deployment.toml"
    if request.param == "objects":
        config.write_text(config.read_text().replace('"store"', '"stub://bucket/store"'))
    if request.param == "two disks":
        monkeypatch.setattr(moving, "_renamed", lambda *_: False)
    yield shuffled(Deployment.read(config))
    StubStore.clear()


def shuffled(deployment: Deployment) -> Place:
    batch = Batch.named(CAMPAIGN, NAME)
    assert batch is not None
    attempts = [new_attempt(deployment, "shuffler", batch, "shuffle") for _ in range(2)]
    for attempt in attempts:
        write(attempt)
    log = Log(deployment, "shuffler", CAMPAIGN)
    log.decide(lambda _: closed(0, taken(0), batch={"reports": (path_of(0),)}), START)
    log.decide(lambda _: finished(0, "shuffle", attempts[0].rpartition("/")[2], reports=60), START)
    return Place(deployment, *attempts)


def require_published(place: Place) -> None:
    """Check that the output is the attempt's, that its summary names the entry, and that no attempt is left."""
    folder = place.attempt.rpartition("/")[2]
    done = place.log.fold.hops_of(NAME)["shuffle"]
    decision = place.log.entry(done.entry).decision
    assert isinstance(decision, Finished)
    summary = {**(decision.summary or {}), "log": asdict(done.entry)}
    files = place.files()
    mark = f"shuffled/{CAMPAIGN}/{NAME}/{SUMMARY}"
    assert json.loads(files.pop(mark)) == summary
    assert files == {f"shuffled/{CAMPAIGN}/{NAME}/{folder}/{name}": content for name, content in FILES.items()}


def test_an_output_has_the_attempt_that_the_log_names_and_no_other(place: Place) -> None:
    assert place.publish()
    require_published(place)
    before = place.files()
    assert place.publish()
    assert place.files() == before


STEPS = ((storage, ("rename", "copy", "write_whole", "remove", "remove_directory")), (moving.os, ("rename",)))


@contextmanager
def at_step(number: int, act: Callable[[], None], *, after: bool) -> Iterator[list[str]]:
    """Do something before or after the step of that number, once; yield the steps that were done."""
    done: list[str] = []

    def watched(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def step(*arguments: object) -> object:
            mine = len(done)
            done.append(name)
            if mine == number and not after:
                act()
            result = real(*arguments)
            if mine == number and after:
                act()
            return result

        return step

    with pytest.MonkeyPatch.context() as patch:
        for module, names in STEPS:
            for name in names:
                patch.setattr(module, name, watched(name, getattr(module, name)))
        yield done


@pytest.mark.parametrize("after", [False, True])
def test_a_publisher_that_dies_between_any_two_steps_is_gone_on_with(place: Place, after: bool) -> None:
    for number in range(100):
        with at_step(number, kill, after=after) as steps, suppress(Killed):
            assert place.publish()
            # Nobody died.
            assert len(steps) == number
            break
        # Nobody finds half an output.
        if storage.exists(storage.join(place.out, SUMMARY)):
            whole = storage.list_objects(storage.join(place.out, place.attempt.rpartition("/")[2]))
            assert len(whole) == len(FILES)
        assert place.publish()
        require_published(place)
        again(place)
    assert number >= 3


def again(place: Place) -> None:
    """Let the output be an attempt again, as before anybody published it."""
    storage.remove_directory(place.out)
    for attempt in (place.attempt, place.other):
        write(attempt)


@pytest.mark.parametrize("after", [False, True])
def test_two_publish_at_once(place: Place, after: bool) -> None:
    """The second one does all of its work between any two steps of the first."""

    def second() -> None:
        busy.append(place.publish())
        require_published(place)

    for number in range(100):
        busy: list[bool] = []
        with at_step(number, second, after=after):
            assert place.publish()
        require_published(place)
        if not busy:
            break
        assert busy == [True]
        again(place)
    assert number >= 3
    assert not place.log.fold.hops_of(NAME)["shuffle"].gone


def test_files_that_are_gone_are_said_once_and_not_written_empty(place: Place) -> None:
    storage.remove_directory(place.attempt)
    (problem,) = publish_missing(place.deployment, place.log, {NAME}, START)
    assert problem == f"words/{NAME}: what shuffle wrote is gone, and nobody here deleted it: restore {place.out}"
    assert place.log.fold.hops_of(NAME)["shuffle"].gone
    head = place.log.head
    assert publish_missing(place.deployment, place.log, {NAME}, START) == []
    assert place.publish()
    assert (place.log.head, storage.list_objects(place.out)) == (head, [])


def test_an_output_that_was_deleted_by_hand_is_said_once(place: Place) -> None:
    place.publish()
    storage.remove_directory(place.out)
    assert len(publish_missing(place.deployment, place.log, {NAME}, START)) == 1
    assert publish_missing(place.deployment, place.log, {NAME}, START) == []
    assert storage.list_objects(place.out) == []


def test_a_summary_that_was_deleted_by_hand_is_written_again(place: Place) -> None:
    place.publish()
    before = place.files()
    storage.remove(storage.join(place.out, SUMMARY))
    assert publish_missing(place.deployment, place.log, {NAME}, START) == []
    assert place.files() == before
    require_published(place)


def test_nothing_is_published_that_retention_deletes(place: Place) -> None:
    place.publish()
    storage.remove(storage.join(place.out, SUMMARY))
    before = place.files()
    place.log.decide(lambda _: Deleting(folder="shuffled", batches=(NAME,)), START)
    assert place.publish()
    assert publish_missing(place.deployment, place.log, {NAME}, START) == []
    assert place.files() == before
    assert not place.log.fold.hops_of(NAME)["shuffle"].gone


def test_who_publishes_looks_at_the_log_as_it_is_then(place: Place) -> None:
    """A run that slept for an hour does not bring back what was deleted meanwhile."""
    log, batch = place.log, Batch.named(CAMPAIGN, NAME)
    assert batch is not None
    place.publish()
    place.log.decide(lambda _: Deleting(folder="shuffled", batches=(NAME,)), START)
    storage.remove_directory(place.out)
    assert publish(place.deployment, log, batch, "shuffle", START)
    assert place.files() == {}


def test_attempts_that_can_be_no_output_are_swept(place: Place) -> None:
    root = place.deployment.folder("attempts", "shuffler", CAMPAIGN)
    later, stranger = (f"{root}/{name}.shuffle/{'5' * 16}" for name in (batch_of(1), batch_of(2)))
    for attempt in (later, stranger):
        write(attempt)
    decisions: list[Decision] = [
        closed(1, taken(1), batch={"reports": (path_of(1),)}), closed(2, taken(2), batch={"reports": (path_of(2),)}),
    ]  # fmt: skip
    for decision in decisions:
        place.log.decide(lambda _, decision=decision: decision, START)  # type: ignore[misc]
    place.publish()
    sweep(place.deployment, place.log, place.log.fold, attempts_of(place.deployment, "shuffler")[CAMPAIGN])
    assert {path.split("/")[3].partition(".")[0] for path in place.files() if path.startswith("attempts")} == {
        batch_of(1),
        batch_of(2),
    }


def test_an_attempt_is_not_swept_that_another_run_publishes_meanwhile(place: Place) -> None:
    """Its entry came after the look of the one who sweeps."""
    log = Log(place.deployment, "shuffler", CAMPAIGN)
    fold = log.read()
    log.decide(lambda _: closed(1, taken(1), batch={"reports": (path_of(1),)}), START)
    attempt = f"{place.deployment.folder('attempts', 'shuffler', CAMPAIGN)}/{batch_of(1)}.shuffle/{'5' * 16}"
    write(attempt)
    log.decide(lambda _: finished(1, "shuffle", "5" * 16, reports=60), START)
    folders = attempts_of(place.deployment, "shuffler")[CAMPAIGN]
    sweep(place.deployment, log, fold, folders)
    assert len(storage.list_objects(attempt)) == len(FILES)
    sweep(place.deployment, log, log.fold, folders)
    assert storage.list_objects(attempt) == []


def test_a_disk_with_an_empty_folder_of_the_output_is_published_to(tmp_path: Path) -> None:
    place = shuffled(deployment_in(tmp_path))
    target = Path(place.out, place.attempt.rpartition("/")[2])
    target.mkdir(parents=True)
    assert place.publish()
    require_published(place)
