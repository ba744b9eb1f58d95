"""hushcount doctor: each thing that can be wrong with a deployment is seen, and said with its cure."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, S3Options

from hushcount.collection.windows import window_text
from pipelines.audit.doctor import examine
from pipelines.audit.view import Finding
from pipelines.files import storage
from tests.support.collecting import collect, window_name
from tests.support.jobs import cli, done
from tests.support.opening import FakeLanes, put_lanes
from tests.support.site import Site, account_at, at, values


def bad(site: Site, day: float = 1.2) -> dict[str, Finding]:
    return {check.name: check for check in examine(site.deployment, at(day)) if check.verdict != "good"}


def test_nothing_is_wrong_with_a_good_deployment(site: Site) -> None:
    assert bad(site) == {}
    assert {check.name.split(" ")[0] for check in examine(site.deployment, at(1.2))} >= {
        "epoch", "private", "write", "disk", "volume", "clock", "campaign", "numbers",
    }  # fmt: skip
    # The clock of the command is the real one, and the window is that of today.
    assert "numbers of words" in cli("doctor", "--all", "--config", site.config).out
    assert "numbers of words" not in cli("doctor", "--config", site.config).out


def lose_key(site: Site) -> None:
    next(site.keys.glob("analyzer-*.key")).unlink()


def open_key_to_others(site: Site) -> None:
    next(site.keys.glob("analyzer-*.key")).chmod(0o644)


def lose_dictionary(site: Site) -> None:
    (copied,) = (site.root / "campaigns" / "words").glob("*.txt")
    copied.unlink()


def lose_segments(site: Site) -> None:
    collect(site.store, site.campaign, values(200), day=1)
    for path in site.store.glob("segments/words/*/*/reports/*.blocks"):
        path.unlink()
    site.run(2.1)


def block_results(site: Site) -> None:
    (site.store / "results" / "words").rename(site.store / "aside")
    (site.store / "results").rmdir()
    (site.store / "results").write_text("a file")


def collect_unknown(site: Site) -> None:
    folder = next(site.store.glob("segments/words/*"))
    folder.rename(folder.with_name("000009-0123456789abcdef"))


def live_in_the_future(site: Site) -> None:
    collect(site.store, site.campaign, values(200), day=5, collector="hasty")
    site.run(1.15)


def collect_little(site: Site) -> None:
    collect(site.store, site.campaign, values(20), day=1)
    collect(site.store, site.campaign, values(20), day=2)
    site.run(3.1)


@pytest.mark.parametrize(
    ("break_it", "name", "says", "day"),
    [
        (lose_key, "private analyzer key of epoch 1 of words", "analyzer-", 1.2),
        (open_key_to_others, "private analyzer key of epoch 1 of words", "chmod 600", 1.2),
        (lose_dictionary, "dictionary of epoch 1 of words", "is missing", 1.2),
        (lose_segments, "numbers of words", "hushcount status", 2.2),
        (block_results, "write to results", "let this user write there", 1.2),
        (collect_unknown, "campaign files of words", "000009-0123456789abcdef", 1.2),
        (live_in_the_future, "clock of hasty", "set the clocks", 1.2),
        (collect_little, "volume of words reports", "lengthen the window", 3.2),
    ],
)
@pytest.mark.long(but=("lose_dictionary-dictionary of epoch 1 of words-is missing-1.2",))
def test_what_is_wrong_is_seen_and_said(
    site: Site, break_it: Callable[[Site], None], name: str, says: str, day: float
) -> None:
    break_it(site)
    found = bad(site, day)
    assert name in found, found
    assert says in found[name].says


@pytest.mark.parametrize(
    ("sizes", "verdict"),
    [
        ((5, 20, 20), "bad"),
        ((20, 0, 0), "bad"),
        ((400, 0, 0), "warning"),
        ((400, 5, 5, 5), "bad"),
        ((400, 5, 5), "warning"),
    ],
)
@pytest.mark.long(but=("sizes0-bad",))
def test_reports_are_dropped_if_a_grace_period_brings_no_batch(
    tmp_path: Path, sizes: tuple[int, ...], verdict: str
) -> None:
    """Of three windows, with the floor at 50; discovery has reports in each of them."""
    site = Site(tmp_path, discovery=True)
    for day, number in enumerate(sizes):
        came = day + 1
        collect(site.store, site.campaign, values(60), day=day, streams=("discovery",), collector="other", came=came)
        if number:
            collect(site.store, site.campaign, values(number), day=day, streams=("reports",), came=came)
    site.run(len(sizes) + 0.1)
    found = bad(site, len(sizes) + 0.2)["volume of words reports"]
    assert found.verdict == verdict
    assert ("reports are dropped" in found.says) == (verdict == "bad")


@pytest.mark.parametrize(
    ("settings", "tail", "name", "says"),
    [
        ('sign_with = "nowhere"', "", "sign_with", "nowhere"),
        ('shuffler_keys = "nowhere/public.json"', "", "keys_of_parties", "nowhere"),
        ('collectors = ["one", "typo"]', "", "collector typo", "take it out of collectors"),
        ("", '[collector]\nname = "one"\nauthentication = "bearer"\ntokens = "none.txt"', "authentication", "none.txt"),
        ("", f'[collector]\nname = "one"\njournal = "."\nleast_free_bytes = {10**15}', "disk of journal", "free some"),
    ],
)
@pytest.mark.long(but=('sign_with = "nowhere"--sign_with-nowhere',))
def test_what_the_deployment_file_names_is_looked_at(
    tmp_path: Path, settings: str, tail: str, name: str, says: str
) -> None:
    site = Site(tmp_path, settings=settings, tail=tail)
    collect(site.store, site.campaign, values(100), day=0)
    site.run(1.1)
    found = bad(site)
    assert says in found[name].says
    assert "Traceback" not in cli("doctor", "--config", site.config).err


def test_campaign_files_that_clients_who_verify_would_refuse_are_bad(tmp_path: Path) -> None:
    site = Site(tmp_path, tail="[next_epoch.words]\n")
    assert {"next epoch of words", "signature of words"}.isdisjoint(bad(site))
    done("keys", "new", "--role", "operator", "--out", tmp_path / "operator")
    done("campaign", "sign", "--campaign", site.campaign, "--keys", tmp_path / "operator")
    assert "set sign_with" in bad(site)["next epoch of words"].says
    site.publish(2)
    assert "epoch 2 is unsigned" in bad(site)["signature of words"].says


def test_the_next_epoch_is_planned_and_signed_before_run_does_it(tmp_path: Path) -> None:
    """The key that sign_with names is made by nothing, is another party's, or is lost; then it is the operator's."""
    site = Site(tmp_path, tail='[next_epoch.words]\nsign_with = "operator-keys"\n')
    name, operator = "next epoch of words", tmp_path / "operator-keys"
    said = bad(site)[name].says
    assert f"{operator} is not a key directory: hushcount keys new --role operator --out {operator} makes one" in said
    shutil.copytree(site.keys, operator)
    assert "no active key of the operator: hushcount keys new --role operator --out ANOTHER" in bad(site)[name].says
    shutil.rmtree(operator)
    done("keys", "new", "--role", "operator", "--out", operator)
    (good,) = (check for check in examine(site.deployment, at(1.1)) if check.name == name)
    assert (good.verdict, good.says.partition(" by ")[0]) == ("good", "epoch 2 can be planned, signed")
    next(operator.glob("operator-*.key")).unlink()
    assert bad(site)[name].verdict == "bad"


def test_reports_that_libsodium_had_to_open_are_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path, discovery=True)
    name, lanes = "opening of words", FakeLanes()
    put_lanes(monkeypatch, lambda: lanes)
    collect(site.store, site.campaign, values(200), day=0)
    site.run(1.1)
    assert lanes.calls
    assert name not in bad(site)
    lanes.faulty = True
    collect(site.store, site.campaign, values(200), day=1)
    site.run(2.1)
    opening = site.result(1)["opening"]
    assert isinstance(opening, dict)
    assert opening["rescued"] > 50
    found = [check for check in examine(site.deployment, at(2.2)) if check.name == name]
    assert [check.verdict for check in found] == ["bad"] * 2
    (said,) = (check.says for check in found if f"{site.batch(1)} analyze" in check.says)
    assert said == (
        f"{site.batch(1)} analyze: the lanes failed to open {opening['rescued']} reports; libsodium opened them, so no "
        "report was lost: set HUSHCOUNT_OPENING=libsodium, and report this as a bug"
    )
    assert any(f"{site.batch(1)} release" in check.says for check in found)
    # Nothing else is wrong, and the results are as those of the day before.
    assert bad(site, 2.2).keys() == {name, "numbers of words"}
    assert site.result(1)["accepted"] == site.result(0)["accepted"] == 200
    status = cli("status", "--config", site.config)
    assert status.status == 1
    assert said in status.out.replace("\n", " ")
    # A batch later it is over.
    lanes.faulty = False
    collect(site.store, site.campaign, values(200), day=2)
    site.run(3.1)
    assert bad(site, 3.2) == {}


def test_a_variable_that_names_no_engine_is_bad(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSHCOUNT_OPENING", "fast")
    assert "HUSHCOUNT_OPENING is 'fast'" in bad(site)["opening_engine"].says


def test_a_group_whose_file_is_gone_is_bad(tmp_path: Path) -> None:
    site = Site(tmp_path, tail='[analyzer.groups]\nall = {glob = "*"}\nfirst = {file = "group.txt"}\n')
    assert "group first: cannot read" in bad(site)["groups"].sentence
    (tmp_path / "group.txt").write_text("alpha\n")
    assert "groups" not in bad(site)


def test_how_many_windows_the_budget_allows_is_said(tmp_path: Path) -> None:
    site = Site(tmp_path, discovery=True)

    def limit(epsilon: float, *options: object) -> Finding:
        terms = ("--campaign", "words", "--epsilon", epsilon, "--delta", "1e-6", *options)
        done("ledger", "set", "--ledger", site.root / "ledger.db", *terms)
        (check,) = (check for check in examine(site.deployment, at(0.5)) if check.name == "budget of words")
        return check

    # Discovery costs 1, and of 50 reports an analysis its local 2 at most.
    assert limit(0.5).verdict == "bad"
    three = limit(9.0)
    assert (three.verdict, three.says.partition(",")[0]) == ("warning", "the ledger allows 3 windows")
    # Each collector counts a client's cap by itself: an analysis costs twice as much, discovery what it did.
    config = site.config.read_text()
    site.config.write_text(f'collectors = ["one", "two"]\n{config}')
    assert limit(9.0).says.partition(",")[0] == "the ledger allows 1 windows"
    site.config.write_text(config)
    assert limit(9.0, "--renew-days", 3).verdict == "good"
    assert limit(100.0).verdict == "good"


def test_charges_are_said_to_compose_jointly_only_where_one_has_a_curve(tmp_path: Path) -> None:
    site = Site(tmp_path, discovery=True)
    terms = ("--ledger", site.root / "ledger.db", "--campaign", "words", "--epsilon", 100, "--delta", "1e-6")
    done("ledger", "set", *terms, "--fixed-parameters")

    def said() -> str:
        (check,) = (check for check in examine(site.deployment, at(0.5)) if check.name == "budget of words")
        return check.says

    assert said().endswith(", charges composed jointly")
    # The auxiliary server releases discovered values, which have none.
    site.config.write_text(f'parties = ["aux-server"]\n{site.config.read_text()}')
    assert "jointly" not in said()


def test_fixed_parameters_and_a_next_epoch_made_of_results_contradict_each_other(tmp_path: Path) -> None:
    site = Site(tmp_path, discovery=True, tail="[next_epoch.words]\n")
    terms = ("--ledger", site.root / "ledger.db", "--campaign", "words", "--epsilon", 100, "--delta", "1e-6")
    done("ledger", "set", *terms, "--fixed-parameters")
    assert "releases of the next epoch will be refused" in bad(site)["fixed parameters of words"].says
    done("ledger", "set", *terms)
    assert "fixed parameters of words" not in bad(site)


def test_a_ledger_that_is_damaged_is_bad(tmp_path: Path) -> None:
    site = Site(tmp_path, discovery=True)
    assert "ledger" not in bad(site)
    (site.root / "ledger.db").write_bytes(b"no ledger" * 100)
    assert bad(site)["ledger"].verdict == "bad"


def test_a_clock_that_is_ahead_by_less_than_a_window_is_seen(site: Site) -> None:
    """It closes windows before they are over here, and every report of the last hours is in the wrong one."""
    collect(site.store, site.campaign, values(200), day=1)
    site.run(1.5)
    assert "set the clocks" in bad(site, 1.5)["clock of one"].says
    assert "clock of one" not in bad(site, 2.0)


def test_a_key_that_ends_soon_and_a_collector_that_fell_silent_are_warned_of(site: Site) -> None:
    found = bad(site, 360.0)
    assert found["analyzer key of epoch 1 of words"].verdict == "warning"
    assert "hushcount keys rotate" in found["analyzer key of epoch 1 of words"].says
    assert found["manifests of one"].verdict == "warning"
    assert "set segments under [retention]" in found["age of segments of words"].says
    assert "age of segments of words" not in bad(site, 80.0)
    assert bad(site, 366.0 + timedelta(days=1).days)["analyzer key of epoch 1 of words"].verdict == "bad"


def test_a_check_that_may_not_read_says_which_file(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the user is not root, who may read everything."""

    def closed(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pipelines.audit.doctor.read_epochs", closed)
    assert bad(site)["campaigns"].says == f"{site.root / 'campaigns'}: Permission denied"


def test_a_check_that_cannot_be_made_is_bad_and_silences_no_other(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {check.name for check in examine(site.deployment, at(1.2))}

    def refused(directory: str, *_: object) -> None:
        raise PermissionError(13, "Permission denied", directory)

    monkeypatch.setattr("pipelines.files.storage.list_from", refused)
    found = {check.name: check.verdict for check in examine(site.deployment, at(1.2))}
    of_manifests = {
        "campaign files of words", "numbers of words", "runs of words", "segments of words", "clock", "segments",
        "collectors", "collectors of words", "senders of words", "age of segments of words",
    }  # fmt: skip
    assert {name for name, verdict in found.items() if verdict == "bad"} == of_manifests
    said_otherwise = {"clock of one", "clock beside the log", "clock beside the ledger", "senders of words at one"}
    assert found.keys() - of_manifests == names - of_manifests - said_otherwise


def test_every_check_of_a_campaign_looks_at_one_listing_of_its_segments(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, real = [], storage.list_from

    def noted(directory: str, *rest: Any) -> Iterator[tuple[str, int, float]]:
        asked.append(directory)
        return real(directory, *rest)

    monkeypatch.setattr("pipelines.files.storage.list_from", noted)
    examine(site.deployment, at(1.2))
    assert asked.count(site.deployment.folder("segments", "words")) == 1
    # And one is of all campaigns, also of those without a file.
    assert asked.count(site.deployment.folder("segments")) == 1


def test_a_log_that_cannot_be_read_is_bad_and_silences_no_check_of_settings(site: Site) -> None:
    (entry,) = site.store.glob("log/shuffler/words/000001/0000000002.json")
    entry.write_text("{}")
    found = bad(site)
    assert found.keys() == {"log of words"}
    assert str(entry) in found["log of words"].says
    names = {check.name for check in examine(site.deployment, at(1.2))}
    assert {"ledger", "write to log", "epoch of words", "disk of store"} <= names
    assert "numbers of words" not in names
    status = cli("status", "--config", site.config)
    assert (status.status, str(entry) in status.err) == (1, True)


def test_a_window_that_no_run_closes_is_bad_and_its_collector_is_not(site: Site) -> None:
    """The run is down, and the collector is fine."""
    collect(site.store, site.campaign, values(60), day=1)
    assert bad(site, 2.01) == {}
    # The patience of an hour is over, and a run may be about to close the window.
    assert bad(site, 2 + 1.9 / 24).keys() == {"run"}
    late = bad(site, 2.1)
    assert late.keys() == {"run", "runs of words", "numbers of words"}
    assert (late["run"].verdict, late["run"].sentence) == ("warning", "last looked 1 d ago, 1 window ended since")
    assert f"no run has closed window {window_text(window_name(1))}" in late["runs of words"].says
    assert "60 stored reports are in no batch" in late["runs of words"].says
    assert f"newest entry of {at(1.1):%Y-%m-%d %H:%M} UTC: check that hushcount run is" in late["runs of words"].says
    (says,) = account_at(site, 2.1).differences
    assert says == late["runs of words"].says
    assert account_at(site, 2.01).differences == []
    assert {one.window: one.states for one in account_at(site, 2.01).windows} == {
        window_name(0): {"batched": 200},
        window_name(1): {"stored": 60},
    }
    site.run(2.1)
    assert bad(site, 2.1) == {}
    assert account_at(site, 2.1).stored == 0


def test_doctor_says_when_a_run_last_looked_and_what_ended_since(tmp_path: Path) -> None:
    """A look at which nothing is due leaves its trace too, and windows without reports count."""

    def run_of(day: float) -> tuple[str, str]:
        (one,) = (check for check in examine(site.deployment, at(day)) if check.name == "run")
        return one.verdict, one.sentence

    site = Site(tmp_path)
    assert run_of(0.9) == ("good", "never looked, 0 windows ended since")
    # The patience of an hour is not over at 00:30.
    assert run_of(1 + 0.5 / 24) == ("good", "never looked, 1 window ended since")
    assert run_of(1.1) == ("warning", "never looked, 1 window ended since")
    assert site.run(1.25).is_quiet
    assert run_of(1.5) == ("good", "last looked 6 h ago, 0 windows ended since")
    assert run_of(4.5) == ("warning", "last looked 3 d 6 h ago, 3 windows ended since")
    assert run_of(4.5 + 1000) == ("warning", "last looked 1003 d 6 h ago, 1,000 or more windows ended since")
    (look,) = (site.store / "log").glob("*.look.json")
    assert look.name == "shuffler+aux-server+analyzer.look.json"
    site.run(4.5)
    assert run_of(4.6)[1] == "last looked 2 h 24 min ago, 0 windows ended since"
    look.write_text("{}")
    assert run_of(4.6)[0] == "bad"
    look.unlink()
    assert run_of(4.6)[1] == "never looked, 4 windows ended since"


def test_where_no_campaign_is_published_all_else_is_checked(tmp_path: Path) -> None:
    site = Site(tmp_path, settings='parties = ["aux-server"]')
    shutil.rmtree(site.root / "campaigns")
    found = {check.name: check for check in examine(site.deployment, at(0))}
    assert "hushcount campaign publish makes one" in found["campaigns"].says
    assert {name for name, check in found.items() if check.verdict == "bad"} == {"campaigns"}
    assert "write to released" in found


def test_a_store_is_looked_for_where_the_engines_options_say(tmp_path: Path) -> None:
    before = FileSystems._pipeline_options
    try:
        options = '[engine]\noptions = ["--s3_endpoint_url=http://store.example:9000"]\n'
        site = Site(tmp_path, tail=options)
        FileSystems.set_options(PipelineOptions([]))
        examine(site.deployment, at(1.2))
        told = FileSystems._pipeline_options
        assert isinstance(told, PipelineOptions)
        assert told.view_as(S3Options).s3_endpoint_url == "http://store.example:9000"
    finally:
        FileSystems.set_options(before)


def test_the_command_fails_if_anything_is_bad(site: Site) -> None:
    lose_key(site)
    run = cli("doctor", "--config", site.config)
    assert run.status == 1
    assert "checks are bad" in run.err
    assert any(check["verdict"] == "bad" for check in cli("doctor", "--config", site.config, "--json").json)
