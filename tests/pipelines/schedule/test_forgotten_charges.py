"""A ledger that was lost, or restored from yesterday's copy: what it forgot stands in the summaries of the releases."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipelines.audit.doctor import examine
from pipelines.audit.view import Finding
from pipelines.schedule import forgotten
from tests.support.collecting import collect
from tests.support.jobs import done, files_under
from tests.support.postgres import postgresql
from tests.support.site import Site, account_at, at, values

LIMIT = ("--campaign", "words", "--delta", "1e-6", "--renew-days", 30)
ROOM = 5.0
"""Room for two windows of a day: each costs 1 for discovery, and of so few reports 1.07 for counts."""


class TwoDays:
    """A deployment of two days, the copy that was made after the first, and what the second one left."""

    def __init__(self, root: Path, settings: str = "") -> None:
        self.site = Site(root / "today", discovery=True, settings=settings)
        set_limit(self.site, ROOM)
        collect(self.site.store, self.site.campaign, values(200), day=0)
        assert self.site.run(1.1).problems == []
        # A run later has noted what it charged.
        self.site.run(1.2)
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


@pytest.mark.parametrize(
    "names",
    [
        ("ledger.db", "ledger.db.draws"),
        ("ledger.db", "ledger.db.draws", "state.db"),
        ("ledger.db",),
    ],
    ids=["ledger", "ledger-and-state", "no-draws"],
)
@pytest.mark.long(but=("ledger-and-state",))
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


@pytest.mark.parametrize("state", ["kept", "lost"])
@pytest.mark.long(but=("lost",))
def test_a_lost_ledger_comes_back_with_its_limit(tmp_path: Path, days: TwoDays, state: str) -> None:
    site = days.site.copied(tmp_path / "restored")
    for name in ("ledger.db", "ledger.db.draws", *(["state.db"] if state == "lost" else [])):
        remove(site.root / name)
    first, last = site.batch(0), site.batch(1)
    (problem,) = site.run(2.2).problems
    of = f"{site.root / 'ledger.db'} lacked 4 charges, of 2 batches from {first} to {last}; they are charged now"
    assert problem == f"words: {of}, and its limit is ({ROOM:g}, 1e-06) again"
    assert charges(site) == days.right
    (account,) = shown(site)["campaigns"]
    assert account == shown(days.site)["campaigns"][0]


def test_a_limit_that_was_set_since_the_copy_is_named(tmp_path: Path, days: TwoDays) -> None:
    site = days.restored(tmp_path / "restored", "ledger.db", "ledger.db.draws")
    set_limit(site, 9)
    (problem,) = site.run(2.2).problems
    assert f"; its limit is (9, 1e-06), and was ({ROOM:g}, 1e-06) at the last of these releases: hushcount" in problem
    assert shown(site)["campaigns"][0]["limit"]["epsilon"] == 9


def test_what_the_ledger_has_is_not_validated_again(
    tmp_path: Path, days: TwoDays, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a look at a campaign of years takes no longer."""
    site = days.site.copied(tmp_path / "copy")
    # This run notes what it reads in the store.
    site.run(2.2)
    asked: list[int] = []
    monkeypatch.setattr(forgotten, "proof_of", lambda *_: asked.append(1))
    assert site.run(2.3).problems == []
    assert asked == []


def test_a_store_of_yesterday_is_made_again_and_charged_once(tmp_path: Path, days: TwoDays) -> None:
    """The ledger is newer than the store: the same shuffled reports are the same release, and its draw is kept."""
    site = days.site.copied(tmp_path / "restored")
    before = files_under(site.store)
    for folder in ("released", "found", "results", "estimates"):
        remove(site.store / folder)
        shutil.copytree(days.yesterday.store / folder, site.store / folder)
    assert len(account_at(site, 2.2).differences) == 3
    remove(site.root / "state.db")
    assert site.run(2.2).problems == []
    assert charges(site) == days.right
    same = [name for name in before if "/bins/" in str(name) or str(name).endswith("tally.npz")]
    assert len(same) >= 4
    after = files_under(site.store)
    assert {name: after.get(name) for name in same} == {name: before[name] for name in same}
    assert account_at(site, 2.3).differences == []


@pytest.mark.parametrize("change", ["other-file", "no-draw", "no-number"])
@pytest.mark.long(but=("no-draw",))
def test_a_statement_that_proves_nothing_is_refused(tmp_path: Path, days: TwoDays, change: str) -> None:
    site = days.restored(tmp_path / "restored", "ledger.db", "ledger.db.draws", "state.db")
    for folder in ("released", "found", "results"):
        path = site.store / folder / "words" / site.batch(1) / "summary.json"
        data = json.loads(path.read_text())
        said = data["ledger"]["charged"]
        if change == "other-file":
            said["manifest"] = "0" * 64
        elif change == "no-draw":
            del said["draw"]
        else:
            said["epsilon"] = -1
        path.write_text(json.dumps(data))
    ours = {
        "other-file": "states a charge that is not of its campaign file: restore it",
        "no-draw": "which an older Hushcount wrote without its draw: restore a newer copy of the ledger",
        "no-number": "does not say what was charged: ledger.charged.epsilon is -1",
    }[change]
    problems = [problem for problem in site.run(2.2).problems if ours in problem]
    assert len(problems) == (2 if change == "no-draw" else 3)
    # Of a release without its draw, the counts are charged nevertheless.
    assert len(charges(site)) == (3 if change == "no-draw" else 2)
    assert len([one for one in examine(site.deployment, at(2.3)) if ours in one.sentence]) == len(problems)


@pytest.mark.long
def test_a_state_in_postgresql_notes_charges_too(tmp_path: Path) -> None:
    with postgresql() as server:
        days = TwoDays(tmp_path, settings=f'state = "{server}"')
        site = days.restored(tmp_path / "restored", "ledger.db", "ledger.db.draws")
        (problem,) = site.run(2.2).problems
        assert "lacked 2 charges" in problem
        assert charges(site) == days.right
        assert site.run(2.3).problems == []
        # Now the state alone proves it: the store's summaries are gone.
        for name in ("ledger.db", "ledger.db.draws"):
            remove(site.root / name)
        for folder in ("released", "found", "results"):
            remove(site.store / folder)
        (problem,) = site.run(2.4).problems
        assert "lacked 4 charges" in problem
        assert charges(site) == days.right
