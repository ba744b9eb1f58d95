"""One account over all parties: what each says, where they differ, and hand-overs that do not come through."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipelines.audit.doctor import examine
from pipelines.audit.parties import Line
from pipelines.audit.reconcile import Account, account_of
from pipelines.console.tables import stamp
from pipelines.deployment.settings import Deployment, RetentionPart
from pipelines.outputs.counts import HopCounts
from pipelines.schedule.run import run
from pipelines.schedule.work import Vouched
from tests.support.clocks import stopped
from tests.support.collecting import collect, window_name
from tests.support.jobs import cli
from tests.support.site import FLOOR, Site, account_at, at, values, view_of

SURE = Vouched(clock_is_right=True)


def account(deployment: Deployment, day: float) -> Account:
    return account_of(view_of(deployment, at(day)))


def lines(account: Account) -> dict[tuple[str, str], Line]:
    assert all(line.adds_up for line in account.parties)
    return {("+".join(line.parties), line.stream): line for line in account.parties}


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """What a shuffler alone left of 200 reports, one of them twice."""
    site = Site(tmp_path_factory.mktemp("shuffled"))
    (segment,) = collect(site.store, site.campaign, values(200), day=0)
    assert segment.exists()
    assert run(site.of("shuffler"), clock=stopped(at(1.1))).problems == []
    return site


@pytest.fixture
def site(shuffled: Site, tmp_path: Path) -> Site:
    return shuffled.copied(tmp_path / "site")


def test_where_all_parties_run_a_line_of_each_stream_says_where_every_report_is(tmp_path: Path) -> None:
    site = Site(tmp_path, discovery=True)
    collect(site.store, site.campaign, values(200), day=0)
    found = lines(account_at(site, 1.05))
    assert found["shuffler+analyzer", "reports"] == Line(
        ("shuffler", "analyzer"), "reports", "log", None, 200, 0, {}, {}, 200
    )
    # Shuffled, and read by nobody yet.
    assert run(site.of("shuffler"), clock=stopped(at(1.1))).problems == []
    assert {line.on_its_way for line in lines(account_at(site, 1.2)).values()} == {200}
    assert site.run(1.2).problems == []
    # Too few of the next window: they wait, and at last they are dropped.
    collect(site.store, site.campaign, values(FLOOR - 1), day=1)
    site.run(2.1)
    found = lines(account_at(site, 2.2))
    for parties, stream in (("shuffler+analyzer", "reports"), ("shuffler+aux-server", "discovery")):
        line = found[parties, stream]
        assert (line.received, line.went_on, line.dropped) == (200 + FLOOR - 1, 200, {})
        assert line.on_its_way == FLOOR - 1
    for day in (4, 5):
        collect(site.store, site.campaign, values(100), day=day)
    site.run(6.1, sure=True)
    line = lines(account_at(site, 6.2))["shuffler+analyzer", "reports"]
    assert (line.received, line.went_on, line.dropped) == (400 + FLOOR - 1, 400, {"too_late": FLOOR - 1})


def test_parties_apart_show_their_own_line_and_that_of_others_as_they_said(site: Site) -> None:
    shuffler, analyzer = site.of("shuffler"), site.of("analyzer")
    before = account(shuffler, 1.2)
    assert before.differences == []
    found = lines(before)
    assert found["shuffler", "reports"] == Line(("shuffler",), "reports", "log", None, 200, 0, {}, {}, 200)
    assert found["analyzer", "reports"] == Line(("analyzer",), "reports", "nothing")
    found = lines(account(analyzer, 1.2))
    assert found["shuffler", "reports"] == Line(("shuffler",), "reports", "statements", at(1.1).isoformat(), 200, 200)
    assert found["analyzer", "reports"] == Line(("analyzer",), "reports", "log", None, 200, 0, {}, {}, 200)

    assert run(analyzer, clock=stopped(at(1.3))).problems == []
    found = lines(account(analyzer, 1.4))
    assert found["analyzer", "reports"] == Line(("analyzer",), "reports", "log", None, 200, 200)
    # The shuffler hears that they were taken, and not what became of them.
    receipt = json.loads(said(site, "receipts/analyzer").read_text())
    assert (receipt["taken"], receipt["streams"]) == (200, {})
    for ran in (False, True):
        if ran:
            assert run(shuffler, clock=stopped(at(1.4))).problems == []
        found = lines(account(shuffler, 1.4))
        assert found["shuffler", "reports"] == Line(("shuffler",), "reports", "log", None, 200, 200)
        assert found["analyzer", "reports"] == Line(
            ("analyzer",), "reports", "receipts", at(1.3).isoformat(), 200, None
        )
    site.config.write_text(f'parties = ["shuffler"]\n{site.config.read_text()}')
    (row,) = re.findall("analyzer +reports.*", cli("status", "--config", site.config).out)
    assert re.split("  +", row.strip())[2:] == ["200", *["unknown"] * 4, f"receipts, {stamp(at(1.3))}"]


def test_a_line_that_does_not_add_up_is_a_difference(site: Site) -> None:
    """A hop that is done and did not count what was handed to it: no number of its batch says so."""
    assert site.run(1.2).problems == []
    view = view_of(site.deployment, at(1.3))
    batch, hops = site.batch(0), view.fold.done[site.batch(0)]
    silent = replace(hops["analyze"], counts=HopCounts.of("analyze", {}))
    view.__dict__["fold"] = replace(view.fold, done={batch: {**hops, "analyze": silent}})
    (difference,) = account_of(view).differences
    assert difference.startswith("reports at shuffler, analyzer: 200 reports received, but 0 went on")


def changed(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def said(site: Site, folder: str) -> Path:
    (path,) = site.store.glob(f"{folder}/words/*.json")
    return path


DIFFERENT = [
    ("stated/shuffler", "analyzer", {"summary": "0" * 64}, "shuffler stated another summary of shuffle at"),
    (
        "stated/shuffler",
        "analyzer",
        {"streams": {"reports": {"received": 200, "accepted": 199, "rejected": {"duplicate": 1}}}},
        "reports of analyze: 200 received, 199 forwarded; shuffle ran elsewhere",
    ),
    ("stated/shuffler", "analyzer", {"campaign": "other"}, "is a statement that belongs in another place"),
    ("receipts/analyzer", "shuffler", {"taken": 199}, "says 199 taken, but shuffle forwarded 200"),
    ("receipts/analyzer", "shuffler", {"summary": "0" * 64}, "names another summary than shuffle wrote"),
    ("receipts/analyzer", "shuffler", {"party": "aux-server"}, "is a receipt that belongs in another place"),
]


@pytest.mark.parametrize(("folder", "party", "fields", "says"), DIFFERENT)
def test_what_a_party_said_and_the_log_here_does_not_is_a_difference(
    site: Site, folder: str, party: str, fields: dict[str, Any], says: str
) -> None:
    assert run(site.of("analyzer"), clock=stopped(at(1.2))).problems == []
    assert account(site.of(party), 1.3).differences == []
    changed(said(site, folder), **fields)
    (difference,) = account(site.of(party), 1.3).differences
    assert says in difference


def test_a_receipt_of_a_batch_that_the_log_does_not_know_is_a_difference(site: Site) -> None:
    assert run(site.of("analyzer"), clock=stopped(at(1.2))).problems == []
    shutil.rmtree(site.store / "log" / "shuffler")
    told = account(site.of("shuffler"), 1.3).differences
    assert any("is for shuffled, but the log of shuffler has no such output" in one for one in told)


def test_a_hand_over_without_a_receipt_is_overdue_after_a_window_and_its_grace(site: Site) -> None:
    """At both ends: the shuffler waits for a receipt, and the analyzer has a statement of what did not come."""
    shuffler, analyzer = site.of("shuffler"), site.of("analyzer")
    batch, missing = site.batch(0), site.store / "away"
    (site.store / "shuffled").rename(missing)
    for day, late in ((4.0, False), (4.2, True)):
        # The output is missing where it was written too, which is no matter here.
        own = [one for one in account(shuffler, day).differences if "receipt" in one]
        elsewhere = account(analyzer, day).differences
        assert (len(own), len(elsewhere)) == (late, late)
        ran = run(analyzer, clock=stopped(at(day)), vouched=SURE).problems
        assert ran == elsewhere
    assert own[0].startswith(f"words/{batch}: analyzer has left no receipt of shuffled since ")
    assert elsewhere[0].startswith(f"words/{batch}: shuffler stated shuffle at ")
    assert "no analyze has read it here" in elsewhere[0]
    missing.rename(site.store / "shuffled")
    assert run(shuffler, clock=stopped(at(4.3)), vouched=SURE).problems == own
    assert run(analyzer, clock=stopped(at(4.3)), vouched=SURE).problems == []
    assert account(analyzer, 4.3).differences == []
    # A receipt that no run has taken into the log counts.
    assert account(shuffler, 4.3).differences == []
    assert run(shuffler, clock=stopped(at(4.4)), vouched=SURE).problems == []


def kept(deployment: Deployment, **days: float) -> Deployment:
    """Return a deployment that keeps what was handed on for so many days."""
    part = RetentionPart.model_validate({name: timedelta(days=number) for name, number in days.items()})
    return replace(deployment, file=deployment.file.model_copy(update={"retention": part}))


def test_what_was_deleted_without_a_receipt_is_red_for_ever(site: Site) -> None:
    """Nobody knows whether it was counted; a receipt that comes later changes nothing."""
    shuffler, analyzer = site.of("shuffler"), site.of("analyzer")
    batch = site.batch(0)
    copies = Path(shutil.copytree(site.store / "shuffled", site.root / "copies"))
    assert run(kept(shuffler, shuffled=6), clock=stopped(at(20)), vouched=SURE).deleted == []
    assert run(kept(shuffler, shuffled=6, at_most=20), clock=stopped(at(20)), vouched=SURE).deleted == []
    assert run(kept(shuffler, shuffled=6, at_most=20), clock=stopped(at(22)), vouched=SURE).deleted == [
        f"words/{batch} shuffled"
    ]
    for day in (22.1, 400):
        found = account(shuffler, day)
        (difference,) = found.differences
        assert difference.startswith(f"{batch}: retention deleted {site.store / 'shuffled' / 'words' / batch} without")
        assert "whether its 200 reports" in difference
        line = lines(found)["shuffler", "reports"]
        assert (line.went_on, line.dropped, line.on_its_way) == (0, {"deleted_unreceived": 200}, 0)
    (problem,) = run(analyzer, clock=stopped(at(22.1)), vouched=SURE).problems
    assert problem in account(analyzer, 22.1).differences
    assert "if shuffler has deleted the output" in problem
    # The analyzer had a copy, and reads it now.
    shutil.copytree(copies, site.store / "shuffled", dirs_exist_ok=True)
    assert run(analyzer, clock=stopped(at(22.2)), vouched=SURE).problems == []
    assert account(analyzer, 22.3).differences == []
    assert account(shuffler, 22.3).differences == [difference]


def test_what_an_operator_deletes_by_hand_is_named_whatever_its_window(tmp_path: Path) -> None:
    site = Site(tmp_path)
    for day in range(8):
        collect(site.store, site.campaign, values(60), day=day)
    site.run(8.1, sure=True)
    gone = site.store / "shuffled" / "words" / site.batch(0)
    shutil.rmtree(gone)
    assert account_at(site, 8.2).differences == []
    assert any(str(gone) in problem for problem in site.run(8.2).problems)
    says = f"{gone} is missing, though hushcount job shuffle wrote it, and no retention deleted it: restore it"
    assert says in account_at(site, 8.3).differences
    assert says in account_at(site, 8.3).differences


def test_reports_that_were_given_up_are_a_state_of_their_own_and_stay_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    site = Site(tmp_path)
    collect(site.store, site.campaign, values(200), day=-6)
    site.run(-4.9)
    older = Path(shutil.copytree(site.store / "log", site.root / "older"))
    for day, number in ((-5, 100), (-4, 70)):
        collect(site.store, site.campaign, values(number), day=day)
        if day == -5:
            site.run(-3.9)
    shutil.rmtree(site.store / "log")
    older.rename(site.store / "log")
    told = account_at(site, -2.9)
    (lacks,) = [one for one in told.differences if "was lost, or is an older copy" in one and "shuffler" in one]
    assert told.differences[0] == lacks
    found = {(check.name, check.verdict, check.says) for check in examine(site.deployment, at(-2.9))}
    assert ("log of words", "bad", lacks) in found
    refused = cli("status", "--config", site.config)
    assert (refused.status, f"DIFFERENCE {lacks}" in refused.out) == (1, True)
    assert any(lacks in problem for problem in site.run(-2.9).problems)

    ran = run(site.deployment, clock=stopped(at(-2.9)), vouched=Vouched(log_was_restored=True))
    assert ran.problems == []
    found_states = {one.window: one.states for one in account_at(site, -2.8).windows}
    assert found_states == {
        window_name(-6): {"batched": 200}, window_name(-5): {"given_up": 100}, window_name(-4): {"given_up": 70},
    }  # fmt: skip
    # The output of the one that was counted is taken up again.
    line = lines(account_at(site, -2.8))["shuffler+analyzer", "reports"]
    assert (line.received, line.went_on, line.dropped, line.on_its_way) == (370, 300, {"given_up": 70}, 0)
    for _ in range(2):
        shown = cli("status", "--config", site.config)
        assert shown.status == 0, shown.out
        assert "GIVEN UP 170 reports of 2 segments of 2 windows" in shown.out
        collect(site.store, site.campaign, values(60), day=-3)
        assert site.run(-1.9).problems == []
