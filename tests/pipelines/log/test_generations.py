"""Generations of a log: one that replaces a lost one is read in its place, and nobody writes to the old one."""

from __future__ import annotations

import shutil
from dataclasses import astuple, replace
from datetime import datetime
from pathlib import Path

import pytest

from hushcount.errors import FormatError
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.log import log as log_module
from pipelines.log.entries import Adopted, Confirmed, Decision, Held, Opened, Restored
from pipelines.log.facts import Head
from pipelines.log.fold import Fold
from pipelines.log.log import Log
from pipelines.log.segments import GIVEN_UP
from tests.support.decisions import (
    CAMPAIGN,
    HOUR,
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

NOW = START + 9 * HOUR


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return deployment_in(tmp_path)


def read(deployment: Deployment) -> Log:
    """Return the log as another process reads it."""
    log = Log(deployment, "shuffler", CAMPAIGN)
    log.read()
    return log


def put(log: Log, *decisions: Decision, at: datetime = NOW) -> Log:
    for decision in decisions:
        assert log.decide(lambda _, one=decision: one, at) is not None  # type: ignore[misc]
    return log


def opened(head: Head, lost: int | None = None, **more: object) -> Opened:
    """Return what opens the log that replaces one which ends at a head."""
    number = head.number if lost is None else lost
    fields = {
        "generation": head.generation,
        "number": head.number,
        "entry": head.digest,
        "lost": number,
        "through": NOW,
    }
    return Opened(party="shuffler", campaign=CAMPAIGN, restored=Restored.model_validate(fields | more))


def folder(deployment: Deployment) -> Path:
    return Path(deployment.folder("log", "shuffler", CAMPAIGN))


def kept(deployment: Deployment, to: Path) -> Path:
    return Path(shutil.copytree(folder(deployment), to))


def restored(deployment: Deployment, copy: Path | None) -> None:
    """Put a copy of the log in the place of what is there."""
    shutil.rmtree(folder(deployment))
    if copy is not None:
        shutil.copytree(copy, folder(deployment))


def test_a_new_log_goes_on_from_the_old_one(deployment: Deployment) -> None:
    log = put(Log(deployment, "shuffler", CAMPAIGN), told("1"), told("2"))
    before = log.head
    assert log.replace(opened(before), NOW) is not None
    put(log, told("3"))
    assert astuple(log.head)[:2] == (2, 2)
    assert sorted(path.parent.name + "/" + path.name for path in folder(deployment).glob("0*/*.json")) == [
        "000001/0000000001.json", "000001/0000000002.json", "000001/0000000003.json",
        "000002/0000000001.json", "000002/0000000002.json",
    ]  # fmt: skip
    again = read(deployment)
    assert (again.head, again.fold) == (log.head, log.fold)
    assert {*told_in(again.fold)} == {"1", "2", "3"}


def test_only_one_of_two_replaces_a_log(deployment: Deployment) -> None:
    log = put(Log(deployment, "shuffler", CAMPAIGN), told("1"))
    other = read(deployment)
    assert log.replace(opened(log.head), NOW) is not None
    assert other.replace(opened(other.head, lost=7), NOW) is None
    assert other.head == log.head


def test_a_log_that_is_empty_is_replaced_too(deployment: Deployment) -> None:
    log = Log(deployment, "shuffler", CAMPAIGN)
    log.read()
    assert log.replace(opened(Head(), lost=5), NOW) is not None
    assert astuple(read(deployment).head)[:2] == (2, 1)
    assert read(deployment).has(Head(1, 5, "a" * 64))
    assert not read(deployment).has(Head(1, 6, "a" * 64))


def test_a_sleeper_of_before_puts_nothing_in_the_old_log(deployment: Deployment) -> None:
    log = put(Log(deployment, "shuffler", CAMPAIGN), told("1"))
    sleeper = read(deployment)
    assert log.replace(opened(log.head), NOW) is not None
    seen = []

    def wanted(fold: Fold) -> Decision | None:
        seen.append(sleeper.head.generation)
        return None if "2" in told_in(fold) else told("2")

    # It has read the log, and wakes up as it puts.
    real, sleeper.read = sleeper.read, lambda: sleeper.fold  # type: ignore[method-assign]
    stands = sleeper.stands

    def awake() -> bool:
        sleeper.read = real  # type: ignore[method-assign]
        return stands()

    sleeper.stands = awake  # type: ignore[method-assign]
    entry = sleeper.decide(wanted, NOW)
    assert seen == [1, 2]
    assert entry is not None
    assert not (folder(deployment) / "000001" / "0000000003.json").exists()
    assert (folder(deployment) / "000002" / "0000000002.json").exists()


def test_what_a_sleeper_wrote_to_the_old_log_is_not_read(deployment: Deployment) -> None:
    log = put(Log(deployment, "shuffler", CAMPAIGN), told("1"))
    sleeper = read(deployment)
    assert log.replace(opened(log.head), NOW) is not None
    # Between its last look and its write: no run may be alive then, but nothing must break.
    assert sleeper._put_at(sleeper.head, told("2"), NOW) is not None
    again = read(deployment)
    assert (again.head, again.fold) == (log.head, log.fold)
    assert not again.has(sleeper.head)
    assert sleeper.read() == log.fold


def test_two_restores_one_after_the_other(deployment: Deployment, tmp_path: Path) -> None:
    log = put(Log(deployment, "shuffler", CAMPAIGN), told("1"), told("2"), told("3"))
    first = log.head
    short = read(deployment)
    # The copy ends two entries earlier.
    for number in (3, 4):
        (folder(deployment) / "000001" / f"{number:010d}.json").unlink()
    short.read()
    assert not short.has(first)
    assert short.replace(opened(short.head, lost=first.number), NOW) is not None
    assert short.has(first)
    copy = kept(deployment, tmp_path / "copy")
    put(short, told("4"), told("5"))
    second = short.head
    restored(deployment, copy)
    assert {*told_in(short.read())} == {"1"}
    assert short.has(first)
    assert not short.has(second)
    assert short.replace(opened(short.head, lost=second.number), NOW) is not None
    put(short, told("6"))
    again = read(deployment)
    assert (again.head, again.fold) == (short.head, short.fold)
    assert {*told_in(again.fold)} == {"1", "6"}
    assert [again.has(head) for head in (first, second, again.head)] == [True] * 3
    assert not again.has(replace(again.head, number=again.head.number + 1))
    assert not again.has(replace(again.head, generation=4))
    assert not again.has(replace(again.head, digest="a" * 64))


def test_a_generation_that_is_gone_is_missed_until_one_behind_it_begins(deployment: Deployment, tmp_path: Path) -> None:
    log = put(Log(deployment, "shuffler", CAMPAIGN), told("1"))
    copy = kept(deployment, tmp_path / "copy")
    assert log.replace(opened(log.head), NOW) is not None
    put(log, told("2"))
    lost = log.head
    restored(deployment, copy)
    # A process that watched must not stop at what is gone.
    assert {*told_in(log.read())} == {"1"}
    assert not log.has(lost)
    assert log.replace(opened(log.head), NOW) is not None
    assert not log.has(lost)
    assert log.replace(opened(log.head, lost=lost.number), NOW) is not None
    assert log.has(lost)
    assert astuple(read(deployment).head)[:2] == (3, 1)


def test_an_old_log_that_is_shorter_than_the_new_one_says_is_refused(deployment: Deployment) -> None:
    log = put(Log(deployment, "shuffler", CAMPAIGN), told("1"), told("2"))
    assert log.replace(opened(log.head), NOW) is not None
    (folder(deployment) / "000001" / "0000000003.json").unlink()
    with pytest.raises(FormatError, match="does not follow entry 2"):
        read(deployment)


def test_a_checkpoint_of_another_generation_or_of_beyond_the_end_is_not_read(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "_EVERY", 2)
    log = put(Log(deployment, "shuffler", CAMPAIGN), told("1"))
    copy = kept(deployment, tmp_path / "copy")
    put(log, told("2"), told("3"), told("4"))
    lost, place = log.head, folder(deployment) / "checkpoints"
    beyond = (place / "000001.json").read_bytes()
    restored(deployment, copy)
    log.read()
    assert log.replace(opened(log.head, lost=lost.number), NOW) is not None
    put(log, told("7"))
    # As if somebody had put it back, and copied it.
    for generation in ("000001", "000002"):
        (place / f"{generation}.json").write_bytes(beyond)
        assert {*told_in(read(deployment).fold)} == {"1", "7"}
    shutil.rmtree(place)
    assert read(deployment).fold == log.fold


def test_a_checkpoint_of_entries_that_were_lost_is_not_read(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "_EVERY", 2)
    log = put(Log(deployment, "shuffler", CAMPAIGN), told("1"))
    copy = kept(deployment, tmp_path / "copy")
    put(log, told("2"), told("3"))
    lost = kept(deployment, tmp_path / "lost")
    restored(deployment, copy)
    log.read()
    assert log.replace(opened(log.head, lost=4), NOW) is not None
    # A restore that left the checkpoints of the lost entries, and then the entries too.
    shutil.copytree(lost / "checkpoints", folder(deployment) / "checkpoints", dirs_exist_ok=True)
    assert {*told_in(read(deployment).fold)} == {"1"}
    shutil.copytree(lost / "000001", folder(deployment) / "000001", dirs_exist_ok=True)
    assert {*told_in(read(deployment).fold)} == {"1"}


def test_what_a_new_log_gives_up_and_takes_up(deployment: Deployment) -> None:
    log = put(
        Log(deployment, "shuffler", CAMPAIGN),
        closed(0, taken(0), batch={"reports": (path_of(0),)}),
        finished(0, "shuffle", reports=60),
        closed(1, taken(1), batch={"reports": (path_of(1),)}),
        closed(2, taken(2)),
    )
    summary = finished(3, "shuffle", reports=60).summary
    assert summary is not None
    again = opened(
        log.head,
        manifests=[taken(3).model_dump(), taken(4).model_dump()],
        adopted=[
            Adopted(
                batch=batch_of(3), hop="shuffle", seconds=3600, folder="1" * 16, digest="d" * 64, summary=summary
            ).model_dump()
        ],
        held=[Held(batch=batch_of(4), hop="shuffle", seconds=3600, summary="b" * 64).model_dump()],
    )
    assert log.replace(again, NOW) is not None
    fold = read(deployment).fold
    assert {path: one.reason for path, one in fold.dropped.items()} == {path_of(n): GIVEN_UP for n in (1, 2, 3, 4)}
    assert (fold.waiting, fold.closed, fold.restored) == ({}, NOW, NOW)
    # What is done stays done, and what others have is not made anew.
    assert [batch.name for batch in fold.made_batches] == [batch_of(n) for n in (0, 3, 4)]
    assert not any(fold.is_undone(name) for name in fold.batches)
    assert fold.hops_of(batch_of(3))["shuffle"].counts.streams["reports"].accepted == 60
    assert [fold.hops_of(batch_of(n))["shuffle"].summary for n in (3, 4)] == ["d" * 64, "b" * 64]
    assert fold.counts_by_window[hour(1).name, "reports"] == {"given_up": 60}


def test_an_entry_of_a_restore_that_names_another_log_is_refused(deployment: Deployment) -> None:
    log = put(Log(deployment, "shuffler", CAMPAIGN), told("1"))
    for wrong in (replace(log.head, number=1), replace(log.head, digest="a" * 64), replace(log.head, generation=2)):
        with pytest.raises(FormatError):
            log.replace(opened(wrong), NOW)
    assert not storage.exists(f"{folder(deployment)}/000002/0000000001.json")
    assert put(log, Confirmed()).head.generation == 1


@pytest.mark.long
def test_a_log_of_two_years_of_hours_is_replaced_in_one_entry(deployment: Deployment) -> None:
    """With the longest that is kept of each output: the charge of its release."""
    release = {"charged": dict.fromkeys(("key", "manifest", "outline", "draw"), "e" * 64), "limit": {"epsilon": 1.0}}
    summary = {**(finished(3, "shuffle", reports=60).summary or {}), "ledger": release, "accepted": 60}
    adopted = [
        Adopted(
            batch=batch_of(number), hop="shuffle", seconds=3600, folder="1" * 16, digest="d" * 64, summary=summary
        ).model_dump()
        for number in range(2 * 8_760)
    ]
    log = put(Log(deployment, "shuffler", CAMPAIGN), told("1"))
    assert log.replace(opened(log.head, adopted=adopted), NOW) is not None
    assert len(read(deployment).fold.done) == 2 * 8_760
