"""Retention: what is old goes, what is still needed stays, and the numbers agree before, between and after."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.batches import retention as retention_module
from pipelines.files import storage
from tests.pipelines.schedule.test_run import Killed
from tests.support.collecting import add_copies, collect, window_name
from tests.support.jobs import done, files_under, refused
from tests.support.site import FLOOR, Site, account_at, values

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
    assert not (site.store / "batches" / "words" / f"{first}.batch.json").exists()
    assert there(site, "shuffled") == there(site, "released") == {second}
    site.run(30, sure=True)
    assert there(site, "shuffled") == there(site, "released") == there(site, "segments") == set()
    # What was estimated stays, and every number of what is gone.
    assert there(site, "results") == there(site, "found") == {first, second}
    assert site.run(31, sure=True).deleted == []
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
    collect(site.store, site.campaign, values(100), day=0)
    site.run(1.1)
    letters = site.store / "results" / "words" / site.batch(0) / "dead_letter" / "reports"
    letters.mkdir(parents=True)
    (letters / "not_opened-164.blocks").write_bytes(b"sealed")
    site.run(9.9, sure=True)
    assert letters.exists()
    assert f"words/{site.batch(0)} results/dead_letter" in site.run(10.1, sure=True).deleted
    assert not letters.parent.exists()
    assert site.result(0)["received"] == 100


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


def test_what_waits_stays_and_what_is_lost_or_too_late_goes(tmp_path: Path) -> None:
    site = kept(tmp_path)
    collect(site.store, site.campaign, values(100), day=0)
    site.run(1.1)
    (bad,) = collect(site.store, site.campaign, values(60), day=1)
    data = bytearray(bad.read_bytes())
    data[500] ^= 1
    bad.write_bytes(data)
    collect(site.store, site.campaign, values(FLOOR - 1), day=2)
    assert "put aside" in site.run(3.1).problems[0]
    # Nobody has seen yet whether a window takes what waits.
    (lost,) = collect(site.store, site.campaign, values(100), day=4)
    aside = lost.rename(lost.with_suffix(".aside"))
    site.run(5.1)
    site.run(50, sure=True)
    assert there(site, "segments") == {window_name(day) for day in (0, 1, 2, 4)}
    aside.rename(lost)
    site.run(50, sure=True)
    assert there(site, "segments") == set()
    account = account_at(site, 50)
    assert {counts.window: counts.states for counts in account.windows} == {
        window_name(0): {"batched": 100},
        window_name(1): {"quarantined": 60},
        window_name(2): {"batched": FLOOR - 1},
        window_name(4): {"batched": 100},
    }
    assert account.differences == []


def test_a_window_that_is_not_shuffled_yet_keeps_what_it_must_be_compared_with(tmp_path: Path) -> None:
    """Nobody ran anything for a month; the copy of a report in the next window is still found."""
    site = kept(tmp_path)
    (first,) = collect(site.store, site.campaign, values(100), day=0)
    site.run(1.1)
    (second,) = collect(site.store, site.campaign, values(100), day=1)
    add_copies(first, second)
    lost = second.rename(second.with_suffix(".aside"))
    # It cannot be shuffled as long as one of its segments is away.
    assert site.run(40, sure=True).problems
    assert there(site, "shuffled") == {site.batch(0)}
    lost.rename(second)
    site.run(40.1, sure=True)
    account = done("status", "--config", site.config, "--json").json[0]
    shuffles = [hop for hop in account["hops"] if hop["hop"] == "shuffle"]
    assert [(hop["received"], hop["rejected"]) for hop in shuffles] == [(100, {}), (200, {"duplicate": 100})]
    site.run(40.2, sure=True)
    assert there(site, "shuffled") == there(site, "segments") == set()


@pytest.mark.long
def test_a_deletion_that_dies_anywhere_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after each file; whenever it dies, the numbers agree, and nobody finds half a batch."""
    site = kept(tmp_path, discovery=True)
    collect(site.store, site.campaign, values(200), day=0)
    site.run(1.1)
    deaths = 0
    for name in ("remove", "remove_directory", "remove_empty"):
        for number in range(100):
            real, calls = getattr(storage, name), 0

            def mortal(path: str, real: Callable[[str], None] = real, number: int = number) -> None:
                nonlocal calls
                if calls == number:
                    raise Killed
                calls += 1
                real(path)

            twin = site.copied(tmp_path.parent / f"{tmp_path.name}-{name}-{number}")
            with monkeypatch.context() as patch:
                patch.setattr(retention_module.storage, name, mortal)
                try:
                    twin.run(30, sure=True)
                    break
                except Killed:
                    deaths += 1
            assert "all numbers agree" in done("status", "--config", twin.config).out
            # Who finds a batch by its summary finds all of it.
            for mark in twin.store.glob("[sr]*ed/words/*/summary.json"):
                whole = files_under(site.store / mark.parent.relative_to(twin.store))
                assert files_under(mark.parent).keys() == whole.keys()
            twin.run(30, sure=True)
            assert all(there(twin, folder) == set() for folder in ("segments", "shuffled", "released"))
            assert "all numbers agree" in done("status", "--config", twin.config).out
    assert deaths >= 10


def test_a_party_deletes_what_it_wrote_and_nothing_else(tmp_path: Path) -> None:
    site = kept(tmp_path)
    collect(site.store, site.campaign, values(100), day=0)
    site.run(1.1)
    config, state = site.config.read_text(), site.root / "state.db"
    state.rename(state.with_name("shuffler.db"))
    site.config.write_text(f'parties = ["analyzer"]\nstate = "analyzer.db"\n{config}')
    site.run(1.2)
    site.run(100, sure=True)
    assert (there(site, "segments"), there(site, "shuffled")) == ({window_name(0)}, {site.batch(0)})
    site.config.write_text(f'parties = ["shuffler"]\nstate = "shuffler.db"\n{config}')
    site.run(100, sure=True)
    assert (there(site, "segments"), there(site, "shuffled")) == (set(), set())


def test_too_short_a_time_is_refused(tmp_path: Path) -> None:
    site = Site(tmp_path)
    whole = site.config.read_text()
    for name in ["segments", "shuffled", "released", "dead_letters"]:
        site.config.write_text(f'{whole}[retention]\n{name} = "4d"\n')
        refused("run", "--config", site.config, says=[f"retention.{name} is 4 days", " 5 days"])
        site.config.write_text(site.config.read_text().replace("4d", "5d"))
        assert site.run(1).problems == []
