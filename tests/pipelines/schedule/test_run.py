"""hushcount run: windows are closed in order, every segment counts once, and a run may be killed anywhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.envelopes import client_token
from hushcount.collection.windows import window_text
from pipelines.audit.doctor import examine
from pipelines.deployment.settings import Deployment
from pipelines.handover.batch_file import BatchFile
from pipelines.log.entry_files import digest_of
from pipelines.log.facts import Batched
from pipelines.log.fold import Fold
from pipelines.schedule import run as run_module
from pipelines.schedule import tasks as tasks_module
from pipelines.schedule.done import Done
from pipelines.schedule.run import AnotherRun, leased
from tests.support.collecting import add_copies, collect, window_name
from tests.support.jobs import cli, done, files_under, refused, summary
from tests.support.site import FLOOR, Site, account_at, at, values


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
    collect(site.store, site.campaign, values(30), day=0, collector="two", came=2.05)
    collect(site.store, site.campaign, values(100), day=1)
    site.run(2.1)
    assert site.result(1)["received"] == 130
    collect(site.store, site.campaign, values(40), day=0, collector="three", came=4.05)
    collect(site.store, site.campaign, values(100), day=3)
    site.run(4.1)
    assert site.result(3)["received"] == 100
    account = done("status", "--config", site.config, "--json").json[0]
    first = next(counts for counts in account["windows"] if counts["window"] == window_name(0))
    assert first["states"] == {"batched": 130, "too_late": 40}
    assert account["differences"] == []


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
    assert not list(site.store.glob("attempts/**/*.blocks"))
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
    """The first day's batch could not be shuffled for a while, and the second day's went on without it."""
    (first,) = collect(site.store, site.campaign, values(200), day=0)
    (segment,) = collect(site.store, site.campaign, values(100), day=1)
    add_copies(first, segment)
    taken = site.store / "attempts" / "shuffler" / "words" / f"{site.batch(0)}.shuffle"
    taken.parent.mkdir(parents=True)
    taken.write_text("a file where a folder must be")
    assert site.run(2.1).hops == [f"words/{site.batch(1)} shuffle", f"words/{site.batch(1)} analyze"]
    assert site.result(1)["received"] == 300
    taken.unlink()
    # All of the first day are copies now: nothing is left that reaches the minimum batch.
    assert "200 reports wait" in site.run(2.2).waiting[0]
    collect(site.store, site.campaign, values(60), day=2)
    site.run(3.1)
    assert site.result(2)["received"] == 60
    shuffled = summary(site.store / "shuffled" / "words" / site.batch(2))
    assert (shuffled["received"], shuffled["rejected"]) == (260, {"duplicate": 200})
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


@pytest.mark.parametrize("lost", ["reports", ""])
@pytest.mark.long(but=("",))
def test_nothing_is_forwarded_while_what_it_must_be_compared_with_is_lost(site: Site, lost: str) -> None:
    (first,) = collect(site.store, site.campaign, values(100), day=0)
    site.run(1.1)
    before = site.files("shuffled", 0) / lost if lost else site.store / "shuffled" / "words" / site.batch(0)
    aside = before.rename(site.root / "aside")
    (segment,) = collect(site.store, site.campaign, values(100), day=1)
    add_copies(first, segment)
    finished = site.run(2.1)
    assert finished.hops == []
    assert any(problem.startswith(f"words/{site.batch(1)}: ") for problem in finished.problems)
    assert any(site.batch(0) in problem or f"{site.store / 'shuffled'}" in problem for problem in finished.problems)
    if before.exists():
        before.rmdir()
    aside.rename(before)
    site.run(2.2)
    assert site.result(1)["received"] == 100


def test_what_was_too_little_after_an_outage_joins_the_next_window(site: Site) -> None:
    """Nobody ran anything for days, and the first window's batch turns out to be too small."""
    collect(site.store, site.campaign, values(FLOOR - 10), day=0)
    (bad,) = collect(site.store, site.campaign, values(60), day=0, collector="two")
    bad.write_bytes(bad.read_bytes()[:-1])
    for day in range(1, 5):
        collect(site.store, site.campaign, values(100), day=day)
    site.run(5.1, sure=True)
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
    # One that says another collector's name than its own does, and one that says nothing.
    (segment.parents[1] / "v.manifest.json").write_text(json.dumps(described))
    (segment.parents[1] / "w.manifest.json").write_text("{}")
    for _ in range(2):
        problems = site.run(1.1).problems
        named = [name for name in (*bad, "v", "w") for one in problems if f"/{name}.manifest.json" in one]
        assert named == [*bad, "v", "w"], problems
        assert len(problems) == len(named)
    assert site.result(0)["received"] == 100
    assert cli("run", "--config", site.config).status == 1


def test_no_summary_that_another_wrote_stops_the_others(site: Site) -> None:
    for day in (0, 4):
        collect(site.store, site.campaign, values(100), day=day)
    config = site.config.read_text()
    site.config.write_text(f'parties = ["shuffler"]\n{config}')
    assert site.run(5.1, sure=True).problems == []
    site.config.write_text(f'parties = ["analyzer"]\n{config}')
    mark = site.store / "shuffled" / "words" / site.batch(0) / "summary.json"
    for content in (b"[" * 200_000, b"{}", b'{"hop": 7, "streams": {"reports": []}}'):
        mark.write_bytes(content)
        (problem,) = site.run(5.1).problems
        assert problem.startswith(f"words/{site.batch(0)}: {mark} "), content
        assert site.result(4)["received"] == 100


@pytest.mark.parametrize("folder", ["shuffled", "results"])
def test_an_output_that_the_log_does_not_know_stops_its_campaign_alone(day_old: Site, folder: str) -> None:
    """The log was lost, or is an older copy: whoever made the batch again would let it be counted twice."""
    site = day_old
    party = "shuffler" if folder == "shuffled" else "analyzer"
    shutil.rmtree(site.store / "log" / party)
    collect(site.store, site.campaign, values(100), day=1)
    (problem,) = site.run(2.1).problems
    assert problem.startswith(f"words: the log of {party} was lost, or is an older copy: ")
    assert "1 outputs are of batches that it does not know" in problem
    assert not (site.store / "shuffled" / "words" / site.batch(1)).exists()


def test_an_error_of_one_batch_that_nobody_thought_of_stops_no_other_and_repeats_no_value(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(site.store, site.campaign, values(100), day=0)
    collect(site.store, site.campaign, values(100), day=4)
    real, first = tasks_module.batch_file, site.batch(0)

    def stumbling(deployment: Deployment, fold: Fold, campaign: Campaign, made: Batched) -> BatchFile:
        if made.batch.name == first:
            raise TypeError("cannot count alpha")
        return real(deployment, fold, campaign, made)

    monkeypatch.setattr(tasks_module, "batch_file", stumbling)
    finished = site.run(5.1, sure=True)
    (problem,) = finished.problems
    assert problem.startswith(f"words/{first}: TypeError at pipelines/schedule/advancing.py:")
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


def test_a_segment_put_aside_that_cannot_be_read_does_not_stop_its_campaign(site: Site) -> None:
    collect(site.store, site.campaign, values(100), day=0)
    (bad,) = collect(site.store, site.campaign, values(60), day=0, collector="two")
    bad.write_bytes(bad.read_bytes()[:-1])
    site.run(1.1)
    bad.unlink()
    bad.mkdir()
    collect(site.store, site.campaign, values(100), day=1)
    # It was said when it was put aside, and stands in status.
    assert site.run(2.1).problems == []
    assert site.result(1)["received"] == 100
    assert bad.name in account_at(site, 2.2).differences[0]
    finished = site.run(9.0, sure=True)
    assert (finished.problems, len(finished.dropped)) == ([], 1)
    assert bad.name in finished.dropped[0]


def test_a_damaged_segment_is_put_aside_and_the_rest_goes_on(site: Site) -> None:
    collect(site.store, site.campaign, values(100), day=0)
    (bad,) = collect(site.store, site.campaign, values(60), day=0, collector="two")
    data = bytearray(bad.read_bytes())
    data[500] ^= 1
    bad.write_bytes(data)
    finished = site.run(1.1)
    assert finished.hops
    assert "fails its digest: the segment was put aside" in finished.problems[0]
    assert site.result(0)["received"] == 100
    run_of_status = refused("status", "--config", site.config, status=1, says=["1 difference"])
    assert str(bad) in run_of_status.out
    assert "fails its digest" in run_of_status.out
    # It is said once by a run, and stays red for as long as it could be restored and counted.
    assert site.run(1.2).problems == []
    assert len(account_at(site, 2.9).differences) == 1
    (dropped,) = site.run(3.1).dropped
    assert "60 reports are too late, and in no result: its file fails its digest" in dropped
    assert account_at(site, 3.1).differences == []


def test_a_segment_that_cannot_be_read_now_is_waited_for_and_not_put_aside(site: Site) -> None:
    (lost,) = collect(site.store, site.campaign, values(100), day=0)
    aside = lost.rename(lost.with_suffix(".aside"))
    lost.mkdir()
    finished = site.run(1.1)
    assert (finished.closed, finished.hops) == ([], [])
    assert lost.name in finished.problems[0]
    lost.rmdir()
    aside.rename(lost)
    assert site.run(1.1).hops
    assert site.result(0)["received"] == 100


def test_a_second_run_leaves_or_waits(site: Site) -> None:
    collect(site.store, site.campaign, values(100), day=0)
    with leased(site.deployment, wait=False):
        with pytest.raises(AnotherRun, match="another run is at work"):
            site.run(1.1)
        refused("run", "--config", site.config, status=1, says=["another run is at work", "--wait"])
    assert site.run(1.1).hops


def test_status_names_the_file_where_numbers_do_not_agree(day_old: Site) -> None:
    site = day_old
    part = next((site.files("shuffled", 0) / "reports").glob("*.blocks"))
    part.unlink()
    says = refused("status", "--config", site.config, status=1, says=["1 difference"])
    assert str(part.parent) in says.out
    assert "holds 0 records, shuffle handed on 100" in says.out


def test_a_disk_that_cannot_be_written_stops_one_batch_and_not_the_rest(site: Site) -> None:
    """One sentence with the name of what failed; a watching run goes on."""
    collect(site.store, site.campaign, values(100), day=0)
    (site.store / "attempts").write_text("a file where a folder must be")
    finished = site.run(1.1)
    assert len(finished.problems) == 1
    assert str(site.store / "attempts") in finished.problems[0]
    (site.store / "attempts").unlink()
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
    # Killed before the log said that the hop is done.
    half = site.store / "attempts" / "shuffler" / "words" / f"{site.batch(1)}.shuffle" / "0123456789abcdef"
    shutil.copytree(site.files("shuffled", 0), half)
    shutil.copytree(shuffled / site.batch(0), shuffled / "of somebody else")
    shutil.copytree(results / site.batch(0), results / "replayed")
    assert site.run(2.1).problems == []
    assert site.result(1)["received"] == 100
    assert [path for path in (site.store / "attempts").rglob("*") if path.is_file()] == []
    assert {path.name for path in results.iterdir()} == {site.batch(0), site.batch(1), "replayed"}
    assert {path.name for path in shuffled.iterdir()} == {site.batch(0), site.batch(1), "of somebody else"}
    done("ask", "item", "--config", site.config, "--campaign", "words")
    config = site.config.read_text()
    site.config.write_text(f'parties = ["analyzer"]\n{config}')
    assert site.run(2.2).problems == []


def test_a_damaged_journal_of_a_collector_is_a_difference(day_old: Site) -> None:
    site = day_old
    (segment,) = collect(site.store, site.campaign, values(60), day=1)
    manifest = segment.parents[1] / "one.manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "damaged": 3}))
    site.run(2.1)
    (difference,) = account_at(site, 2.2).differences
    assert f"{manifest.name}: 3 stretches of the collector's journal were damaged" in difference


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
    assert window_text(window_name(1)) in row


def test_a_wrong_deployment_file_is_one_sentence(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for settings, says in [
        ('store = "x"\n[windows]\nlength = "1w"\ngrace = "1d"', "windows.length: duration is '1w'"),
        ('store = "x"\n[windows]\nlength = 1\ngrace = "1d"', "windows.length: duration is 1, must be"),
        ('store = "x"\n[windows]\nlength = "1d"\ngrace = "1m"', "patience is 10m"),
        ('store = "x"\nstate = "state.db"\n[windows]\nlength = "1d"\ngrace = "1d"', "state"),
        ('store = "x"\nparties = ["nobody"]\n[windows]\nlength = "1d"\ngrace = "1d"', "parties.0 is 'nobody'"),
        ('store = "x"\n[windows]\nlength = "1d"\ngrace = "1d"\n[paths]\nsegment = "y"', "paths names 'segment'"),
        ('[windows]\nlength = "1d"\ngrace = "1d"', "store"),
    ]:
        with subtests.test(settings=settings):
            config = tmp_path / "deployment.toml"
            config.write_text(settings)
            refused("run", "--config", config, says=[says])


@pytest.mark.parametrize("change", ["version", "kind"])
def test_an_entry_of_a_newer_version_ends_writing_to_its_log(day_old: Site, change: str) -> None:
    """As when an operator runs an older version again, for a while, beside the newer one."""
    site = day_old
    folder = site.store / "log" / "shuffler" / "words" / "000001"
    newest = max(folder.glob("*.json"))
    described = json.loads(newest.read_text())
    number = described["number"] + 1
    described |= {"number": number, "before": digest_of(newest.read_bytes())}
    if change == "version":
        described["format"] = 999
    else:
        described["decision"] = {"kind": "merged", "with": "another"}
    path = folder / f"{number:010d}.json"
    path.write_text(json.dumps(described))
    before = files_under(site.store)
    # Besides its lease, a run writes only that it has looked.
    before.pop("log/shuffler+aux-server+analyzer.look.json")
    collect(site.store, site.campaign, values(100), day=1)
    (problem,) = site.run(2.1).problems
    says = "is of version 999" if change == "version" else "is of kind 'merged'"
    assert f"{path} {says}" in problem
    assert "use" in problem
    assert files_under(site.store).items() >= before.items()
    assert len(list(folder.glob("*.json"))) == number
    refused("run", "--config", site.config, status=1, says=[says])


def test_neither_the_log_nor_what_is_said_tells_of_a_client_or_a_value(site: Site) -> None:
    lines = [f"canary-client-{number}\tcanary-value" for number in range(100)]
    collect(site.store, site.campaign, lines, day=0, clients=True)
    campaign = Campaign.read(site.campaign)
    (segment,) = site.store.glob("segments/words/*/*/reports/*.blocks")
    planted = [b"canary", *(client_token(f"canary-client-{number}", campaign.fingerprint) for number in range(100))]
    assert all(token in segment.read_bytes() for token in planted[1:])
    said: list[object] = [done("run", "--config", site.config).out, *(site.run(day).closed for day in (1.1, 1.2))]
    for command in ("status", "doctor"):
        said += [cli(command, "--config", site.config, *form).out for form in ([], ["--json"])]
    texts = [str(said).encode(), *(path.read_bytes() for path in site.store.rglob("*.json"))]
    assert any(site.store.glob("log/shuffler/words/*/*.json"))
    names = "\n".join(str(path) for path in site.root.rglob("*")).encode()
    for text in (*texts, names):
        for secret in planted:
            assert secret not in text
            assert secret.hex().encode() not in text
