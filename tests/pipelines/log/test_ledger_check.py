"""A ledger that was lost, or restored from yesterday's copy: what it lacks stands in the log, with each release."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hushcount.clock import MACHINE
from pipelines.audit.doctor import examine
from pipelines.audit.view import Finding
from pipelines.deployment.campaigns import read_campaign
from pipelines.deployment.settings import Deployment
from pipelines.log import ledger_check
from pipelines.log.ledger_check import charge_lacking
from pipelines.log.log import Logs
from pipelines.schedule.run import run
from pipelines.schedule.work import Vouched
from tests.support.clocks import stopped
from tests.support.collecting import collect
from tests.support.jobs import done, files_under
from tests.support.site import Site, account_at, at, values

LIMIT = ("--campaign", "words", "--delta", "1e-6", "--renew-days", 30)
ROOM = 5.0
"""Room for two windows of a day: each costs 1 for discovery, and of so few reports 1.07 for counts."""


class TwoDays:
    """A deployment of two days, the copy that was made after the first, and what the second one left."""

    def __init__(self, root: Path) -> None:
        self.site = Site(root / "today", discovery=True)
        set_limit(self.site, ROOM)
        collect(self.site.store, self.site.campaign, values(200), day=0)
        assert self.site.run(1.1).problems == []
        self.yesterday = self.site.copied(root / "yesterday")
        collect(self.site.store, self.site.campaign, values(200), day=1)
        assert self.site.run(2.1).problems == []
        self.right = charges(self.site)

    def restored(self, root: Path, *names: str) -> Site:
        """Return the deployment after a restore of these of yesterday's files and folders."""
        site = self.site.copied(root)
        for name in names:
            remove(site.root / name)
            source = self.yesterday.root / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, site.root / name)
        return site


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> TwoDays:
    return TwoDays(tmp_path_factory.mktemp("days"))


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def set_limit(site: Site, epsilon: float) -> None:
    done("ledger", "set", "--ledger", site.root / "ledger.db", *LIMIT, "--epsilon", epsilon)


def shown(site: Site) -> Any:
    return done("ledger", "show", "--ledger", site.root / "ledger.db", "--json").json


def charges(site: Site) -> dict[str, dict[str, Any]]:
    """Return what each charge says, by key, but for the run that made it."""
    done("ledger", "check", "--ledger", site.root / "ledger.db")
    own = ("host", "pid", "run", "reserved_at")
    return {row["key"]: {name: row[name] for name in row if name not in own} for row in shown(site)["charges"]}


def bad(site: Site, day: float) -> dict[str, Finding]:
    return {one.name: one for one in examine(site.deployment, at(day)) if one.verdict == "bad"}


@pytest.mark.parametrize("names", [("ledger.db", "ledger.db.draws"), ("ledger.db",)], ids=["ledger", "no-draws"])
@pytest.mark.long(but=("ledger",))
def test_a_ledger_of_yesterday_gets_the_charges_of_today(tmp_path: Path, days: TwoDays, names: tuple[str, ...]) -> None:
    site = days.restored(tmp_path / "restored", *names)
    released = files_under(site.store / "released") | files_under(site.store / "results")
    assert len(charges(site)) == 2 < len(days.right) == 4
    said = bad(site, 2.2)["charges of words"]
    assert said.sentence == f"{site.root / 'ledger.db'} lacks 2 charges, of batch {site.batch(1)}"
    (problem,) = site.run(2.2).problems
    assert (
        problem == f"words: {site.root / 'ledger.db'} lacked 2 charges, of batch {site.batch(1)}; they are charged now"
    )
    assert charges(site) == days.right
    assert files_under(site.store / "released") | files_under(site.store / "results") == released
    assert "charges of words" not in bad(site, 2.3)
    assert site.run(2.3).problems == []
    assert account_at(site, 2.3).differences == []
    # Two windows are spent: the third does not fit, as if nothing had been lost.
    collect(site.store, site.campaign, values(200), day=2)
    assert any("nothing was released or charged" in problem for problem in site.run(3.1).problems)
    assert charges(site) == days.right


def test_a_lost_ledger_comes_back_with_its_limit(tmp_path: Path, days: TwoDays) -> None:
    site = days.site.copied(tmp_path / "restored")
    for name in ("ledger.db", "ledger.db.draws"):
        remove(site.root / name)
    first, last = site.batch(0), site.batch(1)
    assert "is missing" in bad(site, 2.2)["charges of words"].sentence
    (problem,) = run(site.deployment, clock=stopped(at(2.2)), vouched=Vouched(ledger_was_lost=True)).problems
    of = f"{site.root / 'ledger.db'} lacked 4 charges, of 2 batches from {first} to {last}; they are charged now"
    assert problem == f"words: {of}, and its limit is ({ROOM:g}, 1e-06) again"
    assert charges(site) == days.right
    (account,) = shown(site)["campaigns"]
    assert account == shown(days.site)["campaigns"][0]


def test_a_limit_that_was_set_since_the_copy_is_named(tmp_path: Path, days: TwoDays) -> None:
    site = days.restored(tmp_path / "restored", "ledger.db", "ledger.db.draws")
    set_limit(site, 9)
    (problem,) = site.run(2.2).problems
    assert f"; its limit is (9, 1e-06), and was ({ROOM:g}, 1e-06) at the last of these releases: " in problem
    assert "releases: to restore that limit, run hushcount" in problem
    assert shown(site)["campaigns"][0]["limit"]["epsilon"] == 9


def test_what_the_ledger_has_is_not_validated_again(
    tmp_path: Path, days: TwoDays, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a look at a campaign of years takes no longer."""
    site = days.site.copied(tmp_path / "copy")
    asked: list[int] = []
    monkeypatch.setattr(ledger_check, "proof_of", lambda *_: asked.append(1))
    assert site.run(2.3).problems == []
    assert asked == []


def test_a_run_without_a_ledger_releases_nothing_once_another_has_named_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, discovery=True)
    none = site.root / "none.toml"
    none.write_text(site.config.read_text().replace('ledger = "ledger.db"\n', ""))
    for day in (0, 1):
        collect(site.store, site.campaign, values(200), day=day)
    monkeypatch.setattr("pipelines.schedule.run.leased", lambda *_: nullcontext())
    others: list[int] = []

    def say(step: str) -> None:
        if step.endswith(": release") and not others:
            others.append(0)
            others[0] = len(site.run(1.2).hops)

    done_here = run(Deployment.read(none), clock=stopped(at(2.1)), say=say)
    # Both are shuffled by then.
    assert others == [6]
    assert [one.rpartition(" ")[2] for one in done_here.hops] == ["shuffle", "shuffle"]
    assert all("and the deployment file names no ledger" in one for one in done_here.problems)
    collect(site.store, site.campaign, values(200), day=2)
    done_here = run(Deployment.read(none), clock=stopped(at(3.1)))
    assert all("and the deployment file names no ledger" in one for one in done_here.problems)
    assert not (site.store / "released" / "words" / site.batch(2)).exists()
    assert len(charges(site)) == 4


@pytest.mark.parametrize("change", ["other-file", "no-draw", "no-number"])
def test_an_entry_that_proves_nothing_charges_nothing(tmp_path: Path, days: TwoDays, change: str) -> None:
    site = days.restored(tmp_path / "restored", "ledger.db", "ledger.db.draws")
    fold = Logs(site.deployment).read("words")
    told = deepcopy(fold.done)
    for hop in told[site.batch(1)].values():
        if hop.charge is not None:
            said = hop.charge["ledger"]["charged"]
            if change == "other-file":
                said["manifest"] = "0" * 64
            elif change == "no-draw":
                said["draw"] = None
            else:
                said["epsilon"] = -1
    ours = {
        "other-file": "states a charge that is not of its campaign file: restore it",
        "no-draw": "states a charge that is not of its campaign file: restore it",
        "no-number": "does not say what was charged: ledger.charged.epsilon is -1",
    }[change]
    problems = charge_lacking(
        site.deployment, read_campaign(site.deployment.campaigns / "words"), replace(fold, done=told), MACHINE
    )
    refused = [problem for problem in problems if ours in problem]
    assert all("of the log" in problem for problem in refused)
    assert len(refused) == (2 if change == "no-draw" else 3)
    # Of a release without its draw, the counts are charged nevertheless.
    assert len(charges(site)) == (3 if change == "no-draw" else 2)
