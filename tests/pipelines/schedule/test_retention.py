"""Retention: what is old goes, what is still needed stays, and the numbers agree before, between and after."""

from __future__ import annotations

import shutil
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from pipelines.log.log import Logs
from pipelines.outputs.received_summary import folder_of
from tests.support.collecting import add_copies, collect, window_name
from tests.support.jobs import done, files_under, refused
from tests.support.records import spoil
from tests.support.site import FLOOR, Site, account_at, values
from tests.support.writes import Killed, acting_at, kill

KEEP = '[retention]\nsegments = "6d"\nshuffled = "7d"\nreleased = "7d"\ndead_letters = "9d"\n'


def kept(tmp_path: Path, *, discovery: bool = False, settings: str = "") -> Site:
    return Site(tmp_path, discovery=discovery, settings=settings, tail=KEEP)


def there(site: Site, folder: str) -> set[str]:
    """Return what lies in a folder of the store: batches, and windows of segments."""
    if folder == "segments":
        return {path.parent.name for path in (site.store / folder).rglob("*.manifest.json")}
    return {path.name for path in (site.store / folder / "words").glob("*") if path.is_dir() and any(path.iterdir())}


def test_each_folder_is_kept_for_its_time_and_no_longer(tmp_path: Path) -> None:
    site = kept(tmp_path, discovery=True)
    (segment, *_) = collect(site.store, site.campaign, values(200), day=0)
    collect(site.store, site.campaign, values(200), day=1)
    first, second = site.batch(0), site.batch(1)
    assert site.run(2.1).deleted == []
    everything = {
        "segments": {window_name(0), window_name(1)},
        "shuffled": {first, second},
        "released": {first, second},
    }
    assert {folder: there(site, folder) for folder in everything} == everything
    assert site.run(7, sure=True).deleted == []
    assert site.run(7.001, sure=True).deleted == [f"words/{segment.parents[2].name}/{window_name(0)} segments"]
    assert there(site, "segments") == {window_name(1)}
    assert not segment.parents[1].exists()
    assert site.run(8.001, sure=True).deleted[:2] == [f"words/{first} shuffled", f"words/{first} released"]
    assert there(site, "shuffled") == there(site, "released") == {second}
    site.run(30, sure=True)
    assert there(site, "shuffled") == there(site, "released") == there(site, "segments") == set()
    # What was estimated stays, and every number of what is gone.
    assert there(site, "results") == there(site, "found") == {first, second}
    before = Logs(site.deployment).read("words")
    assert all(before.deleted[f"{folder} {batch}"] for folder in ("shuffled", "released") for batch in (first, second))
    assert site.run(31, sure=True).deleted == []
    # A look that deletes nothing writes nothing.
    assert Logs(site.deployment).read("words").heads == before.heads
    account = done("status", "--config", site.config, "--json").json[0]
    assert [(hop["hop"], hop["received"]) for hop in account["hops"] if hop["hop"] == "shuffle"] == 4 * [
        ("shuffle", 200)
    ]
    assert account["differences"] == []


@pytest.mark.long
def test_what_a_killed_collector_had_written_half_goes_with_its_window(tmp_path: Path) -> None:
    site = kept(tmp_path)
    (segment,) = collect(site.store, site.campaign, values(200), day=0)
    (later,) = collect(site.store, site.campaign, values(200), day=1)
    halves = [path.with_name(f".{path.name}.0123.tmp") for path in (segment, segment.parents[1] / "one", later)]
    for half in halves:
        half.write_bytes(segment.read_bytes()[:100])
    site.run(2.1)
    assert site.run(7.001, sure=True).deleted == [f"words/{segment.parents[2].name}/{window_name(0)} segments"]
    assert [half.exists() for half in halves] == [False, False, True]
    assert not segment.parents[1].exists()


def test_nothing_goes_by_default(tmp_path: Path) -> None:
    site = Site(tmp_path)
    collect(site.store, site.campaign, values(100), day=0)
    site.run(1.1)
    assert site.run(1000, sure=True).deleted == []
    assert there(site, "segments") == {window_name(0)}


def test_dead_letters_are_kept_for_their_own_time(tmp_path: Path) -> None:
    site = kept(tmp_path)
    (segment,) = collect(site.store, site.campaign, values(101), day=0)
    spoil(segment)
    site.run(1.1)
    letters = Path(folder_of(str(site.store / "results" / "words" / site.batch(0)))) / "dead_letter" / "reports"
    assert [path.name.partition("-")[0] for path in letters.iterdir()] == ["not_opened"]
    site.run(9.9, sure=True)
    assert letters.exists()
    assert site.run(10.1, sure=True).deleted == [f"words/{site.batch(0)} results/dead_letter"]
    assert not letters.parent.exists()
    assert (site.result(0)["received"], site.result(0)["accepted"]) == (101, 100)


def test_what_was_not_there_is_neither_said_nor_entered_as_deleted(tmp_path: Path) -> None:
    """A batch of no discovery reports, which has no release; and none of dead letters."""
    site = kept(tmp_path, discovery=True)
    collect(site.store, site.campaign, values(100), day=0, streams=("reports",))
    assert site.run(1.1).hops == [f"words/{site.batch(0)} {hop}" for hop in ("shuffle", "analyze")]
    assert "release" in Logs(site.deployment).read("words").hops_of(site.batch(0))
    assert [one.rpartition(" ")[2] for one in site.run(50, sure=True).deleted] == ["shuffled", "segments"]
    assert Logs(site.deployment).read("words").deleted == {f"shuffled {site.batch(0)}": True}


def test_what_an_operator_deleted_is_not_said_again(tmp_path: Path) -> None:
    site = kept(tmp_path)
    collect(site.store, site.campaign, values(100), day=0)
    site.run(1.1)
    shutil.rmtree(site.store / "shuffled" / "words" / site.batch(0))
    assert [one.rpartition(" ")[2] for one in site.run(50, sure=True).deleted] == ["segments"]
    # It is not looked for again.
    assert Logs(site.deployment).read("words").deleted == {f"shuffled {site.batch(0)}": True}


def test_what_was_not_passed_over_by_every_hop_here_stays(tmp_path: Path) -> None:
    site = kept(tmp_path)
    collect(site.store, site.campaign, values(100), day=0)
    aside = shutil.move(site.keys, tmp_path / "elsewhere")
    assert site.run(1.1).problems
    late = site.run(100, sure=True)
    # The analyzer's key is away: no hop of the batch runs.
    assert (late.deleted, there(site, "segments"), there(site, "shuffled")) == ([], {window_name(0)}, set())
    shutil.move(aside, site.keys)
    assert site.run(100, sure=True).hops == [f"words/{site.batch(0)} {hop}" for hop in ("shuffle", "analyze")]
    assert there(site, "segments") == there(site, "shuffled") == set()


def test_what_is_lost_or_too_late_goes_and_what_is_restored_in_time_counts(tmp_path: Path) -> None:
    site = kept(tmp_path)
    collect(site.store, site.campaign, values(100), day=0)
    site.run(1.1)
    (bad,) = collect(site.store, site.campaign, values(60), day=1)
    data = bytearray(bad.read_bytes())
    data[500] ^= 1
    bad.write_bytes(data)
    collect(site.store, site.campaign, values(FLOOR - 1), day=2)
    assert "put aside" in site.run(3.1).problems[0]
    (lost,) = collect(site.store, site.campaign, values(100), day=4)
    aside = lost.rename(lost.with_suffix(".aside"))
    assert "is missing: the segment was put aside" in site.run(5.1).problems[0]
    aside.rename(lost)
    collect(site.store, site.campaign, values(60), day=5)
    assert site.run(6.1).problems == []
    assert site.result(5)["received"] == 160
    assert site.run(50, sure=True).problems == []
    assert there(site, "segments") == set()
    account = account_at(site, 50)
    assert {counts.window: counts.states for counts in account.windows} == {
        window_name(0): {"batched": 100},
        window_name(1): {"too_late": 60},
        window_name(2): {"too_late": FLOOR - 1},
        window_name(4): {"batched": 100},
        window_name(5): {"batched": 60},
    }
    assert account.differences == []


def test_a_folder_with_a_segment_or_manifest_that_no_window_took_in_stays(tmp_path: Path) -> None:
    site = kept(tmp_path)
    for day in range(4):
        collect(site.store, site.campaign, values(100), day=day)
    site.run(4.1)
    folders = {path.parent.name: path.parent for path in site.store.glob("segments/words/*/*/one.manifest.json")}
    (folders[window_name(0)] / "reports" / "unlisted-000000.blocks").write_bytes(b"sealed")
    (folders[window_name(1)] / "two.manifest.json").write_text("{")
    (folders[window_name(2)] / "notes.txt").write_text("of an operator")
    assert len(site.run(50, sure=True).problems) == 1
    assert there(site, "segments") == {window_name(0), window_name(1)}
    assert (folders[window_name(2)] / "notes.txt").exists()


def test_a_segment_that_waits_and_is_missing_keeps_its_manifest(tmp_path: Path) -> None:
    site = kept(tmp_path)
    (lost,) = collect(site.store, site.campaign, values(100), day=0)
    for day in range(1, 8):
        collect(site.store, site.campaign, values(60), day=day)
    keys = site.keys.rename(tmp_path / "away")
    # Every window is closed, and nothing can be shuffled.
    assert len(site.run(8.1, sure=True).problems) == 8
    keys.rename(site.keys)
    aside = lost.rename(lost.with_suffix(".aside"))
    (problem,) = site.run(8.2).problems
    assert "is missing: the segment was put aside" in problem
    assert there(site, "segments") == {window_name(day) for day in (0, *range(2, 8))}
    aside.rename(lost)
    assert account_at(site, 8.2).differences == []
    collect(site.store, site.campaign, values(60), day=8)
    assert site.run(9.1).problems == []
    assert site.result(8)["received"] == 160


def test_a_manifest_that_comes_back_is_not_counted_again(tmp_path: Path) -> None:
    """From a backup, with its segment, after both were deleted."""
    site = kept(tmp_path)
    (segment,) = collect(site.store, site.campaign, values(100), day=0)
    site.run(1.1)
    folder = shutil.copytree(segment.parents[1], tmp_path / "backup")
    site.run(50, sure=True)
    shutil.copytree(folder, segment.parents[1], dirs_exist_ok=True)
    finished = site.run(50.1, sure=True)
    assert (finished.closed, finished.hops) == ([], [])
    assert [window.states for window in account_at(site, 50.2).windows] == [{"batched": 100}]


def test_a_window_that_is_not_shuffled_yet_keeps_what_it_must_be_compared_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could shuffle anything for a month; the copy of a report in the next window is still found."""
    site = kept(tmp_path)
    (first,) = collect(site.store, site.campaign, values(100), day=0)
    site.run(1.1)
    (second,) = collect(site.store, site.campaign, values(100), day=1)
    add_copies(first, second)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pipelines.jobs.together._run_graph", full)
        assert site.run(2.1).problems
        assert site.run(40, sure=True).problems
    assert there(site, "shuffled") == {site.batch(0)}
    assert there(site, "segments") == {window_name(1)}
    site.run(40.1, sure=True)
    account = done("status", "--config", site.config, "--json").json[0]
    shuffles = [hop for hop in account["hops"] if hop["hop"] == "shuffle"]
    assert [(hop["received"], hop["rejected"]) for hop in shuffles] == [(100, {}), (200, {"duplicate": 100})]
    site.run(40.2, sure=True)
    assert there(site, "shuffled") == there(site, "segments") == set()


@pytest.mark.long
def test_a_deletion_that_dies_anywhere_is_gone_on_with(tmp_path: Path) -> None:
    """Before and after each step; whenever it dies, the numbers agree, and nobody finds half a batch."""
    site = kept(tmp_path, discovery=True)
    collect(site.store, site.campaign, values(200), day=0)
    site.run(1.1)
    for number in count(1):
        twin = site.copied(tmp_path.parent / f"{tmp_path.name}-{number}")
        with acting_at(number, kill) as writes, suppress(Killed):
            twin.run(30, sure=True)
        assert "all numbers agree" in done("status", "--config", twin.config).out
        # Who finds a batch by its summary finds all of it.
        for mark in twin.store.glob("[sr]*ed/words/*/summary.json"):
            whole = files_under(site.store / mark.parent.relative_to(twin.store))
            assert files_under(mark.parent).keys() == whole.keys()
        twin.run(30, sure=True)
        assert all(there(twin, folder) == set() for folder in ("segments", "shuffled", "released"))
        assert "all numbers agree" in done("status", "--config", twin.config).out
        if not writes.is_over:
            break
    assert number > 20


def test_a_party_deletes_what_it_wrote_and_nothing_else(tmp_path: Path) -> None:
    site = kept(tmp_path)
    collect(site.store, site.campaign, values(100), day=0)
    site.run(1.1)
    config = site.config.read_text()
    site.config.write_text(f'parties = ["analyzer"]\n{config}')
    site.run(1.2)
    site.run(100, sure=True)
    assert (there(site, "segments"), there(site, "shuffled")) == ({window_name(0)}, {site.batch(0)})
    site.config.write_text(f'parties = ["shuffler"]\n{config}')
    site.run(100, sure=True)
    assert (there(site, "segments"), there(site, "shuffled")) == (set(), set())


def test_too_short_a_time_is_refused(tmp_path: Path) -> None:
    site = Site(tmp_path)
    whole = site.config.read_text()
    for name in ["segments", "shuffled", "released", "dead_letters"]:
        site.config.write_text(f'{whole}[retention]\n{name} = "4d"\n')
        refused("run", "--config", site.config, says=[f"retention.{name} is 4d", " 5d"])
        site.config.write_text(site.config.read_text().replace("4d", "5d"))
        assert site.run(1).problems == []
