"""Alerts at the end of a run: what stands is told once, and a receiver that is away harms nothing else."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from hushcount.errors import UsageError
from pipelines.alerts import look
from pipelines.alerts.telling import send_test, tell
from pipelines.log.entries import Told
from pipelines.log.log import Logs
from pipelines.schedule.report import Done
from tests.pipelines.alerts.receiver import SECRET, Receiver, is_signed, receiving
from tests.support.collecting import START, collect, window_name
from tests.support.jobs import cli, done, files_under, refused
from tests.support.site import Site, at, values

TABLE = """[alerts]
webhook = "{address}"
secret = "env:HOOK"
timeout = "1m"
"""


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", SECRET)


def told(site: Site, day: float, **how: bool) -> Done:
    """Do what `hushcount run` does on a day."""
    found = site.run(day)
    tell(site.deployment, found, logs=Logs(site.deployment), now=at(day), **how)
    return found


def kinds(receiver: Receiver) -> list[str]:
    return [one["kind"] for one in receiver.data]


def test_a_run_tells_once_what_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with receiving() as receiver:
        site = Site(tmp_path, tail=TABLE.format(address=receiver.address))
        for day, number in enumerate((100, 120, 110, 54)):
            collect(site.store, site.campaign, values(number), day=day)
        assert told(site, 4.1).problems == []
        assert kinds(receiver) == ["volume"]
        (one,) = receiver.data
        assert (one["campaign"], one["about"]) == ("words", "reports")
        assert one["numbers"] == {"window": window_name(3), "since": window_name(3), "reports": 54, "usual": 110.0}
        assert all(is_signed(headers, body) for headers, body in receiver.got)
        # Nothing new, nothing more; then nobody reports at all, which is the same fact.
        told(site, 4.2)
        told(site, 5.1)
        assert len(receiver.got) == 1
        # What comes back ends it, and reports that are too late are another fact.
        collect(site.store, site.campaign, values(110), day=5)
        (late,) = collect(site.store, site.campaign, values(60), day=0, collector="late")
        os.utime(late.parents[1] / "late.manifest.json", (at(5.5).timestamp(),) * 2)
        told(site, 6.1)
        assert kinds(receiver) == ["volume", "dropped"]
        assert receiver.data[1]["numbers"]["too_late"] == 60
        # A number that changed is told again.
        lost = site.store / "results" / "words" / site.batch(5)
        shutil.rmtree(lost)
        told(site, 6.2)
        told(site, 6.3)
        assert kinds(receiver) == ["volume", "dropped", "differences"]
        assert str(lost) in receiver.data[2]["says"]
        listed = done("alerts", "--config", site.config, "--json").json
        assert listed["problems"] == []
        assert {(one["kind"], one["delivery"]["state"]) for one in listed["alerts"]} >= {
            ("dropped", "sent"),
            ("differences", "sent"),
        }
        assert [one["id"] for one in listed["alerts"] if one["kind"] == "dropped"] == [receiver.ids[1]]
    out, err = capsys.readouterr()
    assert SECRET not in out + err
    assert "/hook" not in out + err


def test_a_window_that_no_run_could_close_yet_is_not_silent(tmp_path: Path) -> None:
    site = Site(tmp_path, tail='[alerts]\ncommand = ["tee", "told.json"]\ndifferences = false\n')
    for day in range(4):
        collect(site.store, site.campaign, values(100), day=day)
    assert told(site, 4.1).problems == []
    collect(site.store, site.campaign, values(100), day=4)
    tell(site.deployment, Done(), logs=Logs(site.deployment), now=at(5.1))
    assert not (tmp_path / "told.json").exists()
    tell(site.deployment, Done(), logs=Logs(site.deployment), now=at(6.1))
    assert json.loads((tmp_path / "told.json").read_bytes())["data"]["numbers"]["since"] == window_name(5)


@pytest.mark.parametrize("copied", [True, False], ids=["older", "missing"])
def test_a_log_that_lacks_entries_gets_no_alert(tmp_path: Path, copied: bool) -> None:
    site = Site(tmp_path, tail='[alerts]\ncommand = ["tee", "told.json"]\n')
    folder = site.store / "log" / "shuffler" / "words"
    for day in range(4):
        collect(site.store, site.campaign, values(100), day=day)
        told(site, day + 1.1)
        if day == 1:
            shutil.copytree(folder, tmp_path / "copy")
    shutil.rmtree(folder)
    if copied:
        shutil.copytree(tmp_path / "copy", folder)
    collect(site.store, site.campaign, values(50), day=4)
    before = files_under(folder)
    stopped = told(site, 5.1)
    assert stopped.stopped == ["words"]
    assert stopped.problems[0].startswith("words: the log of shuffler was lost, or is an older copy")
    assert files_under(folder) == before
    assert not (tmp_path / "told.json").exists()


@pytest.mark.long
def test_a_receiver_that_is_away_neither_fails_nor_delays_a_run(tmp_path: Path) -> None:
    with receiving() as receiver:
        site = Site(tmp_path, tail=TABLE.replace("1m", "1s").format(address=receiver.address))
        receiver.hold = True
        for day, number in enumerate((100, 120, 110, 54)):
            collect(site.store, site.campaign, values(number), day=day)
        found = site.run(4.1)
        # The receiver answers when it ends: a run that waited for it would never end.
        tell(site.deployment, found, logs=Logs(site.deployment), now=at(4.1))
        assert found.problems == []
        (says,) = found.waiting
        assert says.startswith("1 alert ")
        assert "127.0.0.1" in says
        assert says in " ".join(cli("status", "--config", site.config).err.split())
        listed = done("alerts", "--config", site.config, "--json").json
        assert listed["problems"] == [says]
        receiver.hold, receiver.status = False, 500
        again = told(site, 4.2)
        assert "status 500" in again.waiting[0]
        assert told(site, 4.2).waiting == again.waiting
        found, logs = Done(), Logs(site.deployment)
        for hour in range(2, 73, 5):
            found.waiting.clear()
            tell(site.deployment, found, logs=logs, now=at(4.2 + hour / 24), looks=False)
        (given_up,) = found.problems
        assert "status 500" in given_up
        assert found.waiting == []
        assert "1 alert " in cli("status", "--config", site.config).err
        receiver.status = 200
        assert told(site, 7.3).problems == []
        assert len(set(receiver.ids)) == 1


def test_without_the_table_nothing_happens(tmp_path: Path) -> None:
    found = Done()
    site = Site(tmp_path)
    tell(site.deployment, found, logs=Logs(site.deployment), now=at(1))
    assert found == Done()
    refused("alerts", "--config", site.config, says=["[alerts]"])
    with pytest.raises(UsageError, match="alerts"):
        send_test(site.deployment, "test_1", at(1))
    assert not (site.store / "log").exists()


@pytest.mark.long
def test_a_secret_that_is_missing_is_a_problem_and_the_alert_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving() as receiver:
        site = Site(tmp_path, tail=TABLE.format(address=receiver.address))
        for day, number in enumerate((100, 120, 110, 54)):
            collect(site.store, site.campaign, values(number), day=day)
        monkeypatch.setenv("HOOK", "")
        (problem,) = told(site, 4.1).problems
        assert problem.startswith("alerts: secret env:HOOK ")
        monkeypatch.setenv("HOOK", SECRET)
        told(site, 4.2, looks=False)
        assert kinds(receiver) == ["volume"]


@pytest.mark.long
def test_a_condition_that_fails_hides_no_other_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, tail='[alerts]\ncommand = ["sh", "-c", "cat >> told.json; echo >> told.json"]\n')
    for day, number in enumerate((100, 120, 110, 54)):
        collect(site.store, site.campaign, values(number), day=day)
    assert told(site, 4.1).problems == []
    with monkeypatch.context() as broken:
        broken.setattr(look, "volumes_of", lambda *_: 1 / 0)
        (problem,) = told(site, 4.2).problems
        assert all(text in problem for text in ("words: ", "volume", "ZeroDivisionError"))
        listed = cli("alerts", "--config", site.config)
        assert listed.status == 1
        assert "volume" in listed.err
    told(site, 4.3)
    assert len((tmp_path / "told.json").read_text().splitlines()) == 1


def test_a_test_alert_arrives_or_says_why_not(tmp_path: Path) -> None:
    site = Site(tmp_path, tail='[alerts]\ncommand = ["tee", "told.json"]\n')
    verdict, says = alert_check(site)
    assert verdict == "good"
    assert "tee" in says
    sent = done("alerts", "--config", site.config, "--test", "--json").json
    message = json.loads((tmp_path / "told.json").read_bytes())
    assert (message["type"], message["data"]["id"]) == ("hushcount.alert.test", sent["id"])
    assert done("alerts", "--config", site.config, "--json").json["alerts"] == []
    site.config.write_text(site.config.read_text().replace('"tee", "told.json"', '"false"'))
    failed = cli("alerts", "--config", site.config, "--test")
    assert failed.status == 1
    assert "false ended with status 1" in failed.err
    site.config.write_text(site.config.read_text().replace('"false"', '"./false"'))
    assert alert_check(site)[0] == "bad"
    table = TABLE.format(address="http://localhost:9/")
    site.config.write_text(f"{site.config.read_text().partition('[alerts]')[0]}{table.replace('HOOK', 'NOTHING')}")
    verdict, says = alert_check(site)
    assert verdict == "bad"
    assert "env:NOTHING" in says


def alert_check(site: Site) -> tuple[str, str]:
    """Return what doctor says of alerts."""
    checks = cli("doctor", "--config", site.config, "--json").json
    (check,) = (check for check in checks if check["name"] == "alerts")
    return check["verdict"], check["says"]


def test_a_change_of_what_is_named_is_told(tmp_path: Path) -> None:
    groups = '[analyzer.groups]\nmost = {items = ["alpha", "gamma"]}\n'
    table = '[alerts]\ncommand = ["sh", "-c", "cat >> told.json; echo >> told.json"]\nitems = ["alpha", "strange"]\n'
    site = Site(tmp_path, tail=f'{groups}{table}groups = ["most"]\nany_item = true\nfalse_alarms = 1e-6\n')
    collect(site.store, site.campaign, values(600), day=0)
    assert told(site, 1.1).problems == []
    assert not (tmp_path / "told.json").exists()
    collect(site.store, site.campaign, ["alpha"] * 400, day=1)
    for day in (2.1, 2.2):
        assert told(site, day).problems == []
    sent = [json.loads(line)["data"] for line in (tmp_path / "told.json").read_text().splitlines()]
    assert sorted((one["kind"], one["about"]) for one in sent) == [
        ("change", "group most"),
        ("change", "item alpha"),
        ("change", "item beta"),
    ]
    alpha = next(one for one in sent if one["about"] == "item alpha")
    assert "'alpha' of words rose" in alpha["says"]
    assert alpha["numbers"]["after"] == pytest.approx(1.0, abs=0.2)
    site.config.write_text(site.config.read_text().replace('groups = ["most"]', 'groups = ["least"]'))
    refused("alerts", "--config", site.config, says=["alerts.groups", "'least'"])


def test_the_command_tells_and_says_what_it_could_not(tmp_path: Path) -> None:
    site = Site(tmp_path, tail='[alerts]\ncommand = ["false"]\n')
    done(
        "ledger", "set", "--ledger", tmp_path / "ledger.db", "--campaign", "words", "--epsilon", 0.001, "--delta", 1e-9
    )
    failed = done("run", "--config", site.config)
    assert "false ended with status 1" in failed.err
    assert "1 alert " in done("status", "--config", site.config).err
    site.config.write_text(site.config.read_text().replace('"false"', '"tee", "told.json"'))
    # As if the next attempt were due.
    log = Logs(site.deployment).shared("words")
    (id,) = log.read().alerts
    log.decide(lambda _: Told(id=id, outcome="failed", failure="away", next_at=START), START)
    assert done("run", "--config", site.config, "--json").json["waiting"] == []
    sent = json.loads((tmp_path / "told.json").read_bytes())["data"]
    assert (sent["kind"], sent["numbers"]["windows_left"]) == ("budget", 0)
    assert sent["says"] in [one["says"] for one in done("alerts", "--config", site.config, "--json").json["alerts"]]


@pytest.mark.long
def test_a_budget_that_ends_soon_is_told(tmp_path: Path) -> None:
    site = Site(tmp_path, tail='[alerts]\ncommand = ["tee", "told.json"]\n')
    collect(site.store, site.campaign, values(100), day=0)
    limit = ["ledger", "set", "--ledger", tmp_path / "ledger.db", "--campaign", "words", "--epsilon"]
    done(*limit, 1000, "--delta", 1e-3)
    assert told(site, 1.1).problems == []
    assert not (tmp_path / "told.json").exists()
    done(*limit, 3, "--delta", 1e-3)
    told(site, 1.2)
    told_of = json.loads((tmp_path / "told.json").read_bytes())["data"]
    assert told_of["kind"] == "budget"
    assert 0 <= told_of["numbers"]["windows_left"] <= 7
    assert told_of["numbers"]["windows_until_it_renews"] is None
