"""A log in a store: every decision stands once whoever else writes, and whatever of the answers is lost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread

import pytest

from hushcount.errors import FormatError, HushcountError, UsageError
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.storage_errors import StorageError
from pipelines.log import log as log_module
from pipelines.log.entries import Confirmed, Decision, GivenBack, Told
from pipelines.log.entry_files import write_entry
from pipelines.log.facts import Head
from pipelines.log.fold import Fold
from pipelines.log.log import Log, Logs
from tests.support.decisions import (
    CAMPAIGN,
    MINUTE,
    START,
    batch_of,
    closed,
    deployment_in,
    finished,
    hour,
    path_of,
    taken,
    told,
    told_in,
)


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return deployment_in(tmp_path)


@pytest.fixture
def log(deployment: Deployment) -> Log:
    return Log(deployment, "shuffler", CAMPAIGN)


def folder_of(deployment: Deployment) -> Path:
    return Path(deployment.folder("log", "shuffler", CAMPAIGN))


def entries_of(deployment: Deployment) -> Path:
    """Return the folder of the entries of the first generation."""
    return folder_of(deployment) / "000001"


def numbers_in(deployment: Deployment) -> list[int]:
    return sorted(int(path.stem) for path in entries_of(deployment).glob("*.json"))


def telling(id: str) -> Callable[[Fold], Decision | None]:
    """Return what puts a decision of a name unless it was put."""

    def wanted(fold: Fold) -> Decision | None:
        return None if id in told_in(fold) else told(id)

    return wanted


def kept(log: Log) -> Fold:
    """Return what another process reads, from the first entry on."""
    deployment = Deployment.read(Path(log._folder).parents[3] / "deployment.toml")
    return Log(deployment, log.party, log.campaign).read()


def test_reading_and_deciding_nothing_write_nothing(deployment: Deployment, log: Log) -> None:
    assert log.read() == Fold(CAMPAIGN, {"shuffler": log.head})
    assert log.decide(lambda _: None, START) is None
    assert Logs(deployment).read(CAMPAIGN).latest is None
    assert not Path(deployment.folder("log")).exists()


def test_the_first_decision_opens_the_log(deployment: Deployment, log: Log) -> None:
    entry = log.decide(telling("a"), START + 7 * MINUTE)
    assert entry is not None
    assert (entry.number, entry.at, log.head.digest) == (2, START + 7 * MINUTE, entry.digest)
    opened = log.entry(Head(1, 1))
    assert (opened.decision.kind, opened.before, entry.before) == ("opened", None, opened.digest)
    assert log.entry(Head(1, 2)) == entry
    assert log.decide(telling("a"), START) is None
    assert numbers_in(deployment) == [1, 2]
    assert kept(log) == log.fold


def test_who_finds_anothers_entry_decides_anew(deployment: Deployment, log: Log) -> None:
    other, asked = Log(deployment, "shuffler", CAMPAIGN), []

    def wanted(fold: Fold) -> Decision | None:
        asked.append(told_in(fold))
        if len(asked) < 4:
            other.decide(telling(f"other {len(asked)}"), START)
        return telling("mine")(fold)

    entry = log.decide(wanted, START)
    assert entry is not None
    assert asked == [[], *([f"other {number}" for number in range(1, last)] for last in (2, 3, 4))]
    assert told_in(kept(log)) == ["other 1", "other 2", "other 3", "mine"]

    def given_up(fold: Fold) -> Decision | None:
        other.decide(telling("the same"), START)
        return telling("the same")(fold)

    assert log.decide(given_up, START) is None
    written = [json.loads(path.read_text())["decision"] for path in entries_of(deployment).glob("*.json")]
    ids = [name for one in written for name in one.get("up", ())]
    assert ids.count("the same") == 1


@pytest.mark.parametrize("writers", [2, 16])
def test_of_many_threads_each_decision_stands_once(deployment: Deployment, writers: int) -> None:
    barrier, faults = Barrier(writers), list[BaseException]()

    def write(mine: int) -> None:
        try:
            log = Log(deployment, "shuffler", CAMPAIGN)
            barrier.wait()
            for number in range(4):
                # One of its own, and one that all want.
                log.decide(telling(f"{mine} {number}"), START)
                log.decide(telling(f"all {number}"), START)
        except BaseException as error:
            faults.append(error)

    threads = [Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    stands_once(deployment, {*(f"{mine} {number}" for mine in (*range(writers), "all") for number in range(4))})


def stands_once(deployment: Deployment, ids: set[str]) -> None:
    log = Log(deployment, "shuffler", CAMPAIGN)
    log.read()
    numbers = numbers_in(deployment)
    assert numbers == [*range(1, log.head.number + 1)]
    decisions = [log.entry(Head(1, number)).decision for number in numbers]
    assert Counter(one.kind for one in decisions) == {"opened": 1, "told": len(ids)}
    assert {name for one in decisions if isinstance(one, Told) for name in one.up} == ids


WRITER = """
import sys
from tests.pipelines.log.test_log import *
log = Log(Deployment.read(Path(sys.argv[1])), "shuffler", CAMPAIGN)
sys.stdin.read()
for number in range(int(sys.argv[3])):
    log.decide(telling(f"{sys.argv[2]} {number}"), START)
    log.decide(telling(f"all {number}"), START)
"""


@pytest.mark.parametrize("writers", [2, pytest.param(16, marks=pytest.mark.long)])
def test_of_many_processes_each_decision_stands_once(deployment: Deployment, tmp_path: Path, writers: int) -> None:
    arguments = [sys.executable, "-c", WRITER, tmp_path / "deployment.toml"]
    processes = [
        subprocess.Popen([*arguments, str(number), "10"], stdin=subprocess.PIPE)  # noqa: S603
        for number in range(writers)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
    assert [process.wait(120) for process in processes] == [0] * writers
    stands_once(deployment, {*(f"{mine} {number}" for mine in (*range(writers), "all") for number in range(10))})


@pytest.mark.parametrize("when", ["after", "before", "asked again"])
@pytest.mark.parametrize("faults", [1, 2])
def test_a_lost_answer_puts_nothing_twice(log: Log, monkeypatch: pytest.MonkeyPatch, when: str, faults: int) -> None:
    """The store fails before it wrote, or after; the caller tries again as long as it is told of a failure.

    Or its client asks again by itself, and is told that the name is taken.
    """
    log.decide(telling("first"), START)
    real, left = storage.put_absent, [faults]

    def failing(path: str, data: bytes) -> bool:
        if left[0] == 0:
            return real(path, data)
        left[0] -= 1
        if when != "before":
            real(path, data)
        if when == "asked again":
            return False
        raise StorageError("connection reset")

    monkeypatch.setattr(storage, "put_absent", failing)
    told = 0
    for number in range(3):
        while True:
            try:
                # It sees by itself that an entry is its own.
                assert log.decide(telling(f"{number}"), START) is not None
                break
            except StorageError:
                told += 1
    assert told == (faults if when == "before" else 0)
    assert told_in(kept(log)) == ["first", "0", "1", "2"]
    assert log.head.number == 5


def test_another_entry_is_not_taken_for_ones_own_whose_answer_was_lost(
    deployment: Deployment, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Log(deployment, "shuffler", CAMPAIGN)
    log.decide(telling("first"), START)
    real = storage.put_absent

    def failing(path: str, data: bytes) -> bool:
        monkeypatch.setattr(storage, "put_absent", real)
        other.decide(telling("other"), START)
        raise StorageError("connection reset")

    monkeypatch.setattr(storage, "put_absent", failing)
    entry = log.decide(telling("mine"), START)
    assert entry is not None
    assert entry.number == 4
    assert told_in(kept(log)) == ["first", "other", "mine"]


def test_a_log_that_is_restored_under_a_process_is_read_anew(deployment: Deployment, log: Log, tmp_path: Path) -> None:
    """Nothing follows an entry that is no more there."""
    folder, yesterday = folder_of(deployment), tmp_path / "yesterday"
    log.decide(telling("kept"), START)
    shutil.copytree(folder, yesterday)
    log.decide(telling("lost"), START)
    log.decide(telling("lost too"), START)
    shutil.rmtree(folder)
    shutil.copytree(yesterday, folder)
    asked: list[list[str]] = []

    def wanted(fold: Fold) -> Decision | None:
        asked.append(told_in(fold))
        return telling("new")(fold)

    assert log.decide(wanted, START) is not None
    assert asked == [["kept"]]
    assert told_in(kept(log)) == ["kept", "new"]
    # Now another history of the same length takes its place.
    shutil.rmtree(folder)
    shutil.copytree(yesterday, folder)
    Log(deployment, "shuffler", CAMPAIGN).decide(telling("other"), START)
    assert told_in(log.read()) == ["kept", "other"]


def test_a_log_that_is_restored_between_look_and_put_gets_no_entry_that_does_not_follow(
    deployment: Deployment, log: Log, tmp_path: Path
) -> None:
    folder, yesterday = folder_of(deployment), tmp_path / "yesterday"
    log.decide(telling("kept"), START)
    shutil.copytree(folder, yesterday)
    log.decide(telling("lost"), START)
    asked: list[list[str]] = []

    def restored(fold: Fold) -> Decision | None:
        asked.append(told_in(fold))
        if len(asked) == 1:
            shutil.rmtree(folder)
            shutil.copytree(yesterday, folder)
        return telling("new")(fold)

    assert log.decide(restored, START) is not None
    assert asked == [["kept", "lost"], ["kept"]]
    assert told_in(kept(log)) == ["kept", "new"]


def test_a_decision_that_the_log_does_not_allow_is_not_written(deployment: Deployment, log: Log) -> None:
    log.decide(lambda _: closed(0, taken(0), batch={"reports": (path_of(0),)}), START)
    log.decide(lambda _: finished(0, "shuffle", reports=60), START)
    before = log.fold
    for wrong in (GivenBack(batch=batch_of(0)), closed(0), closed(1, dropped={path_of(0): "too late"})):
        with pytest.raises(FormatError, match="entry 4 of the log of shuffler and words"):
            log.decide(lambda _, wrong=wrong: wrong, START)  # type: ignore[misc]  # mypy takes it for two arguments
        assert numbers_in(deployment) == [1, 2, 3]
        assert log.read() == kept(log) == before


def test_a_damaged_entry_stops_the_log_until_it_is_restored(deployment: Deployment, log: Log) -> None:
    log.decide(lambda _: closed(0, taken(0), batch={"reports": (path_of(0),)}), START)
    log.decide(lambda _: finished(0, "shuffle", reports=60), START)
    second = entries_of(deployment) / f"{2:010d}.json"
    right = second.read_bytes()
    other = Log(deployment, "shuffler", CAMPAIGN)
    for wrong, kind in (
        (b"", FormatError), (right[:-9], FormatError), (right.replace(b"60", b"61"), FormatError),
        (right.replace(b'"format":1', b'"format":2'), UsageError),
        (right.replace(b'"kind":"closed"', b'"kind":"folded"'), UsageError),
    ):  # fmt: skip
        second.write_bytes(wrong)
        for _ in range(2):
            with pytest.raises(kind):
                other.read()
            with pytest.raises(kind):
                other.decide(lambda _: Confirmed(), START)
        second.write_bytes(right)
        assert other.read() == log.fold
        assert numbers_in(deployment) == [1, 2, 3]
        other = Log(deployment, "shuffler", CAMPAIGN)


def test_an_entry_that_is_refused_leaves_nothing_of_itself_in_what_was_read(deployment: Deployment, log: Log) -> None:
    """A watch goes on with the right one as if it had read no other."""
    log.decide(lambda _: closed(0, taken(0)), START)
    other, third = Log(deployment, "shuffler", CAMPAIGN), entries_of(deployment) / f"{3:010d}.json"
    unknown = path_of(9)
    for wrong in (
        closed(1, taken(1), dropped={unknown: "too late"}),
        closed(1, taken(1), batch={"reports": (unknown,)}),
    ):
        third.write_bytes(write_entry(3, log.head.digest, START, wrong).data)
        with pytest.raises(FormatError, match="entry 3"):
            other.read()
        third.unlink()
    log.decide(lambda _: closed(1, taken(1)), START)
    assert other.read() == log.fold == kept(log)


def test_a_long_decision_lies_beside_the_log(deployment: Deployment, log: Log) -> None:
    dropped = {path_of(0, f"{number:080d}"): "too late" for number in range(1500)}
    manifests = tuple(
        taken(0, collector=f"c{number}").model_copy(
            update={"segments": {"reports": (part.model_copy(update={"name": path.rpartition("/")[2]}),)}}
        )
        for number, path in enumerate(dropped)
        for part in taken(0).segments["reports"]
    )
    entry = log.decide(lambda _: closed(0, *manifests, dropped=dropped), START)
    assert entry is not None
    (beside,) = (folder_of(deployment) / "lists").iterdir()
    assert max(path.stat().st_size for path in entries_of(deployment).glob("*.json")) < 1000 < beside.stat().st_size
    assert len(kept(log).dropped) == 1500
    assert kept(log) == log.fold
    content = beside.read_bytes()
    beside.write_bytes(content[:-2])
    with pytest.raises(HushcountError, match="names a file beside it with another content: restore that file"):
        kept(log)
    beside.unlink()
    with pytest.raises(FileNotFoundError):
        kept(log)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a checkpoint at every fifth entry."""
    monkeypatch.setattr(log_module, "_EVERY", 5)


def checkpoint(deployment: Deployment) -> int:
    """Return the number of the entry at which the checkpoint is."""
    (path,) = (folder_of(deployment) / "checkpoints").iterdir()
    number: int = json.loads(path.read_bytes())["heads"]["shuffler"]["number"]
    return number


@pytest.mark.usefixtures("often")
def test_a_checkpoint_is_written_now_and_then_and_spares_reading(
    deployment: Deployment, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(11):
        log.decide(lambda _, number=number: closed(number, taken(number)), START + number * MINUTE)  # type: ignore[misc]
    assert log.head.number == 12
    assert checkpoint(deployment) == 10
    reads: list[str] = []
    real = storage.read_if_there

    def read_if_there(path: str, most: int) -> bytes | None:
        reads.append(path.rpartition("/")[2])
        return real(path, most)

    monkeypatch.setattr(storage, "read_if_there", read_if_there)
    other = Log(deployment, "shuffler", CAMPAIGN)
    assert other.read() == log.fold
    assert reads == [f"{number:010d}.json" for number in (10, 11, 12, 13)]
    for number in range(11, 19):
        other.decide(lambda _, number=number: closed(number), START)  # type: ignore[misc]
    assert checkpoint(deployment) == 20
    whole = other.fold
    # Deleted ones change nothing.
    shutil.rmtree(folder_of(deployment) / "checkpoints")
    assert Log(deployment, "shuffler", CAMPAIGN).read() == whole


@pytest.mark.usefixtures("often")
def test_a_checkpoint_that_is_not_of_the_entry_that_it_names_is_ignored(
    deployment: Deployment, log: Log, tmp_path: Path
) -> None:
    """Of another history, as after the log was restored, or damaged."""
    folder, yesterday = folder_of(deployment), tmp_path / "yesterday"
    for number in range(3):
        log.decide(telling(f"{number}"), START)
    shutil.copytree(folder, yesterday)
    for number in range(3, 20):
        log.decide(telling(f"lost {number}"), START)
    assert checkpoint(deployment) == 20
    newest = folder / "checkpoints" / "000001.json"
    lost = newest.read_bytes()
    for entry in entries_of(deployment).glob("*.json"):
        entry.unlink()
    shutil.copytree(yesterday, folder, dirs_exist_ok=True)
    other = Log(deployment, "shuffler", CAMPAIGN)
    assert told_in(other.read()) == ["0", "1", "2"]
    for number in range(14):
        other.decide(telling(f"new {number}"), START)
    # Its own takes the place of the other, which was at a later entry.
    assert checkpoint(deployment) == 15
    read = Log(deployment, "shuffler", CAMPAIGN)
    assert read.read() == other.fold
    assert read._checkpoint == 15
    for wrong in (lost, b"", b"{}", b"[" * 100_000, b'{"campaign": "words", "heads": {}}'):
        newest.write_bytes(wrong)
        read = Log(deployment, "shuffler", CAMPAIGN)
        assert read.read() == other.fold
        assert read._checkpoint == 0


@pytest.mark.usefixtures("often")
def test_a_checkpoint_that_cannot_be_written_stops_nothing(deployment: Deployment, log: Log) -> None:
    (folder_of(deployment)).mkdir(parents=True)
    (folder_of(deployment) / "checkpoints").write_text("a file where a folder must be")
    for number in range(12):
        assert log.decide(telling(f"{number}"), START) is not None
    assert kept(log) == log.fold


def test_the_log_of_a_party_is_its_own_and_all_are_read_together(deployment: Deployment) -> None:
    logs = Logs(deployment)
    logs.of("shuffler", CAMPAIGN).decide(lambda _: closed(0, taken(0), batch={"reports": (path_of(0),)}), START)
    logs.of("shuffler", CAMPAIGN).decide(lambda _: finished(0, "shuffle", reports=60), START)
    logs.of("analyzer", CAMPAIGN).decide(lambda _: finished(0, "analyze", reports=60), START)
    logs.shared(CAMPAIGN).decide(telling("a"), START)
    fold = Logs(deployment).read(CAMPAIGN)
    assert [*fold.hops_of(batch_of(0))] == ["shuffle", "analyze"]
    assert {party: head.number for party, head in fold.heads.items()} == {"shuffler": 4, "aux-server": 0, "analyzer": 2}
    assert fold.closed == hour(0).end
    assert [path.name for path in sorted(Path(deployment.folder("log")).iterdir())] == ["analyzer", "shuffler"]
