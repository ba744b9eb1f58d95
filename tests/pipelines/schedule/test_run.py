"""hushcount run: windows are closed in order, every segment counts once, and a run may be killed anywhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.envelopes import client_token
from hushcount.errors import HushcountError
from pipelines.asking.places import places_of
from pipelines.audit.doctor import examine
from pipelines.audit.reconcile import account_of
from pipelines.batches import rows as batches_module
from pipelines.batches.lock import alone
from pipelines.batches.rows import made_batches
from pipelines.batches.state import HOPS, opened, snapshot
from pipelines.console.tables import window_names
from pipelines.deployment.campaigns import read_campaign
from pipelines.handover.names import Batch
from pipelines.jobs.job import Job
from pipelines.schedule import hops as hops_module
from pipelines.schedule import run as run_module
from pipelines.schedule.report import Done
from tests.support.collecting import add_copies, collect, window_name
from tests.support.jobs import cli, done, refused, summary
from tests.support.postgres import postgresql
from tests.support.site import FLOOR, Site, account_at, at, values, view_of


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture(scope="module")
def one_day(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("day"))
    collect(site.store, site.campaign, values(100), day=0)
    assert site.run(1.1).problems == []
    return site


@pytest.fixture
def day_old(one_day: Site, tmp_path: Path) -> Site:
    """A site of its own after a window of 100 reports."""
    return one_day.copied(tmp_path / "site")


def test_a_window_is_closed_once_it_ended_and_its_results_are_those_of_the_jobs(site: Site) -> None:
    collect(site.store, site.campaign, values(200), day=0)
    assert site.run(0.9) == Done()
    finished = site.run(1.1)
    assert finished.closed == [f"words/{window_name(0)}"]
    assert finished.hops == [f"words/{site.batch(0)} shuffle", f"words/{site.batch(0)} analyze"]
    assert not finished.problems
    result = site.result(0)
    assert (result["received"], result["accepted"]) == (200, 200)
    assert [hop["hop"] for hop in result["upstream"]] == ["collect", "shuffle"]
    assert site.run(1.2) == Done()
    assert "all numbers agree" in done("status", "--config", site.config).out


class AffineSite(Site):
    mechanism = "ais"


@pytest.mark.long
def test_a_run_keeps_the_squares_of_the_groups_of_its_deployment(tmp_path: Path) -> None:
    site = AffineSite(tmp_path, tail='[analyzer.groups]\nfirst = {file = "group.txt"}\nlong = {glob = "?????"}\n')
    (tmp_path / "group.txt").write_text("alpha\nbeta\nunlisted\n")
    collect(site.store, site.campaign, values(200), day=0)
    assert not site.run(1.1).problems
    (place,) = places_of(site.deployment, read_campaign(site.deployment.campaigns / "words"), 1)
    counted = place.read()
    assert counted.dictionary is not None
    groups = [counted.dictionary.positions(items) for items in (["alpha", "beta"], ["alpha", "gamma"])]
    assert [one.size for one in counted.tally.squares] == [2, 2]
    assert all(counted.tally.square_of(group) is not None for group in groups)


@pytest.mark.long
def test_manifests_are_waited_for_until_patience_ends_or_every_collector_closed(tmp_path: Path) -> None:
    site = Site(tmp_path, settings='collectors = ["one", "two"]')
    collect(site.store, site.campaign, values(100), day=0)
    assert not site.run(1.01).closed
    collect(site.store, site.campaign, values(60), day=0, collector="two")
    assert site.run(1.01).closed
    assert site.result(0)["received"] == 160
    collect(site.store, site.campaign, values(70), day=1)
    assert not site.run(2.04).closed
    assert site.run(2.05).closed


def test_what_comes_late_joins_the_next_window_and_too_late_is_counted(day_old: Site) -> None:
    site = day_old
    collect(site.store, site.campaign, values(30), day=0, collector="two")
    collect(site.store, site.campaign, values(100), day=1)
    site.run(2.1)
    assert site.result(1)["received"] == 130
    collect(site.store, site.campaign, values(40), day=0, collector="three")
    collect(site.store, site.campaign, values(100), day=3)
    site.run(4.1)
    assert site.result(3)["received"] == 100
    account = done("status", "--config", site.config, "--json").json[0]
    first = next(counts for counts in account["windows"] if counts["window"] == window_name(0))
    assert first["states"] == {"batched": 130, "too_late": 40}
    assert account["differences"] == []


@pytest.mark.parametrize(("length", "grace"), [("2d", "2d"), ("6h", "1d")])
@pytest.mark.long(but=("6h-1d",))
def test_the_length_of_windows_may_change(day_old: Site, length: str, grace: str) -> None:
    """Each window ends when its collectors ended it, whatever the length is by now."""
    site = day_old
    collect(site.store, site.campaign, values(60), day=1)
    changed = site.config.read_text().replace('"1d"', f'"{length}"').replace('"2d"\npatience', f'"{grace}"\npatience')
    site.config.write_text(changed)
    assert not site.run(1.9).closed
    assert site.run(2.1).closed == [f"words/{window_name(1)}"]
    # Late by less than the grace period, counted from the window's real end.
    collect(site.store, site.campaign, values(30), day=1, collector="two")
    collect(site.store, site.campaign, values(70), day=2, seconds=2 * 86_400 if length == "2d" else 6 * 3600)
    assert bool(site.run(2.4).closed) == (length == "6h")
    site.run(4.1)
    assert [site.result(day)["received"] for day in (0, 1, 2)] == [100, 60, 100]
    assert "all numbers agree" in done("status", "--config", site.config).out
    assert not [check for check in examine(site.deployment, at(4.2)) if check.verdict == "bad"]


def test_too_few_reports_wait_for_the_next_window(site: Site) -> None:
    collect(site.store, site.campaign, values(FLOOR - 1), day=0)
    assert site.run(1.1).hops == []
    collect(site.store, site.campaign, values(1), day=1)
    assert site.run(2.1).hops
    assert site.result(1)["received"] == FLOOR


def test_a_batch_that_copies_made_look_large_enough_is_dissolved_and_waits(site: Site) -> None:
    made = collect(
        site.store, site.campaign, ["c1\talpha"] * 2 + [f"d{n}\tbeta" for n in range(FLOOR - 2)], 0, clients=True
    )
    assert len(made) == 1
    finished = site.run(1.1)
    assert (finished.hops, len(finished.waiting)) == ([], 1)
    assert f"{FLOOR} reports wait" in finished.waiting[0]
    assert not (site.store / "batches" / "words" / f"{site.batch(0)}.batch.json").exists()
    collect(site.store, site.campaign, values(10), day=1)
    assert site.run(2.1).hops
    assert site.result(1)["received"] == FLOOR + 10 - 1


def test_a_copy_in_a_later_window_is_not_counted_again_within_the_grace_period(site: Site) -> None:
    """A client that had no answer sends its report again, and midnight was in between."""
    (first,) = collect(site.store, site.campaign, values(200), day=0)
    site.run(1.1)
    for day, received in ((1, 300), (2, 500), (5, 500)):
        (segment,) = collect(site.store, site.campaign, values(100 if day == 1 else 300), day=day)
        add_copies(first, segment)
        site.run(day + 1.1)
        shuffled = summary(site.store / "shuffled" / "words" / site.batch(day))
        assert shuffled["received"] == received
        assert shuffled["rejected"] == ({"duplicate": 200} if day < 5 else {})
    assert "all numbers agree" in done("status", "--config", site.config).out


def test_a_copy_is_found_though_its_batch_was_shuffled_first(site: Site) -> None:
    """A segment of the first day could not be read for a while, and the second day went on without it."""
    (first,) = collect(site.store, site.campaign, values(200), day=0)
    (segment,) = collect(site.store, site.campaign, values(100), day=1)
    add_copies(first, segment)
    aside = first.rename(first.with_suffix(".aside"))
    assert site.run(2.1).hops == [f"words/{site.batch(1)} shuffle", f"words/{site.batch(1)} analyze"]
    assert site.result(1)["received"] == 300
    aside.rename(first)
    # All of the first day are copies now: nothing is left that reaches the minimum batch.
    assert "200 reports wait" in site.run(2.2).waiting[0]
    collect(site.store, site.campaign, values(60), day=2)
    site.run(3.1)
    assert site.result(2)["received"] == 60
    assert "all numbers agree" in done("status", "--config", site.config).out


def test_a_copy_in_a_segment_that_came_late_is_found_as_if_it_had_come_in_time(site: Site) -> None:
    """The batch that it joins is of a window that is further from the first than the grace period."""
    (first,) = collect(site.store, site.campaign, values(100), day=0)
    site.run(1.1)
    collect(site.store, site.campaign, values(60), day=2)
    site.run(3.1)
    (late,) = collect(site.store, site.campaign, values(20), day=2, collector="two")
    add_copies(first, late, collector="two")
    collect(site.store, site.campaign, values(100), day=4)
    site.run(5.1)
    shuffled = summary(site.store / "shuffled" / "words" / site.batch(4))
    assert (shuffled["received"], shuffled["rejected"]) == (220, {"duplicate": 100})


@pytest.mark.parametrize("lost", ["summary.json", ""])
@pytest.mark.long(but=("",))
def test_nothing_is_forwarded_while_what_it_must_be_compared_with_is_lost(site: Site, lost: str) -> None:
    (first,) = collect(site.store, site.campaign, values(100), day=0)
    site.run(1.1)
    before = site.store / "shuffled" / "words" / site.batch(0)
    aside = (before / lost).rename(site.root / "aside")
    (segment,) = collect(site.store, site.campaign, values(100), day=1)
    add_copies(first, segment)
    finished = site.run(2.1)
    assert (len(finished.hops), len(finished.problems)) == (0, 1)
    assert site.batch(0) in finished.problems[0]
    aside.rename(before / lost)
    site.run(2.2)
    assert site.result(1)["received"] == 100


def test_what_was_too_little_after_an_outage_joins_the_next_window(site: Site) -> None:
    """Nobody ran anything for days, and the first window's batch turns out to be too small."""
    collect(site.store, site.campaign, values(FLOOR - 10), day=0)
    (bad,) = collect(site.store, site.campaign, values(60), day=0, collector="two")
    bad.write_bytes(bad.read_bytes()[:-1])
    for day in range(1, 5):
        collect(site.store, site.campaign, values(100), day=day)
    site.run(5.1)
    assert [site.result(day)["received"] for day in (1, 2, 3, 4)] == [FLOOR + 90, 100, 100, 100]


def test_no_manifest_stops_the_others(site: Site) -> None:
    (segment,) = collect(site.store, site.campaign, values(100), day=0)
    described = json.loads((segment.parents[1] / "one.manifest.json").read_text())
    huge = [{"name": "s-000000.blocks", "records": 2**70, "bytes": 9, "digest": "0" * 64}]
    many = [{"name": f"t-00000{part}.blocks", "records": 2**63 - 1, "bytes": 9, "digest": "0" * 64} for part in (0, 1)]
    bad: dict[str, dict[str, object]] = {
        "p": {"window": "20261399T000000Z"},
        "q": {"seconds": 10**15},
        "r": {"epoch": 2**40},
        "s": {"segments": {"reports": huge}},
        "t": {"segments": {"reports": many}},
        # It lists a segment of another collector.
        "u": {},
    }
    for name, changes in bad.items():
        manifest = {**described, "collector": name, **changes}
        (segment.parents[1] / f"{name}.manifest.json").write_text(json.dumps(manifest))
    for _ in range(2):
        problems = site.run(1.1).problems
        named = [name for name in bad for problem in problems if f"/{name}.manifest.json" in problem]
        assert named == list(bad), problems
        assert len(problems) == len(bad)
    assert site.result(0)["received"] == 100


def test_no_summary_that_another_wrote_stops_the_others(site: Site) -> None:
    collect(site.store, site.campaign, values(100), day=0)
    collect(site.store, site.campaign, values(100), day=4)
    planted = site.store / "shuffled" / "words" / site.batch(0) / "summary.json"
    planted.parent.mkdir(parents=True)
    for content in (b"[" * 200_000, b"{}", b'{"hop": 7, "streams": {"reports": []}}'):
        planted.write_bytes(content)
        (problem,) = site.run(5.1).problems
        assert problem.startswith(f"words/{site.batch(0)}: {planted} "), content
        assert site.result(4)["received"] == 100


def test_an_error_of_one_batch_that_nobody_thought_of_stops_no_other_and_repeats_no_value(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(site.store, site.campaign, values(100), day=0)
    collect(site.store, site.campaign, values(100), day=4)
    real, first = hops_module.write_batch, site.batch(0)

    def stumbling(state: object, deployment: object, campaign: object, batch: Batch) -> str:
        if batch.name == first:
            raise TypeError("cannot count alpha")
        return real(state, deployment, campaign, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(hops_module, "write_batch", stumbling)
    finished = site.run(5.1)
    (problem,) = finished.problems
    assert problem.startswith(f"words/{first}: TypeError at pipelines/schedule/run.py:")
    assert "report this bug" in problem
    assert "alpha" not in problem
    assert site.result(4)["received"] == 100


def test_an_error_that_nobody_thought_of_does_not_end_a_watch(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def stumbling(*_: object, **__: object) -> Done:
        looks.append(1)
        if len(looks) == 1:
            raise TypeError("cannot count alpha")
        return Done()

    monkeypatch.setattr(run_module, "run", stumbling)
    monkeypatch.setattr("pipelines.commands.operate._stopped_within", lambda *_: len(looks) == 2)
    watched = done("run", "--config", site.config, "--watch")
    assert len(looks) == 2
    assert "TypeError at" in watched.err
    assert "alpha" not in watched.err


def test_a_manifest_from_the_edge_of_the_calendar_stops_nothing(site: Site) -> None:
    (segment,) = collect(site.store, site.campaign, values(100), day=0)
    described = json.loads((segment.parents[1] / "one.manifest.json").read_text())
    windows = ("00010101T000000Z", "99991231T000000Z")
    for window in windows:
        edge = segment.parents[2] / window
        (edge / "reports").mkdir(parents=True)
        (edge / "one.manifest.json").write_text(json.dumps({**described, "window": window}))
        (edge / "reports" / "one-000000.blocks").write_bytes(b"")
    for _ in range(2):
        problems = site.run(1.1).problems
        assert len(problems) == 2
        assert all(any(f"{window}/one.manifest.json" in one for one in problems) for window in windows)
    assert site.result(0)["received"] == 100
    differences = account_at(site, 1.2).differences
    assert all(any(window in one for one in differences) for window in windows), differences


def test_a_next_epoch_that_takes_long_to_make_does_not_hold_up_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, tail="[next_epoch.words]\n")
    collect(site.store, site.campaign, values(100), day=0)
    looked = []

    def slow(connection: Connection, *_: object) -> None:
        """While it is at work, somebody else writes."""
        looked.append(made_batches(connection, "words"))
        with opened(site.deployment.state) as state, state.begin() as writer:
            writer.execute(HOPS.insert().values(campaign="x", batch="x", hop="x", counts="{}", finished_at="x"))

    monkeypatch.setattr("pipelines.epochs.next_epoch.follow", slow)
    monkeypatch.setattr("pipelines.batches.state._BUSY_SECONDS", 1)
    assert site.run(1.1).problems == []
    assert [batch.name for batch in looked[0]] == [site.batch(0)]


def test_a_segment_put_aside_that_cannot_be_read_does_not_stop_its_campaign(site: Site) -> None:
    collect(site.store, site.campaign, values(100), day=0)
    (bad,) = collect(site.store, site.campaign, values(60), day=0, collector="two")
    bad.write_bytes(bad.read_bytes()[:-1])
    site.run(1.1)
    bad.unlink()
    bad.mkdir()
    collect(site.store, site.campaign, values(100), day=1)
    finished = site.run(2.1)
    assert bad.name in finished.problems[0]
    assert site.result(1)["received"] == 100
    assert site.run(9.0, sure=True).problems == []


def test_a_status_that_looks_for_long_does_not_hold_up_a_run(site: Site) -> None:
    collect(site.store, site.campaign, values(100), day=0)
    with opened(site.deployment.state) as state, snapshot(state) as connection:
        site.run(1.1)
        assert account_of(view_of(site.deployment, connection, at(1.2))).windows == []
    assert [counts.received for counts in account_at(site, 1.2).windows] == [100]


def test_each_epoch_is_a_batch_of_its_own(site: Site) -> None:
    collect(site.store, site.campaign, values(100), day=0)
    second = site.publish(2)
    collect(site.store, second, values(120), day=1)
    collect(site.store, site.campaign, values(60), day=1)
    finished = site.run(2.1)
    assert len(finished.hops) == 6
    assert [site.result(day, epoch)["received"] for day, epoch in ((0, 1), (1, 1), (1, 2))] == [100, 60, 120]


def test_a_damaged_segment_is_put_aside_and_the_rest_goes_on(site: Site) -> None:
    collect(site.store, site.campaign, values(100), day=0)
    (bad,) = collect(site.store, site.campaign, values(60), day=0, collector="two")
    data = bytearray(bad.read_bytes())
    data[500] ^= 1
    bad.write_bytes(data)
    finished = site.run(1.1)
    assert finished.hops
    assert "fails its digest: it was put aside" in finished.problems[0]
    assert site.result(0)["received"] == 100
    run_of_status = refused("status", "--config", site.config, status=1, says=["1 difference"])
    assert str(bad) in run_of_status.out
    assert "fails its digest" in run_of_status.out
    # It is said once by a run, and stays red for as long as it could be restored and counted.
    assert site.run(1.2).problems == []
    assert len(account_at(site, 2.9).differences) == 1
    assert account_at(site, 3.1).differences == []


def test_a_segment_that_was_put_aside_counts_once_it_is_restored(site: Site) -> None:
    collect(site.store, site.campaign, values(100), day=0)
    (bad,) = collect(site.store, site.campaign, values(60), day=0, collector="two")
    good = bad.read_bytes()
    bad.write_bytes(good[:-1])
    assert site.run(1.1).problems
    bad.write_bytes(good)
    collect(site.store, site.campaign, values(70), day=1)
    site.run(2.1)
    assert [site.result(day)["received"] for day in (0, 1)] == [100, 130]
    assert account_at(site, 2.2).differences == []


def test_a_segment_that_cannot_be_read_stops_its_batch_and_is_not_put_aside(site: Site) -> None:
    (lost,) = collect(site.store, site.campaign, values(100), day=0)
    aside = lost.rename(lost.with_suffix(".aside"))
    finished = site.run(1.1)
    assert not finished.hops
    assert lost.name in finished.problems[0]
    aside.rename(lost)
    assert site.run(1.1).hops
    assert site.result(0)["received"] == 100


def test_discovery_is_run_too_and_everything_is_charged_once(tmp_path: Path) -> None:
    site = Site(tmp_path, discovery=True)
    collect(site.store, site.campaign, values(300), day=0)
    hops = [name.rpartition(" ")[2] for name in site.run(1.1).hops]
    assert hops == ["shuffle", "release", "discover", "analyze"]
    charges = done("ledger", "show", "--ledger", site.root / "ledger.db", "--json").json
    site.run(1.1)
    assert done("ledger", "show", "--ledger", site.root / "ledger.db", "--json").json == charges
    assert "all numbers agree" in done("status", "--config", site.config).out


class Killed(BaseException):
    """Stands for the end of the process: nothing of ours catches it."""


def test_a_run_that_dies_before_and_after_each_step_is_taken_up_by_the_next(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step: all that outlives a run, a transaction, the file of a batch, a job."""
    collect(site.store, site.campaign, values(100), day=0)
    died: list[tuple[str, str]] = []

    def mortal(name: str) -> None:
        places = (hops_module, run_module, batches_module)
        module = next(place for place in places if hasattr(place, name))
        real = getattr(module, name)

        def wrapped(*arguments: object, **options: object) -> object:
            step = next((one.name for one in arguments[:1] if isinstance(one, Job)), name)
            for moment in ("before", "after"):
                if moment == "after":
                    result = real(*arguments, **options)
                if (step, moment) not in died:
                    died.append((step, moment))
                    raise Killed
            return result

        monkeypatch.setattr(module, name, wrapped)

    steps = ("register_new", "take_back_restored", "close_due", "write_batch", "shuffle", "analyze", "record")
    for name in {"run_job" if step in ("shuffle", "analyze") else step: None for step in steps}:
        mortal(name)
    for _ in range(2 * len(steps)):
        with pytest.raises(Killed):
            site.run(1.1)
    monkeypatch.undo()
    site.run(1.1)
    assert len(died) == 2 * len(steps)
    assert site.result(0)["received"] == 100
    account = done("status", "--config", site.config, "--json").json[0]
    assert [(hop["hop"], hop["received"]) for hop in account["hops"]] == [("shuffle", 100), ("analyze", 100)]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as address:
        yield address


@pytest.mark.long
def test_the_state_may_be_on_a_server(tmp_path: Path, server: str) -> None:
    site = Site(tmp_path, settings=f'state = "{server}"')
    collect(site.store, site.campaign, values(100), day=0)
    assert site.run(1.1).hops
    assert site.run(1.1) == Done()
    busy = pytest.raises(HushcountError, match="another run is at work")
    with opened(server) as state, alone(state, server, wait=False), busy:
        site.run(1.1)
    assert "all numbers agree" in done("status", "--config", site.config).out


def test_a_server_that_is_not_there_is_one_sentence_without_the_password(site: Site) -> None:
    address = "postgresql://someone:secret-word@127.0.0.1:1/db"
    site.config.write_text(site.config.read_text().replace('store = "store"', f'store = "store"\nstate = "{address}"'))
    says = refused("run", "--config", site.config, status=1, says=["someone:***@127.0.0.1:1/db", "cannot be used"])
    assert "secret-word" not in says.err


def test_a_second_run_leaves_or_waits(site: Site) -> None:
    address = site.deployment.state
    with opened(address) as state, alone(state, address, wait=False):
        with pytest.raises(HushcountError, match="another run is at work"):
            site.run(1.1)
        refused("run", "--config", site.config, status=1, says=["another run is at work", "--wait"])
    site.run(1.1)


def test_status_names_the_file_where_numbers_do_not_agree(day_old: Site) -> None:
    site = day_old
    part = next((site.store / "shuffled" / "words" / site.batch(0) / "reports").glob("*.blocks"))
    part.unlink()
    says = refused("status", "--config", site.config, status=1, says=["1 difference"])
    assert str(part.parent) in says.out
    assert "holds 0 reports, the shuffler forwarded 100" in says.out


def test_a_manifest_in_the_wrong_place_is_reported_and_the_rest_goes_on(site: Site) -> None:
    collect(site.store, site.campaign, values(100), day=0)
    manifest = next(site.store.glob("segments/words/*/*/one.manifest.json"))
    manifest.with_name("two.manifest.json").write_bytes(manifest.read_bytes())
    manifest.with_name("three.manifest.json").write_bytes(b"{}")
    finished = site.run(1.1)
    assert finished.hops
    assert len(finished.problems) == 2
    assert cli("run", "--config", site.config).status == 1


def test_a_disk_that_cannot_be_written_stops_one_batch_and_not_the_rest(site: Site) -> None:
    """One sentence with the name of what failed; a watching run goes on."""
    collect(site.store, site.campaign, values(100), day=0)
    (site.store / "batches").write_text("a file where a folder must be")
    finished = site.run(1.1)
    assert len(finished.problems) == 1
    assert str(site.store / "batches") in finished.problems[0]
    (site.store / "batches").unlink()
    # Nor does a campaign that cannot be read.
    other = site.root / "campaigns" / "others" / "collection.json"
    other.parent.mkdir()
    other.write_text("{")
    finished = site.run(1.2)
    assert finished.hops
    assert "others: " in finished.problems[0]
    assert "others: " in refused("status", "--config", site.config, status=1).err
    assert {check.verdict for check in examine(site.deployment, at(1.3)) if "others" in check.name} == {"bad"}


def test_what_killed_jobs_left_is_removed_and_is_no_batch(site: Site) -> None:
    collect(site.store, site.campaign, values(100), day=0)
    collect(site.store, site.campaign, values(100), day=1)
    site.run(1.1)
    shuffled, results = (site.store / name / "words" for name in ("shuffled", "results"))
    # Killed between the summary and the renaming.
    shutil.copytree(shuffled / site.batch(0), shuffled / f".{site.batch(1)}.0123abcd.partial")
    (results / f".{site.batch(1)}.0123abcd.partial").mkdir()
    shutil.copytree(shuffled / site.batch(0), shuffled / "of somebody else")
    shutil.copytree(results / site.batch(0), results / "replayed")
    assert site.run(2.1).problems == []
    assert {path.name for path in results.iterdir()} == {site.batch(0), site.batch(1), "replayed"}
    assert {path.name for path in shuffled.iterdir()} == {site.batch(0), site.batch(1), "of somebody else"}
    done("ask", "item", "--config", site.config, "--campaign", "words")
    config = site.config.read_text()
    site.config.write_text(f'parties = ["analyzer"]\nstate = "analyzer.db"\n{config}')
    assert site.run(2.2).problems == []


def lose_results(site: Site) -> Path:
    return Path(shutil.move(site.store / "results" / "words" / site.batch(0), site.root / "lost"))


def break_manifest(site: Site) -> Path:
    collect(site.store, site.campaign, values(20), day=0, collector="two")
    manifest = next(site.store.glob("segments/words/*/*/two.manifest.json"))
    manifest.write_text("{")
    return manifest


def lose_manifest(site: Site) -> Path:
    (segment,) = collect(site.store, site.campaign, values(20), day=0, collector="two")
    next(site.store.glob("segments/words/*/*/two.manifest.json")).unlink()
    return segment


def damage_journal(site: Site) -> Path:
    (segment,) = collect(site.store, site.campaign, values(60), day=1)
    manifest = segment.parents[1] / "one.manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "damaged": 3}))
    site.run(2.1)
    return manifest


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (damage_journal, "3 stretches of the collector's journal were damaged"),
        (lose_results, "is missing, though hushcount analyze wrote it"),
        (break_manifest, "two.manifest.json is not JSON"),
        (lose_manifest, "is in no manifest, though its window is over"),
    ],
)
@pytest.mark.long(but=("lose_results-is missing, though hushcount analyze wrote it",))
def test_what_is_not_in_the_store_as_the_state_has_it_is_a_difference(
    day_old: Site, break_it: Callable[[Site], Path], says: str
) -> None:
    site = day_old
    assert account_at(site, 1.2).differences == []
    broken = break_it(site)
    (difference, *_) = account_at(site, 1.2).differences
    assert says in difference
    assert broken.name in difference or site.batch(0) in difference


def test_a_window_that_brought_refusals_alone_is_shown(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    collect(site.store, site.campaign, values(100), day=0)
    (segment,) = collect(site.store, site.campaign, values(60), day=1)
    segment.unlink()
    manifest = segment.parents[1] / "one.manifest.json"
    described = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**described, "segments": {}, "refused": {"wrong_length": 517}}))
    site.run(2.1)
    (row,) = (line for line in done("status", "--config", site.config).out.splitlines() if "wrong_length 517" in line)
    assert window_names([window_name(1)])[window_name(1)] in row


def test_what_no_window_takes_any_more_is_too_late(site: Site) -> None:
    collect(site.store, site.campaign, values(FLOOR - 1), day=0)
    site.run(2.9)
    assert [counts.states for counts in account_at(site, 2.9).windows] == [{"waiting": FLOOR - 1}]
    site.run(3.1)
    assert [counts.states for counts in account_at(site, 3.1).windows] == [{"too_late": FLOOR - 1}]


def test_a_wrong_deployment_file_is_one_sentence(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for settings, says in [
        ('store = "x"\n[windows]\nlength = "1w"\ngrace = "1d"', "windows.length: duration is '1w'"),
        ('store = "x"\n[windows]\nlength = 1\ngrace = "1d"', "windows.length: duration is 1, must be"),
        ('store = "x"\n[windows]\nlength = "1d"\ngrace = "1m"', "patience is 0:10:00"),
        ('store = "x"\nstate = "mysql://h/d"\n[windows]\nlength = "1d"\ngrace = "1d"', "postgresql://"),
        ('store = "x"\nparties = ["nobody"]\n[windows]\nlength = "1d"\ngrace = "1d"', "parties.0 is 'nobody'"),
        ('store = "x"\n[windows]\nlength = "1d"\ngrace = "1d"\n[paths]\nsegment = "y"', "paths names 'segment'"),
        ('[windows]\nlength = "1d"\ngrace = "1d"', "store"),
    ]:
        with subtests.test(settings=settings):
            config = tmp_path / "deployment.toml"
            config.write_text(settings)
            refused("run", "--config", config, says=[says])


def test_a_state_of_a_newer_version_or_of_others_is_refused(site: Site) -> None:
    import sqlite3

    collect(site.store, site.campaign, values(100), day=0)
    site.run(1.1)
    state = site.deployment.state
    with sqlite3.connect(state) as connection:
        connection.execute("UPDATE hushcount_state SET version = 999")
    refused("run", "--config", site.config, says=["is of version 999", "use the newer hushcount"])
    other = site.root / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    site.config.write_text(site.config.read_text().replace('store = "store"', 'store = "store"\nstate = "other.db"'))
    refused("run", "--config", site.config, says=["theirs", "a database of its own"])


def test_neither_the_state_nor_what_is_said_tells_of_a_client_or_a_value(site: Site) -> None:
    lines = [f"canary-client-{number}\tcanary-value" for number in range(100)]
    collect(site.store, site.campaign, lines, day=0, clients=True)
    campaign = Campaign.read(site.campaign)
    (segment,) = site.store.glob("segments/words/*/*/reports/*.blocks")
    planted = [b"canary", *(client_token(f"canary-client-{number}", campaign.fingerprint) for number in range(100))]
    assert all(token in segment.read_bytes() for token in planted[1:])
    said: list[object] = [done("run", "--config", site.config).out, *(site.run(day).closed for day in (1.1, 1.2))]
    for command in ("status", "doctor"):
        said += [cli(command, "--config", site.config, *form).out for form in ([], ["--json"])]
    texts = [str(said).encode(), Path(site.deployment.state).read_bytes()]
    texts += [path.read_bytes() for path in site.store.rglob("*.json")]
    names = "\n".join(str(path) for path in site.root.rglob("*")).encode()
    for text in (*texts, names):
        for secret in planted:
            assert secret not in text
            assert secret.hex().encode() not in text
