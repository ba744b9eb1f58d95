"""Parties apart on one store: what is stated is followed, what is received is waited for, and nothing else counts."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from hushcount.clock import MACHINE
from hushcount.errors import UsageError
from pipelines.audit.doctor import examine
from pipelines.audit.reconcile import account_of
from pipelines.audit.view import Finding, View
from pipelines.deployment.campaigns import read_campaign
from pipelines.deployment.settings import PARTIES, Party
from pipelines.engine.runner import Engine
from pipelines.handover.statements import Statement
from pipelines.log.fold import Fold
from pipelines.schedule import attempts, stating
from pipelines.schedule.attempts import attempt, carry_out
from pipelines.schedule.handed import stated_elsewhere
from pipelines.schedule.tasks import Task
from tests.support.apart import SIGNED, Apart
from tests.support.collecting import collect
from tests.support.jobs import done
from tests.support.site import Site, at, values
from tests.support.writes import Killed, kill

RETENTION = '[retention]\nsegments = "10d"\nshuffled = "20d"\nreleased = "20d"\n'


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """One batch of both streams, shuffled; nobody writes here."""
    site = Site(tmp_path_factory.mktemp("apart"), discovery=True, settings=SIGNED, tail=RETENTION)
    for name in ("signing", "strangers"):
        done("keys", "new", "--role", "handing-on", "--out", site.root / name)
    collect(site.store, site.campaign, values(200), day=0)
    assert Apart(site).run("shuffler", day=1.1).problems == []
    return site


@pytest.fixture
def apart(shuffled: Site, tmp_path: Path) -> Apart:
    return Apart(shuffled.copied(tmp_path / "site"))


@pytest.fixture
def unsigned(shuffled: Site, tmp_path: Path) -> Apart:
    """The same parties, none of which checks a signature any more."""
    return Apart(shuffled.copied(tmp_path / "site"), trusted=False)


# What is stated.


def test_parties_in_one_process_wait_for_no_receipt(tmp_path: Path) -> None:
    site = Site(tmp_path, tail=RETENTION)
    collect(site.store, site.campaign, values(60), day=0)
    assert site.run(1.1).problems == []
    assert f"words/{site.batch(0)} shuffled" in site.run(30, sure=True).deleted
    assert not (site.store / "receipts").exists()


def test_a_log_that_is_lost_after_its_outputs_were_deleted_is_missed(tmp_path: Path) -> None:
    """What is stated stays: else a batch that closes otherwise now would be counted beside that which was read."""
    site = Site(tmp_path, tail=RETENTION)
    collect(site.store, site.campaign, values(30), day=0, came=0.9)
    assert site.run(1.1).problems == []
    collect(site.store, site.campaign, values(30), day=0, collector="two", came=1.5)
    collect(site.store, site.campaign, values(100), day=1)
    assert len(site.run(2.1).hops) == 2
    whole = site.run(9, sure=True)
    shutil.rmtree(site.store / "shuffled" / "words" / site.batch(1))
    shutil.rmtree(site.store / "log" / "shuffler")
    done = site.run(9.1, sure=True)
    assert (whole.problems, done.closed, done.hops) == ([], [], [])
    assert "the log of shuffler was lost" in done.problems[0]


@pytest.mark.parametrize("how", ["no zone", "no file"])
def test_a_statement_that_cannot_be_read_stops_nothing_else(unsigned: Apart, how: str) -> None:
    (path,) = unsigned.files("stated", "shuffler")
    good = path.read_text()
    wrong = path.with_name(path.name.replace(".000001-", ".000002-"))
    if how == "no zone":
        raw = json.loads(good)
        wrong.write_text(json.dumps({**raw, "at": "2026-01-01T00:00:00", "after": {**raw["after"], "generation": 2}}))
    else:
        os.mkfifo(wrong)
    done = unsigned.run("aux-server", day=9)
    (problem,) = done.problems
    assert str(wrong) in problem
    assert len(done.hops) == 1
    account = account_of(
        View(unsigned.site.of("analyzer"), at(9), one=read_campaign(unsigned.site.deployment.campaigns / "words"))
    )
    assert any(str(wrong) in said for said in account.differences)


@pytest.mark.parametrize("trusted", [True, False])
def test_an_output_is_not_there_before_its_party_states_it(apart: Apart, trusted: bool) -> None:
    if not trusted:
        apart = Apart(apart.site, trusted=False)
    stated = apart.site.store / "stated"
    stated.rename(apart.site.root / "aside")
    for party in ("aux-server", "analyzer"):
        done = apart.run(party)
        assert (done.hops, done.problems) == ([], [])
    (apart.site.root / "aside").rename(stated)
    assert apart.run("aux-server").hops == [f"words/{apart.batch} release"]
    # The analyzer follows both parties: what it can count waits for what is found.
    (stated / "aux-server").rename(apart.site.root / "aside")
    done = apart.run("analyzer")
    assert (done.hops, done.problems) == ([], [])
    (apart.site.root / "aside").rename(stated / "aux-server")
    assert apart.run("analyzer").hops == [f"words/{apart.batch} {hop}" for hop in ("discover", "analyze")]


def test_what_is_stated_and_has_not_come_yet_is_waited_for(apart: Apart) -> None:
    output = apart.site.store / "shuffled" / "words" / apart.batch
    output.rename(apart.site.root / "aside")
    done = apart.run("aux-server")
    assert (done.hops, done.problems) == ([], [])
    (apart.site.root / "aside").rename(output)
    assert len(apart.run("aux-server").hops) == 1


def test_a_summary_that_is_not_the_one_that_is_stated_is_named_and_not_read(unsigned: Apart) -> None:
    path = unsigned.site.store / "shuffled" / "words" / unsigned.batch / "summary.json"
    good = path.read_bytes()
    raw = json.loads(good)
    path.write_text(json.dumps({**raw, "log": {**raw["log"], "number": 9}}))
    (problem,) = unsigned.run("aux-server").problems
    assert f"{path} is not what the shuffler states that shuffle wrote of this batch" in problem
    assert "fetch it again" in problem
    path.write_bytes(good)
    assert unsigned.run("aux-server").problems == []


def test_a_statement_that_is_not_believed_is_named_and_followed_by_nobody(apart: Apart) -> None:
    (path,) = apart.files("stated", "shuffler")
    path.write_bytes(path.read_bytes().replace(b'"kind":"statement"', b'"kind": "statement"'))
    done = apart.run("aux-server")
    (problem,) = done.problems
    assert f"{path}: the signature of the statement" in problem
    assert done.hops == []


def test_a_party_states_its_own_hops_only(unsigned: Apart) -> None:
    """An auxiliary server that states a shuffle makes no batch."""
    (path,) = unsigned.files("stated", "shuffler")
    moved = unsigned.site.store / "stated" / "aux-server" / "words" / path.name
    moved.parent.mkdir(parents=True)
    moved.write_text(path.read_text().replace('"shuffler"', '"aux-server"'))
    shutil.rmtree(unsigned.site.store / "stated" / "shuffler")
    epochs = read_campaign(unsigned.site.deployment.campaigns / "words")
    assert stated_elsewhere(unsigned.site.of("analyzer"), epochs, Fold("words")) == ({}, [])


def test_what_was_exchanged_behind_the_look_does_not_count(
    apart: Apart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Until the job reads it, the summary is the one that is stated.
    monkeypatch.setattr(attempts, "left", lambda _, hop: iter([hop]))
    epochs = read_campaign(apart.site.deployment.campaigns / "words")
    deployment = apart.site.of("aux-server")
    fold = apart.fold("aux-server")
    (stated,) = apart.files("stated", "shuffler")
    said = Statement.model_validate_json(stated.read_bytes())
    batch = fold.named(apart.batch)
    path, campaign = epochs.files[batch.file]
    task = Task(
        deployment, campaign, path, batch, fold, Engine("FnApiRunner", ()),
        Console(quiet=True), MACHINE, {(apart.batch, "shuffle"): said.model_copy(update={"summary": "0" * 64})},
    )  # fmt: skip
    with pytest.raises(UsageError, match="is not what the shuffler states"):
        (made,) = carry_out([attempt(task, "release", str(tmp_path / "attempt"))])
        assert made.failure is not None
        raise made.failure


def test_an_output_of_a_party_here_needs_no_statement(apart: Apart) -> None:
    """With shuffler and analyzer here the release alone comes from elsewhere."""
    shutil.rmtree(apart.site.store / "stated" / "shuffler")
    assert apart.run("shuffler", "analyzer").hops == []
    (path,) = apart.files("stated", "shuffler")
    assert apart.run("aux-server").hops == [f"words/{apart.batch} release"]
    (stated,) = apart.files("stated", "aux-server")
    stated.rename(apart.site.root / "aside")
    assert apart.run("shuffler", "analyzer").hops == []
    (apart.site.root / "aside").rename(stated)
    assert len(apart.run("shuffler", "analyzer").hops) == 2
    # They leave receipts of what came from elsewhere, and of nothing else.
    assert [one.name.split(".")[1] for one in apart.files("receipts", "analyzer")] == ["release"]
    assert path.exists()


def test_what_a_killed_run_did_not_state_the_next_one_does(apart: Apart, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(stating, "put", lambda *_: kill())
        apart.run("aux-server")
    assert "release" in apart.fold("aux-server").hops_of(apart.batch)
    assert apart.files("stated", "aux-server") == apart.files("receipts", "aux-server") == []
    assert apart.run("aux-server").hops == []
    (stated,), (receipt,) = apart.files("stated", "aux-server"), apart.files("receipts", "aux-server")
    done = apart.fold("aux-server").hops_of(apart.batch)["release"]
    for path, summary in ((stated, done.summary), (receipt, done.made_from)):
        raw = json.loads(path.read_text())
        assert raw["summary"] == summary
        assert raw["after"] == {"generation": 1, "number": done.entry.number, "entry": done.entry.digest}
        assert path.with_name(f"{path.name}.sig").exists()
    before = {path: path.stat().st_mtime_ns for path in (stated, receipt)}
    assert apart.run("aux-server").is_quiet
    assert {path: path.stat().st_mtime_ns for path in before} == before


# What is received.


def test_retention_waits_for_the_receipts_of_all_recipients(apart: Apart) -> None:
    def deleted(day: float) -> set[str]:
        done = apart.run("shuffler", day=day)
        assert done.problems == []
        return {one.rpartition(" ")[2] for one in done.deleted}

    # Segments hold tokens, and go in time.
    assert deleted(15) == {"segments"}
    assert deleted(30) == set()
    assert apart.late == {"aux-server", "analyzer"}
    apart.leave_receipt("aux-server", "shuffle")
    assert deleted(30) == set()
    assert apart.late == {"analyzer"}
    assert apart.fold("shuffler").received == (f"aux-server shuffle {apart.batch}",)
    apart.leave_receipt("analyzer", "shuffle")
    assert deleted(30) == {"shuffled"}
    assert apart.late == set()
    fold = apart.fold("shuffler")
    assert fold.received == tuple(f"{party} shuffle {apart.batch}" for party in ("aux-server", "analyzer"))
    assert fold.unreceived == ()
    assert not (apart.site.store / "shuffled" / "words" / apart.batch).exists()


def test_a_receipt_that_was_taken_in_is_kept_by_the_log(apart: Apart) -> None:
    for party in ("aux-server", "analyzer"):
        apart.leave_receipt(party, "shuffle")
    assert apart.run("shuffler", day=5).problems == []
    head = apart.fold("shuffler").heads["shuffler"]
    shutil.rmtree(apart.site.store / "receipts")
    assert apart.run("shuffler", day=6).is_quiet
    assert apart.fold("shuffler").heads["shuffler"] == head
    assert "words/" + apart.batch + " shuffled" in apart.run("shuffler", day=30).deleted


@pytest.mark.parametrize("lacks", ["aux-server", "analyzer"])
def test_what_one_recipient_does_not_receive_goes_at_most_so_late_and_is_named(apart: Apart, lacks: Party) -> None:
    text = apart.site.config.read_text()
    apart.site.config.write_text(text.replace("[retention]", '[retention]\nat_most = "40d"'))
    for party in {"aux-server", "analyzer"} - {lacks}:
        apart.leave_receipt(party, "shuffle")  # type: ignore[arg-type]
    apart.run("shuffler", day=15)
    # It was handed on at 1.1, and waits from then on.
    assert apart.run("shuffler", day=41.05).deleted == []
    assert apart.run("shuffler", day=41.2).deleted == [f"words/{apart.batch} shuffled"]
    assert apart.fold("shuffler").unreceived == (f"shuffled {apart.batch}",)


def test_a_batch_without_a_stream_waits_for_nobody_who_would_read_it(tmp_path: Path) -> None:
    site = Site(tmp_path, discovery=True, tail=RETENTION)
    apart = Apart(site)
    collect(site.store, site.campaign, values(60), day=0, streams=("reports",))
    apart.run("shuffler")
    apart.leave_receipt("analyzer", "shuffle", keys=None)
    assert f"words/{apart.batch} shuffled" in apart.run("shuffler", day=30).deleted
    assert apart.fold("shuffler").unreceived == ()


NOT_BELIEVED = {
    "nobody signed it": ({"keys": None}, "is not signed"),
    "a stranger signed it": ({"keys": "strangers"}, "trusted are"),
    "it is of another output": (
        {"digest": "0" * 64},
        "the receipt of analyzer is of another output than shuffle wrote here",
    ),
}


@pytest.mark.parametrize(("how", "says"), NOT_BELIEVED.values(), ids=NOT_BELIEVED)
def test_a_receipt_that_is_not_believed_frees_nothing_and_is_named(
    apart: Apart, how: dict[str, str | None], says: str
) -> None:
    apart.leave_receipt("aux-server", "shuffle")
    apart.leave_receipt("analyzer", "shuffle", **how)  # type: ignore[arg-type]
    done = apart.run("shuffler", day=30)
    (problem,) = done.problems
    assert says in problem
    assert f"words/{apart.batch} shuffled" not in done.deleted
    assert apart.fold("shuffler").received == (f"aux-server shuffle {apart.batch}",)
    assert apart.late == {"analyzer"}
    # The true one takes its place.
    apart.leave_receipt("analyzer", "shuffle")
    assert f"words/{apart.batch} shuffled" in apart.run("shuffler", day=30).deleted


def test_a_receipt_of_another_campaign_or_party_in_this_place_frees_nothing(apart: Apart) -> None:
    apart.leave_receipt("aux-server", "shuffle")
    apart.leave_receipt("analyzer", "shuffle", campaign="others")
    others, words = (apart.site.store / "receipts" / "analyzer" / name for name in ("others", "words"))
    others.rename(words)
    (problem,) = apart.run("shuffler", day=30).problems
    assert "is a receipt that belongs in another place" in problem
    # What the auxiliary server signed is no receipt of the analyzer.
    shutil.rmtree(words)
    shutil.copytree(apart.site.store / "receipts" / "aux-server" / "words", words)
    (problem,) = apart.run("shuffler", day=30).problems
    assert "trusted are" in problem
    assert apart.fold("shuffler").unreceived == ()
    assert (apart.site.store / "shuffled" / "words" / apart.batch).exists()


def test_a_release_waits_for_the_analyzer_alone(apart: Apart) -> None:
    assert apart.run("aux-server").problems == []
    assert apart.run("aux-server", day=30).deleted == []
    assert apart.late == {"analyzer"}
    apart.leave_receipt("analyzer", "release")
    assert apart.run("aux-server", day=30).deleted == [f"words/{apart.batch} released"]
    # What it says of the shuffle is nothing to the auxiliary server, and the reverse.
    assert apart.fold("aux-server").received == (f"analyzer release {apart.batch}",)
    assert apart.run("shuffler", day=30).problems == []
    assert apart.fold("shuffler").received == (f"aux-server shuffle {apart.batch}",)


def test_doctor_opens_the_keys_of_receipts_and_writes_where_each_party_speaks(apart: Apart) -> None:
    def found(party: Party) -> dict[str, Finding]:
        return {one.name: one for one in examine(apart.site.of(party), at(1.3))}

    written = {party: {name for name in found(party) if "stated" in name or "receipts" in name} for party in PARTIES}
    assert written == {
        "shuffler": {"write to stated/shuffler"},
        "aux-server": {"write to stated/aux-server", "write to receipts/aux-server"},
        "analyzer": {"write to receipts/analyzer"},
    }
    assert found("analyzer")["sign_with"].says.endswith(" of the analyzer_signer signs")
    assert found("shuffler")["analyzer_keys"].verdict == "good"
    next((apart.site.root / "signing").glob("analyzer_signer-*.key")).unlink()
    assert found("analyzer")["sign_with"].verdict == "bad"
    assert found("shuffler")["sign_with"].verdict == "good"
    # All parties in one process leave no receipt.
    whole = {one.name: one.verdict for one in examine(apart.site.deployment, at(1.3))}
    assert whole["sign_with"] == "good"
    assert not [name for name in whole if "stated" in name or "receipts" in name]
