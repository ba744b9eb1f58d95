"""What was restored from a copy, or lost: nothing is counted twice, and what is not known is given up by name.

A deployment of three days: the copy is of the first evening. Each test restores a part of it and goes on.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pipelines.ledger.file import opened
from pipelines.log.entries import Deleting
from pipelines.log.fold import Fold
from pipelines.log.log import Log, Logs
from pipelines.log.segments import GIVEN_UP
from pipelines.schedule.done import Done
from pipelines.schedule.run import run
from pipelines.schedule.work import Vouched
from tests.support.clocks import stopped
from tests.support.collecting import collect
from tests.support.site import FLOOR, Site, account_at, at, values
from tests.support.writes import Killed, acting_at, kill

LOST = Vouched(log_was_restored=True)
DAILY = 100
PARTIES = ("shuffler", "aux-server", "analyzer")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Path]:
    """Return a deployment after two days, with the third day's reports in its store, and the copy of the first day."""
    root = tmp_path_factory.mktemp("days")
    site = Site(root / "today", discovery=True)
    came(site, 0)
    assert site.run(1.1).problems == []
    copy = site.copied(root / "copy").root
    came(site, 1)
    assert site.run(2.1).problems == []
    came(site, 2)
    return site, copy


@pytest.fixture
def site(made: tuple[Site, Path], tmp_path: Path) -> Site:
    return made[0].copied(tmp_path / "site")


@pytest.fixture
def copy(made: tuple[Site, Path]) -> Path:
    return made[1]


def restore(site: Site, copy: Path, *names: str) -> None:
    """Put yesterday's copy of these files and folders in their place."""
    lose(site, *names)
    for name in names:
        to = site.root / name
        to.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (copy / name).is_dir() else shutil.copy)(copy / name, to)


def lose(site: Site, *names: str) -> None:
    for path in (site.root / name for name in names):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def go(site: Site, day: float, vouched: Vouched = LOST) -> Done:
    return run(site.deployment, clock=stopped(at(day)), vouched=vouched)


def came(site: Site, day: int) -> None:
    """Leave the reports of a day, with a manifest of its end."""
    collect(site.store, site.campaign, values(DAILY), day=day, came=day + 1.001)


def fold_of(site: Site) -> Fold:
    return Logs(site.deployment).read("words")


def outputs(site: Site) -> dict[str, bytes]:
    """Return what lies in the folders that others read, by its path."""
    folders = ("shuffled", "released", "found", "results")
    return {
        str(path.relative_to(site.store)): path.read_bytes()
        for folder in folders
        for path in (site.store / folder).rglob("*")
        if path.is_file()
    }


def charges(site: Site) -> list[tuple[str, float]]:
    with opened(site.root / "ledger.db") as connection:
        rows = connection.execute("SELECT key, epsilon FROM charges WHERE state = 'committed'")
        return sorted((row["key"], row["epsilon"]) for row in rows)


def counted(site: Site) -> int:
    """Return how many reports the results hold: each batch has one."""
    marks = (site.store / "results" / "words").glob("*/summary.json")
    return sum(json.loads(mark.read_text())["streams"]["reports"]["accepted"] for mark in marks)


def given_up(site: Site) -> int:
    dropped = fold_of(site).dropped.values()
    assert {one.reason for one in dropped} <= {GIVEN_UP}
    return sum(one.reports for one in dropped if one.stream == "reports")


@pytest.mark.parametrize("copied", [True, False], ids=["older", "missing"])
@pytest.mark.parametrize("party", [*PARTIES, "all"])
def test_a_log_that_is_older_or_missing_stops_its_campaign_until_a_new_one_begins(
    site: Site, copy: Path, party: str, copied: bool
) -> None:
    other = site.add("other", min_batch=FLOOR, dictionary=site.words)
    collect(site.store, other, values(DAILY), day=2, streams=("reports",), came=3.001)
    names = [f"store/log/{one}/words" for one in (PARTIES if party == "all" else (party,))]
    restore(site, copy, *names) if copied else lose(site, *names)
    before, charged = outputs(site), charges(site)
    stopped = go(site, 3.1, Vouched())
    (problem,) = stopped.problems
    first = PARTIES[0] if party == "all" else party
    assert problem.startswith(f"words: the log of {first} was lost, or is an older copy: ")
    assert "--log-was-restored" in problem
    # The other campaign goes on; of this one nothing changed.
    assert [name for name in stopped.hops if name.startswith("other/")]
    mine = {path: data for path, data in outputs(site).items() if "/words/" in path}
    assert mine == before
    assert set(charged) <= set(charges(site))
    done = go(site, 3.2)
    assert done.problems == []
    assert sum("a new log of" in one for one in done.dropped) == len(names)
    after = outputs(site)
    assert {path: after.get(path) for path in before} == before
    # A shuffler that does not know what it took gives up all that waits; the others have nothing that waits.
    lost = party in ("shuffler", "all")
    assert given_up(site) == (DAILY * (2 if copied else 3) if lost else 0)
    assert counted(site) == (2 * DAILY if lost else 3 * DAILY)
    assert account_at(site, 3.3).differences == []
    # Then all goes on as before.
    came(site, 3)
    assert go(site, 4.1, Vouched()).problems == []
    assert counted(site) == (3 * DAILY if lost else 4 * DAILY)


def test_what_was_counted_and_is_given_up_is_in_the_account_once(site: Site) -> None:
    """Retention had deleted what the shuffler handed on, so that only the results of its batches are taken up."""
    site.config.write_text(site.config.read_text() + '[retention]\nshuffled = "5d"\nreleased = "5d"\n')
    assert go(site, 3.1, Vouched()).problems == []
    assert go(site, 9.2, Vouched(clock_is_right=True)).problems == []
    assert not any(path.startswith("shuffled") for path in outputs(site))
    lose(site, "store/log")
    before, charged = outputs(site), charges(site)
    assert any("--log-was-restored" in one for one in go(site, 9.3, Vouched(clock_is_right=True)).problems)
    assert go(site, 9.4, Vouched(clock_is_right=True, log_was_restored=True)).problems == []
    assert (outputs(site), charges(site)) == (before, charged)
    account = account_at(site, 9.5)
    assert account.differences == []
    (line,) = (one for one in account.parties if one.stream == "reports")
    assert (line.received, line.went_on) == (3 * DAILY, 3 * DAILY)


def test_the_option_does_nothing_where_no_log_lacks_anything(site: Site) -> None:
    assert go(site, 3.1).problems == []
    assert {head.generation for head in fold_of(site).heads.values()} == {1}
    assert counted(site) == 3 * DAILY


def test_the_option_is_refused_while_a_lease_is_held(site: Site, copy: Path) -> None:
    from pipelines.schedule.run import AnotherRun, leased

    restore(site, copy, "store/log")
    with leased(site.deployment, wait=False), pytest.raises(AnotherRun):
        go(site, 3.1)
    assert {head.generation for head in fold_of(site).heads.values()} == {1}


@pytest.mark.parametrize(
    "names",
    [
        ("ledger.db", "ledger.db.draws"),
        ("store",),
        ("store", "ledger.db", "ledger.db.draws"),
        ("store/log", "ledger.db"),
    ],
    ids=["ledger", "store", "store and ledger", "log and ledger"],
)
def test_yesterdays_copy(site: Site, copy: Path, names: tuple[str, ...]) -> None:
    had = charges(site)
    restore(site, copy, *names)
    if "store" in names:
        # Of the days that the copy lacks only what collectors still have comes again.
        came(site, 2)
    first = go(site, 3.1, Vouched())
    if names == ("store",):
        # The ledger speaks of the lost entries.
        (problem,) = first.problems
        assert "ledger.db follows its entry" in problem
        first = go(site, 3.2)
    elif "store/log" in names:
        assert "outputs are of batches that it does not know" in first.problems[0]
        first = go(site, 3.2)
    said = [one for one in first.problems if "lacked" in one]
    assert len(said) == ("store" not in names)
    assert first.problems == said
    came(site, 3)
    assert go(site, 4.1, Vouched()).problems == []
    # Of the second day nobody knows by the log that it was counted: it is given up by name, and not counted again.
    twice = DAILY if "store/log" in names else 0
    assert counted(site) + given_up(site) - twice == (3 if "store" in names else 4) * DAILY
    if "ledger.db" not in names or "store" not in names:
        # What was charged stays charged, once.
        assert set(had) <= set(charges(site))
    assert len({key for key, _ in charges(site)}) == len(charges(site))


def test_two_restores_one_after_the_other(site: Site, copy: Path, tmp_path: Path) -> None:
    restore(site, copy, "store/log")
    assert go(site, 3.1).problems == []
    shutil.copytree(site.store / "log", tmp_path / "second")
    came(site, 3)
    assert go(site, 4.1, Vouched()).problems == []
    before = outputs(site)
    shutil.rmtree(site.store / "log")
    shutil.copytree(tmp_path / "second", site.store / "log")
    (problem,) = go(site, 4.2, Vouched()).problems
    assert "was lost, or is an older copy" in problem
    assert go(site, 4.3).problems == []
    # Now the copy of before both.
    restore(site, copy, "store/log")
    (problem,) = go(site, 4.4, Vouched()).problems
    assert "was lost, or is an older copy" in problem
    assert go(site, 4.5).problems == []
    assert outputs(site) == before
    assert go(site, 4.6, Vouched()).problems == []
    came(site, 4)
    assert go(site, 5.1, Vouched()).problems == []
    assert counted(site) == 4 * DAILY


def test_a_manifest_of_before_that_comes_to_light_later_is_given_up(site: Site, copy: Path) -> None:
    restore(site, copy, "store/log/shuffler")
    (manifest,) = (site.store / "segments" / "words").glob(f"*/{site.batch(2)[:16]}/*.manifest.json")
    hidden = manifest.with_name("hidden")
    manifest.rename(hidden)
    assert go(site, 3.1).problems == []
    hidden.rename(manifest)
    came(site, 3)
    assert go(site, 4.1, Vouched()).problems == []
    assert given_up(site) == 2 * DAILY
    assert counted(site) == 3 * DAILY


def test_a_log_that_is_restored_while_retention_deletes_keeps_what_it_does_not_say(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site.config.write_text(site.config.read_text() + '[retention]\nshuffled = "6d"\nsegments = "6d"\n')
    assert go(site, 3.1, Vouched()).problems == []
    shutil.copytree(site.store / "log", tmp_path / "log")
    there, real = outputs(site), Log.decide

    def decide(log: Log, *arguments: Any) -> Any:
        entry = real(log, *arguments)
        if entry is not None and isinstance(entry.decision, Deleting):
            # The copy is of before.
            shutil.rmtree(site.store / "log" / "shuffler")
            shutil.copytree(tmp_path / "log" / "shuffler", site.store / "log" / "shuffler")
        return entry

    monkeypatch.setattr(Log, "decide", decide)
    go(site, 13.1, Vouched(clock_is_right=True))
    assert outputs(site) == there
    monkeypatch.undo()
    go(site, 13.2, Vouched(clock_is_right=True))
    assert not any(path.startswith("shuffled") for path in outputs(site))


@pytest.mark.parametrize("number", range(3, 120, 7))
@pytest.mark.long(but=("3", "17"))
def test_a_restoring_run_may_be_killed_anywhere(site: Site, copy: Path, number: int) -> None:
    """At the moment of a number: before or after a step."""
    restore(site, copy, "store/log")
    before = outputs(site)
    with acting_at(number, kill), suppress(Killed):
        go(site, 3.1)
    done = go(site, 3.2)
    assert done.problems == []
    after_all = outputs(site)
    assert {path: after_all.get(path) for path in before} == before
    assert (counted(site), given_up(site)) == (2 * DAILY, 2 * DAILY)
    came(site, 3)
    assert go(site, 4.1, Vouched()).problems == []
    assert counted(site) == 3 * DAILY


def parted(site: Site) -> dict[str, Site]:
    """Return a deployment of each party, on the one store."""
    text = site.config.read_text()
    found = {}
    for party in PARTIES:
        one = site.copied(site.root.parent / party)
        shutil.rmtree(one.store)
        one.store.symlink_to(site.store)
        one.config.write_text(f'parties = ["{party}"]\n{text}')
        found[party] = one
    return found


def test_what_others_have_by_their_receipts_is_not_made_anew(tmp_path: Path) -> None:
    """The shuffler's log and outputs are of yesterday, and nothing of its own speaks of today's."""
    site = Site(tmp_path / "site", discovery=True)
    parties = parted(site)
    came(site, 0)
    for one in parties.values():
        assert go(one, 1.1, Vouched()).problems == []
    copies = ("log/shuffler", "shuffled", "stated/shuffler")
    for name in copies:
        shutil.copytree(site.store / name, tmp_path / "copy" / name)
    came(site, 1)
    for one in parties.values():
        assert go(one, 2.1, Vouched()).problems == []
    assert counted(site) == 2 * DAILY
    for name in copies:
        shutil.rmtree(site.store / name)
        shutil.copytree(tmp_path / "copy" / name, site.store / name)
    (problem,) = go(parties["shuffler"], 2.2, Vouched()).problems
    assert "others have 1 outputs that it does not know" in problem
    assert go(parties["shuffler"], 2.3).problems == []
    assert not (site.store / "shuffled" / "words" / site.batch(1)).exists()
    assert sum(one.reports for one in fold_of(parties["shuffler"]).dropped.values() if one.stream == "reports") == DAILY
    assert go(parties["shuffler"], 2.4, Vouched()).problems == []
    assert counted(site) == 2 * DAILY


def test_segments_that_an_older_copy_of_the_store_holds_are_released_no_second_time(tmp_path: Path) -> None:
    """The copy is of an evening on which some were stored: their window closed later. Only the ledger knows of that."""
    site = Site(tmp_path / "today", discovery=True)
    came(site, 0)
    site.run(1.1)
    collect(site.store, site.campaign, values(70), day=1, came=1.5)
    copy = site.copied(tmp_path / "copy").root
    collect(site.store, site.campaign, values(60), day=1, collector="two", came=2.001)
    assert site.run(2.1).problems == []
    before = charges(site)
    restore(site, copy, "store")
    (problem,) = go(site, 2.2, Vouched()).problems
    assert "the log of shuffler was lost, or is an older copy: ledger" in problem
    done = go(site, 2.3)
    assert (done.closed, done.hops) == ([], [])
    assert sum("70 reports" in one or "given up" in one for one in done.dropped) > 0
    came(site, 2)
    assert len(go(site, 3.1, Vouched()).hops) > 0
    assert counted(site) == 2 * DAILY
    assert {key for key, _ in before} < {key for key, _ in charges(site)}
    assert fold_of(site).counts_by_state["reports", "given_up"] == 70
