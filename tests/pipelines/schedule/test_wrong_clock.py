"""A clock that is set wrong once: nothing final is done by it, and it is said by how much it is off."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipelines.audit.doctor import examine
from pipelines.audit.orphans import relist
from pipelines.files import storage
from pipelines.handover.statements import NamedEntry, Statement, put
from pipelines.schedule.run import run
from pipelines.schedule.work import Vouched
from tests.support.clocks import stopped
from tests.support.collecting import collect, window_name
from tests.support.jobs import refused
from tests.support.site import FLOOR, Site, account_at, at, values, view_of

KEEP = '[retention]\nsegments = "6d"\nshuffled = "7d"\nreleased = "7d"\ndead_letters = "9d"\n'
JUMP = 400


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A deployment with retention that counted two windows; of a third one too few reports wait."""
    site = Site(tmp_path_factory.mktemp("made"), tail=KEEP)
    for day in range(2):
        collect(site.store, site.campaign, values(100), day=day)
        assert site.run(day + 1.1).problems == []
    collect(site.store, site.campaign, values(FLOOR - 1), day=2)
    assert site.run(3.1).problems == []
    return site


@pytest.fixture
def site(made: Site, tmp_path: Path) -> Site:
    return made.copied(tmp_path / "site")


def there(site: Site, folder: str) -> list[str]:
    """Return the files of a folder of the store."""
    return storage.list_objects(str(site.store / folder))


def came(site: Site, day: float, window: int, collector: str = "one") -> None:
    """Let a manifest have been written at a moment."""
    (path,) = (site.store / "segments").rglob(f"{window_name(window)}/{collector}.manifest.json")
    os.utime(path, (at(day).timestamp(), at(day).timestamp()))


def states(site: Site) -> dict[str, dict[str, int]]:
    return {counts.window: counts.states for counts in account_at(site, 3.2).windows}


def test_a_clock_that_is_far_ahead_deletes_nothing_and_gives_nothing_up(site: Site) -> None:
    kept = {folder: there(site, folder) for folder in ("segments", "shuffled", "log")}
    waited = states(site)
    assert waited[window_name(2)] == {"waiting": FLOOR - 1}
    for _ in range(2):
        done = site.run(3.1 + JUMP)
        assert (done.deleted, done.dropped, done.hops, done.published) == ([], [], [], [])
        (problem,) = done.problems
        assert "400 d ahead of all else that tells the time: the ledger" in problem
        assert f"the log {at(3.1):%Y-%m-%d %H:%M} UTC" in problem
        assert "hushcount run --clock-is-right" in problem
    # No entry either.
    assert {folder: there(site, folder) for folder in kept} == kept
    assert states(site) == waited
    # The clock is right again: what waited is counted with what comes.
    collect(site.store, site.campaign, values(FLOOR), day=3)
    done = site.run(4.1)
    assert (done.problems, len(done.hops)) == ([], 2)
    assert site.result(3)["accepted"] == 2 * FLOOR - 1


def test_where_nothing_waits_nothing_is_refused(tmp_path: Path) -> None:
    site = Site(tmp_path)
    collect(site.store, site.campaign, values(100), day=0)
    assert site.run(1.1).problems == []
    before = there(site, "log")
    done = site.run(1.1 + JUMP)
    assert (done.problems, done.is_quiet) == ([], True)
    assert there(site, "log") == before


def test_who_was_idle_confirms_the_clock_once(site: Site) -> None:
    assert site.run(3.1 + JUMP).problems
    done = site.run(3.1 + JUMP, sure=True)
    assert done.problems == []
    assert [path for path in there(site, "segments") if path.endswith("manifest.json")] == []
    assert there(site, "shuffled") == []
    (dropped,) = done.dropped
    assert f"{FLOOR - 1} reports are too late, and in no result" in dropped
    assert site.run(4.1 + JUMP).problems == []


def test_a_deployment_that_runs_daily_and_receives_nothing_goes_on_deleting(site: Site) -> None:
    for day in range(4, 12):
        assert site.run(day + 0.1).problems == []
    assert there(site, "segments") == there(site, "shuffled") == []


def test_a_manifest_of_a_collector_that_was_ahead_vouches_for_nothing(site: Site) -> None:
    """It lies 400 days ahead, and then the clock of the run jumps as far: what waits is not dropped by its window."""
    collect(site.store, site.campaign, values(100), day=3 + JUMP, collector="ahead")
    came(site, 4 + JUMP, 3 + JUMP, "ahead")
    assert site.run(3.2).problems == []
    waited = states(site)
    done = site.run(4.5 + JUMP)
    assert (done.closed, done.deleted, done.dropped) == ([], [], [])
    (problem,) = done.problems
    assert "after a gap, so that it proves nothing: the newest manifest" in problem
    assert states(site) == waited
    # Reports of that window are counted when it is due, and in no window before.
    assert site.run(4.5 + JUMP, sure=True).closed[-1] == f"words/{window_name(3 + JUMP)}"


@pytest.mark.long
def test_what_came_meanwhile_is_still_counted_up_to_the_newest_window(site: Site) -> None:
    """Its manifest is there, so that the window is over; only a clock can say that a collector was waited for."""
    collect(site.store, site.campaign, values(100), day=3)
    came(site, 4.001, 3)
    assert site.run(4.1 + JUMP).closed == []
    site.config.write_text(f'collectors = ["one"]\n{site.config.read_text()}')
    done = site.run(4.1 + JUMP)
    assert (done.closed, len(done.hops)) == ([f"words/{window_name(3)}"], 2)
    assert (done.deleted, done.dropped) == ([], [])
    assert len(done.problems) == 1


def test_a_window_that_is_open_is_not_listed_again_by_a_clock_that_is_ahead(site: Site) -> None:
    """Its collector names its segments itself; a second manifest of them would hold up the first."""
    (segment,) = collect(site.store, site.campaign, values(100), day=3)
    manifest = segment.parents[1] / "one.manifest.json"
    aside = manifest.rename(site.root / "aside")
    found = relist(view_of(site.deployment, at(3.5 + JUMP)))
    assert found.segments == {}
    assert "--clock-is-right" in found.problems[0]
    assert [path.name for path in segment.parents[1].glob("*.manifest.json")] == []
    aside.rename(manifest)
    assert site.run(4.1).problems == []


def test_no_epoch_is_published_by_a_clock_that_is_ahead(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.config.write_text(site.config.read_text() + "[next_epoch.words]\n")
    asked: list[object] = []
    monkeypatch.setattr("pipelines.epochs.next_epoch.follow", lambda *given: asked.append(given))
    site.run(3.1 + JUMP)
    assert asked == []
    site.run(3.2)
    assert len(asked) == 1


def test_doctor_says_by_how_much_the_clock_is_off_each_witness(site: Site) -> None:
    def told(day: float) -> dict[str, tuple[str, str]]:
        return {check.name: (check.verdict, check.says) for check in examine(site.deployment, at(day))}

    right = told(3.2)
    assert right["clock"][0] == "good"
    ahead = told(3.1 + JUMP)
    assert ahead["clock"][0] == "bad"
    assert "hushcount run --clock-is-right" in ahead["clock"][1]
    assert ahead["clock beside the log"] == ("good", f"{JUMP} d ahead of it")
    assert ahead["clock beside the ledger"][1].endswith(" ahead of it")
    behind = told(1.1)
    assert behind["clock beside the log"][0] == "bad"
    assert behind["clock beside the log"][1].startswith("2 d behind it: ")


def test_readers_that_were_down_for_long_learn_the_time_from_what_others_state(tmp_path: Path) -> None:
    """On a disk nothing else tells it to them. One statement after a gap proves nothing, as one manifest does not."""
    site = Site(tmp_path)
    shuffler, readers = site.of("shuffler"), site.of("aux-server", "analyzer")
    for day in range(10):
        collect(site.store, site.campaign, values(100), day=day)
        run(shuffler, clock=stopped(at(day + 1.1)))
        if not day:
            assert run(readers, clock=stopped(at(1.2))).problems == []
    came_back = run(readers, clock=stopped(at(10.2)))
    assert (came_back.problems, len(came_back.hops)) == ([], 9)
    collect(site.store, site.campaign, values(100), day=30)
    run(shuffler, clock=stopped(at(31.1)), vouched=Vouched(clock_is_right=True))
    (said,) = run(readers, clock=stopped(at(31.2))).problems
    assert "ahead of all else that tells the time" in said
    assert "the newest statement of another party" in said


def test_what_others_state_that_nobody_here_reads_moves_no_clock(tmp_path: Path) -> None:
    """Whoever writes there could else have a shuffler with a wrong clock delete what it keeps."""
    site = Site(tmp_path, settings='parties = ["shuffler"]', tail='[retention]\nshuffled = "5d"\nat_most = "5d"\n')
    for day in range(3):
        collect(site.store, site.campaign, values(60), day=day)
        site.run(day + 1.1)
    for number in range(20):
        batch = f"{window_name(100 + number)}-000001-{'0' * 16}"
        said = Statement(
            kind="statement", party="aux-server", campaign="words", batch=batch, hop="release", at=at(3 + 2 * number),
            summary="ab" * 32, after=NamedEntry(generation=1, number=number + 1, entry="cd" * 32),
        )  # fmt: skip
        put(site.deployment, said, None)
    assert site.run(3.1 + 38).deleted == []


def test_watching_does_not_trust_a_clock_for_ever(site: Site) -> None:
    refused("run", "--config", site.config, "--watch", "--clock-is-right", says=["--clock-is-right", "are for one run"])
