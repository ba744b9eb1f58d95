"""Which log a ledger belongs to: releases are charged in the one that the log names, and in no other."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from hushcount.errors import FormatError, HushcountError
from pipelines.audit.doctor import examine
from pipelines.jobs.together import Outcome
from pipelines.ledger.file import Followed, follow, followed, id_of, opened
from pipelines.log.ledger_check import name_ledger
from pipelines.log.log import Logs
from pipelines.schedule import advancing
from pipelines.schedule.attempts import Attempt
from pipelines.schedule.done import Done
from pipelines.schedule.run import run
from pipelines.schedule.work import Vouched
from tests.support.clocks import stopped
from tests.support.collecting import collect
from tests.support.site import Site, at, values

DAILY = 100


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path / "site", discovery=True)
    collect(site.store, site.campaign, values(DAILY), day=0)
    assert site.run(1.1).problems == []
    collect(site.store, site.campaign, values(DAILY), day=1)
    return site


def ledger(site: Site) -> Path:
    return site.root / "ledger.db"


def keys(path: Path) -> set[str]:
    with opened(path) as connection:
        return {row["key"] for row in connection.execute("SELECT key FROM charges WHERE state = 'committed'")}


def released(site: Site) -> list[str]:
    return sorted(path.parent.name for path in (site.store / "results" / "words").glob("*/summary.json"))


def go(site: Site, day: float, *, ledger_was_lost: bool = False) -> Done:
    return run(site.deployment, clock=stopped(at(day)), vouched=Vouched(ledger_was_lost=ledger_was_lost))


def beside(site: Site, name: str) -> Site:
    """Return another deployment on the store, with a ledger of its own."""
    other = site.copied(site.root.parent / name)
    shutil.rmtree(other.store)
    other.store.symlink_to(site.store)
    ledger(other).unlink()
    return other


def test_a_new_ledger_has_an_id_of_its_own(tmp_path: Path) -> None:
    ids = {id_of(tmp_path / f"{name}.db", create=True) for name in "ab"}
    assert len(ids) == 2
    assert id_of(tmp_path / "a.db") in ids
    with opened(tmp_path / "a.db") as connection:
        connection.execute("DELETE FROM identity")
    with pytest.raises(FormatError, match="has no id"):
        id_of(tmp_path / "a.db")


def test_a_ledger_follows_the_newest_entry_that_it_was_told(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    assert followed(path, "analyzer") == {}
    id_of(path, create=True)
    entries = [Followed(1, 5, "a" * 64), Followed(1, 4, "b" * 64), Followed(2, 1, "c" * 64), Followed(1, 9, "d" * 64)]
    seen = []
    for entry in entries:
        follow(path, "words", {"analyzer": entry})
        seen.append(followed(path, "analyzer")["words"])
    assert seen == [entries[0], entries[0], entries[2], entries[2]]
    assert followed(path, "aux-server") == {}


def test_the_second_deployment_with_a_ledger_of_its_own_is_refused(site: Site) -> None:
    other = beside(site, "other")
    for day in (2.1, 2.2):
        (problem,) = go(other, day).problems
        assert problem.startswith(f"words: releases are charged in ledger {id_of(ledger(site))}, and ")
        # It exists by now only if somebody made it.
        assert "--ledger-was-lost" in problem
        id_of(ledger(other), create=True)
    assert keys(ledger(other)) == set()
    assert released(site) == [site.batch(0)]
    (finding,) = [one for one in examine(other.deployment, at(2.2)) if one.name == "charges of words"]
    assert finding.verdict == "bad"
    assert "name the first ledger" in finding.says
    assert go(site, 2.3).problems == []
    assert released(site) == [site.batch(0), site.batch(1)]


def test_of_two_deployments_that_begin_at_once_one_is_refused(tmp_path: Path) -> None:
    site = Site(tmp_path / "site")
    other = site.copied(tmp_path / "other")
    shutil.rmtree(other.store)
    other.store.symlink_to(site.store)
    late = Logs(other.deployment).of("analyzer", "words")
    real = late.read

    def reading() -> object:
        # The other one names its ledger between this one's look and its decision.
        found = real()
        late.read = real  # type: ignore[method-assign]
        name_ledger(site.deployment, Logs(site.deployment).of("analyzer", "words"), at(1))
        return found

    late.read = reading  # type: ignore[assignment, method-assign]
    with pytest.raises(HushcountError, match="releases are charged in ledger"):
        name_ledger(other.deployment, late, at(1))
    assert Logs(site.deployment).read("words").ledger == id_of(ledger(site))


def test_a_deployment_that_names_no_ledger_any_more_releases_nothing(site: Site) -> None:
    text = site.config.read_text()
    site.config.write_text(text.replace('ledger = "ledger.db"\n', ""))
    (problem,) = go(site, 2.1).problems
    assert "names no ledger" in problem
    assert released(site) == [site.batch(0)]


def test_a_lost_ledger_is_replaced_only_if_the_operator_says_so(site: Site) -> None:
    had = keys(ledger(site))
    old = id_of(ledger(site))
    ledger(site).unlink()
    (problem,) = go(site, 2.1).problems
    assert f"in ledger {old}, and {ledger(site)} is missing" in problem
    assert not ledger(site).exists()
    done = go(site, 2.2, ledger_was_lost=True)
    assert [("lacked 2 charges" in one) for one in done.problems] == [True]
    assert had < keys(ledger(site))
    assert id_of(ledger(site)) != old
    assert go(site, 2.3).problems == []
    # The one that was lost comes back: it is of no use any more.
    kept = site.root / "kept.db"
    shutil.copy(ledger(site), kept)
    ledger(site).unlink()
    id_of(ledger(site), create=True)
    assert "releases are charged in ledger" in go(site, 2.4).problems[0]


def test_the_option_changes_nothing_where_the_ledger_is_the_one_that_the_log_names(site: Site) -> None:
    before = Logs(site.deployment).read("words").heads
    assert go(site, 1.2, ledger_was_lost=True).problems == []
    assert Logs(site.deployment).read("words").heads == before


def test_a_ledger_of_a_newer_log_stops_the_campaign(site: Site, tmp_path: Path) -> None:
    for party in ("aux-server", "analyzer"):
        shutil.copytree(site.store / "log" / party, tmp_path / party)
    assert go(site, 2.1).problems == []
    for folder in ("released", "found", "results"):
        shutil.rmtree(site.store / folder / "words" / site.batch(1))
    for party in ("aux-server", "analyzer"):
        shutil.rmtree(site.store / "log" / party)
        shutil.copytree(tmp_path / party, site.store / "log" / party)
    before = keys(ledger(site))
    (problem,) = go(site, 2.2).problems
    assert f"ledger {ledger(site)} follows its entry" in problem
    assert (released(site), keys(ledger(site))) == ([site.batch(0)], before)


def test_a_release_whose_charge_was_lost_meanwhile_is_not_handed_out(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The ledger is restored while a job runs: between its charge and the entry that makes it an output."""
    copy = shutil.copy(ledger(site), tmp_path / "copy.db")
    real, lost = advancing.carry_out, []

    def restoring(attempts: Sequence[Attempt]) -> Generator[Outcome, None, None]:
        for made in real(attempts):
            if attempts[0].hop == "analyze" and not lost:
                lost.append(attempts[0].hop)
                shutil.copy(copy, ledger(site))
            yield made

    monkeypatch.setattr(advancing, "carry_out", restoring)
    (problem,) = go(site, 2.1).problems
    assert "was restored while words was released: nothing was handed out" in problem
    assert released(site) == [site.batch(0)]
    # The restored one lacks the charges of the hops before, and gets them back.
    again = go(site, 2.2)
    assert ["lacked 1 charges" in one for one in again.problems] == [True]
    assert released(site) == [site.batch(0), site.batch(1)]
    assert len(keys(ledger(site))) == 4


def test_before_each_release_the_ledger_gets_what_the_log_says(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A ledger that is restored between two hops of one run has no room that was spent."""
    copy = shutil.copy(ledger(site), tmp_path / "copy.db")
    collect(site.store, site.campaign, values(DAILY), day=2)
    seen: list[set[str]] = []
    real = advancing.carry_out

    def restoring(attempts: Sequence[Attempt]) -> Generator[Outcome, None, None]:
        if attempts[0].hop == "analyze":
            seen.append(keys(ledger(site)))
        try:
            yield from real(attempts)
        finally:
            if attempts[0].hop == "discover":
                seen.append(keys(ledger(site)))
                shutil.copy(copy, ledger(site))

    monkeypatch.setattr(advancing, "carry_out", restoring)
    (problem,) = go(site, 3.1).problems
    assert "lacked 2 charges" in problem
    before, then = seen
    assert before == then
    assert len(keys(ledger(site))) == 6
