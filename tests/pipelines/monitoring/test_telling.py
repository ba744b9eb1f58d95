"""Alerts at the end of a run: what changed is told once, and a receiver that is away harms nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hushcount.collection.windows import window_text
from pipelines.deployment.parts import AlertsPart, site_of
from pipelines.deployment.settings import Deployment
from pipelines.log.log import Logs
from pipelines.monitoring.receivers import Message, Secret, Undelivered, Webhook
from pipelines.monitoring.telling import tell
from pipelines.schedule.done import Done
from tests.hushcount.delivery.misbehaving import http, serving
from tests.pipelines.monitoring.test_receivers import KEY, SECRET
from tests.support.clocks import Hands, machine_shows
from tests.support.collecting import collect, window_name
from tests.support.jobs import cli, done, files_under, refused
from tests.support.site import Site, at, values

ROOT = Path(__file__).parents[3]
HOOK = '[alerts]\nwebhook = "{}"\nsecret = "env:HOOK"\nfalse_alarms = 1e-6\n'
KEEP = "cat >> told.txt"
ROSE = ["alpha"] * 400


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", SECRET)


def program(shell: str) -> str:
    return f'[alerts]\ncommand = ["sh", "-c", "{shell}"]\nfalse_alarms = 1e-6\n'


def told(site: Site, day: float) -> Done:
    """Do what `hushcount run` does on a day."""
    found = site.run(day)
    tell(site.deployment, found, logs=Logs(site.deployment), now=at(day))
    return found


def text_in(site: Site) -> list[str]:
    path = site.root / "told.txt"
    return path.read_text().splitlines() if path.exists() else []


def site_with(root: Path, table: str, *days: list[str]) -> Site:
    """Return a site in which clients of each day sent some values, and all but the last day were counted."""
    site = Site(root, tail=table)
    for day, sent in enumerate(days):
        if day:
            assert told(site, day + 0.1).problems == []
        collect(site.store, site.campaign, sent, day=day)
    return site


@contextmanager
def example(directory: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run examples/receive_alerts.py, which checks signatures by itself, and yield its address."""
    words = [sys.executable, str(ROOT / "examples" / "receive_alerts.py"), "--port", "0", "--seen", "seen.txt"]
    child = subprocess.Popen(  # noqa: S603  # our own example
        words, cwd=directory, env={**os.environ, "WEBHOOK_SECRET": SECRET}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        yield child, f"http://127.0.0.1:{child.stdout.readline().split()[-1]}/"
    finally:
        child.kill()
        child.wait()


def printed(child: subprocess.Popen[str]) -> list[str]:
    child.terminate()
    assert child.stdout is not None
    return child.stdout.read().splitlines()


def test_the_run_that_counts_a_planted_rise_tells_it_to_a_webhook_once(tmp_path: Path) -> None:
    with example(tmp_path) as (child, address):
        site = site_with(tmp_path, HOOK.format(address) + 'items = ["alpha", "strange"]\n', values(600), ROSE)
        for day in (2.1, 2.2):
            assert told(site, day).problems == []
        # It stays up, and that is no news.
        collect(site.store, site.campaign, ROSE, day=2)
        assert told(site, 3.1).problems == []
        (line,) = printed(child)
    sent = json.loads(line)
    assert re.fullmatch(
        rf"words: window {window_text(window_name(1))} against the 1 before: alpha is up from [23]\d\.\d% to "
        r"\d+\.\d% of reports, "
        r"a difference of \+\d\d\.\d% to \+\d\d\.\d% \(95 %, corrected for all rows\); the probability that chance "
        r"alone changes any of the rows so much is below 1e-6; 1 % of all clients, if they forge on both sides, could "
        r"move the difference by -\d\.\d% to \+\d\.\d%",
        sent["says"],
    )
    assert sent["changes"][0]["after"] == pytest.approx(1.0, abs=0.2)
    of_windows = ("--window", window_name(1), "--against", window_name(0))
    asked = ("ask", "change", "--config", site.config, "--campaign", "words", *of_windows, "--item", "alpha", "--json")
    rows = done(*asked).json["rows"]
    assert sent["changes"][0] == {**rows[0], "p_bonferroni": sent["changes"][0]["p_bonferroni"]}


def test_a_program_is_told_of_a_group_and_again_when_it_falls(tmp_path: Path) -> None:
    groups = '[analyzer.groups]\nmost = {items = ["alpha", "gamma"]}\n'
    site = site_with(tmp_path, f'{groups}{program(KEEP)}groups = ["most"]\n', values(600), ROSE)
    assert told(site, 2.1).problems == []
    collect(site.store, site.campaign, ["beta"] * 600, day=2)
    assert told(site, 3.1).problems == []
    first, id, second, other = text_in(site)
    assert "most is up from" in first
    assert f"window {window_text(window_name(2))} against the 2 before: most is down from" in second
    assert re.fullmatch("alert_[0-9a-f]{32}", id)
    assert id != other
    site.config.write_text(site.config.read_text().replace('groups = ["most"]', 'groups = ["least"]'))
    refused("run", "--config", site.config, says=["alerts.groups", "'least'"])


def test_a_run_that_is_killed_while_it_sends_sends_the_same_again(tmp_path: Path) -> None:
    site = site_with(tmp_path, program(f"{KEEP}; kill -9 $PPID"), values(600), ROSE)
    site.run(2.1)
    code = (
        "import sys; from pathlib import Path; from pipelines.monitoring.telling import *\n"
        "deployment = Deployment.read(Path(sys.argv[1])); tell(deployment, Done(), logs=Logs(deployment))"
    )
    killed = subprocess.run([sys.executable, "-c", code, site.config], check=False, cwd=ROOT)  # noqa: S603  # our own
    assert killed.returncode == -signal.SIGKILL
    site.config.write_text(site.config.read_text().replace("; kill -9 $PPID", ""))
    for day in (2.2, 2.3):
        assert told(site, day).problems == []
    lines = text_in(site)
    assert len(lines) == 4
    assert lines[:2] == lines[2:]


def test_a_receiver_that_is_away_is_a_problem_until_the_next_window(tmp_path: Path) -> None:
    status = [500]
    with serving(lambda connection: connection.sendall(http(status[-1]))) as heard:
        site = site_with(tmp_path, HOOK.format(heard.site.address), values(600), ROSE)
        failed = told(site, 2.1)
        assert f"words/{site.batch(1)} analyze" in failed.hops
        (problem,) = failed.problems
        assert problem.startswith("words: an alert reached nobody: the webhook at 127.0.0.1 answered with status 500")
        assert told(site, 2.2).problems == [problem]
        status.append(204)
        assert told(site, 2.3).problems == []
        assert told(site, 2.4).problems == []
        ids = [re.findall(rb"webhook-id: (\S+)", request) for request in heard.requests]
        assert ids == [ids[0]] * 3
        # What reached nobody is not told any more once another window is the newest.
        status.append(404)
        collect(site.store, site.campaign, ["beta"] * 600, day=2)
        assert len(told(site, 3.1).problems) == 1
        status.append(204)
        collect(site.store, site.campaign, ["gamma"] * 600, day=3)
        assert told(site, 4.1).problems == []
        assert len(heard.requests) == 5
        assert f'"window": "{window_name(3)}"'.encode() in heard.requests[-1]


def test_what_fails_is_a_problem_of_the_run_and_of_that_campaign_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = site_with(tmp_path, HOOK.format("http://localhost:9/"), values(600), ROSE)
    monkeypatch.setenv("HOOK", "")
    (problem,) = told(site, 2.1).problems
    assert problem.startswith("alerts: secret env:HOOK ")
    monkeypatch.setenv("HOOK", SECRET)
    (away,) = told(site, 2.2).problems
    assert "127.0.0.1" in away or "localhost" in away
    site.files("results", 1).joinpath("tally.npz").write_bytes(b"damaged")
    (broken,) = told(site, 2.3).problems
    assert broken.startswith("words: no alert can be given: ")


def test_a_log_that_lacks_entries_gets_no_alert(tmp_path: Path) -> None:
    site = site_with(tmp_path, program(KEEP), values(600), ROSE)
    folder = site.store / "log" / "analyzer" / "words"
    shutil.rmtree(folder)
    stopped = told(site, 2.1)
    assert stopped.stopped == ["words"]
    assert files_under(folder) == {}
    assert text_in(site) == []


def test_only_who_has_results_may_tell_and_nobody_must(tmp_path: Path) -> None:
    found, site = Done(), Site(tmp_path)
    tell(site.deployment, found, logs=Logs(site.deployment), now=at(1))
    assert found == Done()
    assert not (site.store / "log").exists()
    refused("doctor", "--config", site.config, "--test-alert", says=["no table [alerts]"])
    site.config.write_text(f'parties = ["shuffler"]\n{site.config.read_text()}{program(KEEP)}')
    refused("run", "--config", site.config, says=["only the analyzer has"])


def test_doctor_says_whether_alerts_can_be_sent_and_sends_a_test(tmp_path: Path) -> None:
    site = Site(tmp_path, tail=program(KEEP))
    assert checked(site) == ("good", "go to the program sh")
    assert text_in(site) == []
    assert checked(site, "--test-alert") == ("good", "a test went to the program sh")
    assert text_in(site)[0].startswith("this is a test")
    for table, option, says in [
        ('[alerts]\ncommand = ["false"]\n', "--test-alert", "false ended with status 1"),
        ('[alerts]\ncommand = ["./false"]\n', None, "'./false'"),
        (HOOK.format("http://localhost:9/").replace("HOOK", "NOTHING"), None, "env:NOTHING"),
    ]:
        site.config.write_text(site.config.read_text().partition("[alerts]")[0] + table)
        verdict, said = checked(site, *([option] if option else []))
        assert verdict == "bad"
        assert says in said


def checked(site: Site, *options: str) -> tuple[str, str]:
    """Return what doctor says of alerts."""
    checks = cli("doctor", "--config", site.config, "--json", *options).json
    (check,) = (check for check in checks if check["name"] == "alerts")
    return check["verdict"], check["says"]


def test_the_example_of_the_operators_page_is_a_valid_table(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```\n(\[alerts\]\n.*?)^```", page, re.DOTALL | re.MULTILINE)
    path = tmp_path / "deployment.toml"
    head = 'store = "store"\n[windows]\nlength = "1d"\ngrace = "2d"\n'
    groups = '[analyzer.groups]\nplayback = {items = ["a", "b"]}\n'
    path.write_text(head + groups + block)
    part = Deployment.read(path).file.alerts
    assert part is not None
    assert set(re.findall(r"^(\w+) =", block, re.MULTILINE)) == AlertsPart.model_fields.keys() - {"command"}
    # What the comments say are the defaults.
    assert (part.false_alarms, part.least_change) == (0.01, 0.2)


def test_the_example_of_a_receiver_takes_what_is_genuine_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with example(tmp_path) as (child, address):
        hook, forged = (Webhook(*site_of(address), Secret(key)) for key in (KEY, b"k" * 32))
        one, two = (Message(f"alert_{number}", "gr\u00f6\u00dfe \u202e \x1b[31m", {}) for number in (1, 2))
        for _ in range(2):
            hook.send(one)
        with pytest.raises(Undelivered, match="status 401"):
            forged.send(two)
        with monkeypatch.context() as clock, pytest.raises(Undelivered, match="status 401"):
            machine_shows(clock, Hands(time.time() - 400))
            hook.send(two)
        # Its answer may be lost with what it did not read.
        with pytest.raises(Undelivered, match=r"status 413|no answer"):
            hook.send(Message("alert_3", " " * (1 << 21), {}))
        hook.send(two)
        lines = printed(child)
    assert [json.loads(line)["id"] for line in lines] == ["alert_1", "alert_2"]
    assert all(line.isascii() and line.isprintable() for line in lines)
