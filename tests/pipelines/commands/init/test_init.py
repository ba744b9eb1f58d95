"""hushcount init by options: what it writes, for whom, whole or not at all, and what it refuses."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import pipelines.commands.init.write
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import read_campaign_signature
from hushcount.campaigns.dictionary import read_dictionary
from hushcount.campaigns.signatures import signature_path
from hushcount.errors import UsageError
from hushcount.maths.figures import within
from hushcount.newest import Newest
from hushcount.policy import Policy
from hushcount.privacy.statement import statement
from hushcount.senders import Senders
from pipelines.deployment.listed_windows import listed_until
from pipelines.deployment.settings import Deployment
from tests.support.jobs import cli, done, files_under, refused, write_lines

ITEMS = [f"item-{number}" for number in range(40)]


@pytest.fixture
def listed(tmp_path: Path) -> tuple[object, ...]:
    """Options that name a dictionary."""
    return ("--dictionary", write_lines(tmp_path / "settings.txt", ITEMS))


def verdicts(directory: Path) -> set[str]:
    run = cli("doctor", "--config", directory / "deployment.toml", "--json")
    assert run.status == 0, run.err
    return {check["verdict"] for check in run.json}


@pytest.mark.parametrize(
    "options",
    [(), ("--discovery-epsilon", 1), ("--window", "1h", "--id", "a.b-c"), ("--window", "40d", "--epsilon", 8)],
    ids=["defaults", "discovery", "hours", "long"],
)
@pytest.mark.long(but=("defaults", "discovery"))
def test_doctor_finds_nothing_to_do_before_the_first_window(
    tmp_path: Path, listed: tuple[object, ...], options: tuple[object, ...]
) -> None:
    done("init", tmp_path / "usage", *listed, *options)
    assert verdicts(tmp_path / "usage") == {"good"}


def test_doctor_finds_nothing_to_do_without_a_dictionary(tmp_path: Path) -> None:
    made = done("init", tmp_path / "usage", "--open-domain", "--json").json
    assert made["discovery"]["epsilon"] == 1.0
    assert verdicts(tmp_path / "usage") == {"good"}


def test_numbers_are_asked_for_and_planned_in_their_unit(tmp_path: Path) -> None:
    home, numbers = tmp_path / "usage", ("--number", "0:900", "--bins", "linear:10", "--unit", "ms")
    made = done("init", home, *numbers, "--clients", "2e4", "--epsilon", 1, "--json").json
    campaign = Campaign.read(home / "campaign.json")
    assert campaign.number is not None
    assert (campaign.number.edges[-1], campaign.number.unit, len(campaign.number.bins)) == ("900", "ms", 10)
    planned = done("plan", *numbers, "--epsilon", 1, "--reports", "2e4", "--json").json
    assert (made["number"], made["mechanism"]) == (planned["number"], planned["chosen"]["mechanism"])
    assert shlex.split(made["trial"])[2:9] == ["trial", *numbers]
    assert "sender.report(900.0)" in (home / "app.py").read_text()
    assert verdicts(home) == {"good"}
    for options, says in (
        (("--number", "words.txt"), "words.txt"),
        (("--number", "0:9", "--open-domain"), "--open-domain"),
        (("--number", "0:9", "--discovery-epsilon", 1), "discovery"),
        (("--open-domain", "--unit", "ms"), "--number"),
    ):
        refused("init", tmp_path / "other", *options, says=[says])
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("windows", "unit"),
    [
        (("--window", "day", "--zone", "Europe/Berlin"), "day"),
        (("--window", "week", "--zone", "America/New_York", "--starts", "sunday"), "week"),
        (("--window", "month"), "month"),
    ],
    ids=["day", "week", "month"],
)
@pytest.mark.long(but=("week",))
def test_windows_of_a_calendar_are_listed_in_the_campaign(
    tmp_path: Path, listed: tuple[object, ...], windows: tuple[object, ...], unit: str
) -> None:
    home = tmp_path / "usage"
    made = done("init", home, *listed, *windows, "--json").json
    campaign, tiling = Campaign.read(home / "campaign.json"), Deployment.read(home / "deployment.toml").windows.tiling
    assert campaign.windows is not None
    assert (campaign.windows.unit, tiling.length, made["windows"]) == (unit, unit, tiling.said)
    until = listed_until(campaign, tiling, datetime.now(timezone.utc))
    assert until is not None
    assert until > datetime.now(timezone.utc) + timedelta(days=360)
    assert verdicts(home) == {"good"}
    assert all("--window" not in command for command in made["commands"])


def test_clients_accept_the_campaign_by_the_policy_and_the_answer_is_what_privacy_says(
    tmp_path: Path, listed: tuple[object, ...]
) -> None:
    home = tmp_path / "usage"
    made = done("init", home, *listed, "--clients", "2e4", "--epsilon", 1.5, "--discovery-epsilon", 1, "--json").json
    campaign = Campaign.read(home / "campaign.json")
    signature = read_campaign_signature(signature_path(home / "campaign.json"))
    assert Policy.read(home / "policy.json", Newest()).accept(campaign, signature) is not None
    assert campaign.id == "usage"
    assert (campaign.mechanism.name, campaign.mechanism.epsilon) == (made["mechanism"], 1.5)  # type: ignore[union-attr]
    planned = done("plan", "--epsilon", 1.5, "--reports", "2e4", "--dictionary-size", len(ITEMS) + 1, "--json").json
    assert made["mechanism"] == planned["chosen"]["mechanism"]
    assert made["standard_error"] == planned["chosen"]["standard_error_users"]
    asked = ("privacy", "--campaign", home / "campaign.json", "--json")
    assert made["guarantee"] == done(*asked, "--reports", "2e4").json
    assert made["discovery"] == done(*asked, "--discovery").json
    limit = done("ledger", "show", "--ledger", home / "ledger.db", "--json").json["campaigns"][0]["limit"]
    assert made["ledger"] == {name: limit[name] for name in ("epsilon", "delta", "renew_days")}


def test_it_proposes_what_shows_the_share_and_says_so(tmp_path: Path, listed: tuple[object, ...]) -> None:
    def made(name: str, *options: object) -> dict[str, Any]:
        return dict(done("init", tmp_path / name, *listed, "--json", *options).json)

    plain = made("plain")
    assert (plain["clients"], plain["sight"]["wanted"], plain["window"]) == (10_000, 0.05, 86_400.0)
    assert plain["assumption"] is None
    for share, epsilon in (("50%", 0.5), ("0.1", 1.0), ("5%", 2.0), ("1.5%", 4.0)):
        told = made(f"share {share}", "--id", "a", "--want-share", share, "--window", "1d")
        assert (told["epsilon"], told["proposed"]["epsilon"]) == (epsilon, epsilon)
        assert told["sight"]["shows"]
        if epsilon > 0.5:
            less = {0.5: None, 1.0: 0.5, 1.5: 1.0, 2.0: 1.5, 3.0: 2.0, 4.0: 3.0}[epsilon]
            hidden = made(f"less {share}", "--id", "a", "--want-share", share, "--window", "1d", "--epsilon", less)
            assert not hidden["sight"]["shows"], "the proposal is the least of the grid"
    # What the planner computes for a wanted share is what init says.
    wanted = ("plan", "--dictionary-size", len(ITEMS) + 1, "--want-share", 0.01, "--epsilon", 2, "--json")
    needed = made("needed", "--id", "a", "--want-share", "1%", "--epsilon", 2)["sight"]["needed"]
    assert needed == pytest.approx(done(*wanted).json["reports"], rel=0.01)


def test_it_refuses_no_plan_but_names_the_hopeless_and_when_the_first_result_comes(
    tmp_path: Path, listed: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = done("init", tmp_path / "few", *listed, "--clients", 10, "--window", "1d", "--json").json
    assert (few["epsilon"], few["sight"]["shows"], few["sight"]["is_hopeless"]) == (4.0, False, True)
    assert few["guarantee"]["reports"] == few["minimum_batch"], "nothing is released from fewer"
    week = done("init", tmp_path / "week", *listed, "--clients", 300, "--json").json
    assert (week["clients"], week["window"], week["proposed"]["window"]) == (2100, 604_800.0, 604_800.0)
    assert "300 people" in week["assumption"]
    hours = done("init", tmp_path / "hours", *listed, "--clients", 300, "--window", "6h", "--json").json
    assert (hours["clients"], hours["assumption"], hours["proposed"]["window"]) == (300, None, 21_600.0)
    ends = datetime.fromisoformat(hours["first_result"])
    assert timedelta(0) < ends - datetime.now(timezone.utc) <= timedelta(hours=6)
    assert ends.hour % 6 == 0
    monkeypatch.chdir(tmp_path)
    plain = done("init", tmp_path / "plain", "--dictionary", "settings.txt", "--json").json
    assert plain["simulate"] is None
    trial = done(*shlex.split(plain["trial"])[1:], "--json").json
    assert (trial["directory"], trial["window"], trial["minimum_batch"]) == (str(tmp_path / "trial"), 60.0, 100)
    assert trial["trial"] is None
    assert trial["simulate"].endswith(f" --policy {tmp_path / 'trial' / 'policy.json'} --people 10000")


def test_without_discovery_no_key_of_the_auxiliary_server_is_made_and_with_it_values_have_counts(
    tmp_path: Path, listed: tuple[object, ...]
) -> None:
    done("init", tmp_path / "none", *listed)
    found = done("init", tmp_path / "found", *listed, "--discovery-epsilon", 1, "--json").json
    roles = {
        home: {path.name.partition("-")[0] for path in (tmp_path / home / "keys").glob("*.key")}
        for home in ("none", "found")
    }
    assert roles == {"none": {"analyzer"}, "found": {"analyzer", "aux_server"}}
    campaign = Campaign.read(tmp_path / "found" / "campaign.json")
    assert campaign.discovery is not None
    assert campaign.discovery.counts
    assert found["discovery"]["counts"] is True


def test_it_says_whom_the_promise_trusts_in_any_terminal(
    tmp_path: Path, listed: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = done("init", tmp_path / "usage", *listed, "--discovery-epsilon", 1, "--epsilon", 2).out
    said, known = " ".join(shown.split()), read_dictionary(Path(str(listed[1])))
    assert f"{len(known.text):,} bytes; each client fetches {len(known.packed()):,} bytes" in said
    assert " 7.39 " in said
    assert "for discovery" in said
    # A reader of a terminal has no use for the bounds by name, nor for the sum of a month.
    assert all(word not in said for word in ("blanket", "shuffled epsilon", "ledger epsilon", "replace-one"))
    # Commands are whole lines, to be pasted; a long one ends with a mark that joins it to the next.
    assert all(len(line) <= 80 for line in shown.splitlines() if str(tmp_path) not in line)
    assert "\x1b" not in shown
    alone = " ".join(done("init", tmp_path / "other", *listed).out.split())
    assert "for discovery" not in alone
    # Whoever sees results sees the values found too: no figure may leave them out.
    campaign = Campaign.read(tmp_path / "usage" / "campaign.json")
    total = statement(campaign, 10_000, Senders("client-token")).total
    assert total is not None
    assert f"only results, the values found included, these odds change by {within(total.odds)} in a window" in said
    assert "only results these odds change by" in alone


def test_a_window_that_begins_with_no_day_is_said_to(tmp_path: Path, listed: tuple[object, ...]) -> None:
    for length, says in (("7d", True), ("5h", True), ("1d", False), ("6h", False)):
        home = tmp_path / length
        shown = (
            done("init", home, *listed, "--window", length).out,
            cli("status", "--config", home / "deployment.toml").out,
        )
        assert [("Thursday, 1970-01-01" in " ".join(one.split())) for one in shown] == [says, says]


# Files.


def test_whatever_the_umask_only_the_owner_reads_it(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for mask in [0o000, 0o022, 0o777]:
        with subtests.test(mask=mask):
            before = os.umask(mask)
            try:
                done("init", tmp_path / "usage", "--open-domain")
                assert os.umask(mask) == mask
            finally:
                os.umask(before)
            modes = {
                path.relative_to(tmp_path).as_posix(): stat.S_IMODE(path.stat().st_mode)
                for path in (tmp_path / "usage", *(tmp_path / "usage").rglob("*"))
            }
            folders = {name for name in modes if (tmp_path / name).is_dir()}
            assert {modes[name] for name in folders} == {0o700}
            assert {f"usage/{name}" for name in ("keys", "operator-keys", "store", "journal", "systemd")} < folders
            secret = {name for name in modes if name.endswith((".key", "ledger.db"))}
            assert len(secret) == 4
            assert {modes[name] for name in secret} == {0o600}
            assert all(modes[name] == 0o644 for name in modes.keys() - folders - secret if "/." not in name)
        shutil.rmtree(tmp_path / "usage")


def test_a_directory_that_is_not_empty_stays_as_it_is(tmp_path: Path) -> None:
    home = tmp_path / "usage"
    home.mkdir()
    done("init", home, "--open-domain")
    before = files_under(tmp_path)
    refused("init", home, "--open-domain", says=[f"directory is {home}, "])
    refused("init", home / "deployment.toml", "--open-domain", says=["deployment.toml"])
    refused("init", tmp_path / "none" / "usage", "--open-domain", says=[f"{tmp_path / 'none'} "])
    assert files_under(tmp_path) == before


def test_a_link_to_an_empty_directory_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "usage").symlink_to(tmp_path / "disk")
    assert (
        done("init", tmp_path / "usage", "--id", "usage", "--open-domain", "--json").json["directory"].endswith("disk")
    )
    assert (tmp_path / "disk" / "deployment.toml").exists()


def test_what_ends_halfway_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for stopped in [KeyboardInterrupt, OSError("disk full"), UsageError("no")]:
        with subtests.test(stopped=stopped):

            def stop(*_: object) -> None:
                # All but the epoch and the limit of the ledger is there.
                assert list(tmp_path.glob(".usage.*.init/operator-keys/operator-*.key"))
                raise stopped  # noqa: B023  # called before the next one

            monkeypatch.setattr(pipelines.commands.init.write, "publish", stop)
            run = cli("init", tmp_path / "usage", "--open-domain")
            assert run.status == (130 if stopped is KeyboardInterrupt else 2 if isinstance(stopped, UsageError) else 1)
            assert run.out == ""
            assert list(tmp_path.iterdir()) == []


KILLED = """
import os, sys
import pipelines.commands.init.write
number = int(sys.argv.pop(1))
pipelines.commands.init.write.publish = lambda *_: os.kill(os.getpid(), number)
from pipelines.entry import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["term", "kill"])
@pytest.mark.long(but=("kill",))
def test_a_killed_one_leaves_nothing_by_that_name_and_the_next_removes_the_rest(
    tmp_path: Path, number: signal.Signals
) -> None:
    words = (int(number), "init", tmp_path / "usage", "--open-domain")
    killed = subprocess.run([sys.executable, "-c", KILLED, *map(str, words)], check=False, capture_output=True)  # noqa: S603
    assert killed.returncode == (-number if number == signal.SIGKILL else 130), killed.stderr
    assert not (tmp_path / "usage").exists()
    assert len(list(tmp_path.iterdir())) == (number == signal.SIGKILL)
    done("init", tmp_path / "usage", "--open-domain")
    assert [path.name for path in tmp_path.iterdir()] == ["usage"]


SWEPT = """
import subprocess, sys
from pipelines.entry import main

when, target, *words = sys.argv[1:]
left = [2]


def swept(event, arguments):
    # Opened, or about to be locked: twice another process sweeps just before.
    if event == when and left[0] and (event != "open" or str(arguments[0]).endswith(".init")):
        left[0] -= 1
        sweep = "import pathlib, sys, pipelines.commands.init.write as one; one._sweep(pathlib.Path(sys.argv[1]))"
        subprocess.run([sys.executable, "-c", sweep, target], check=True)


sys.addaudithook(swept)
sys.argv = ["hushcount", "init", target, *words]
try:
    main()
finally:
    assert left == [0], left
"""


@pytest.mark.parametrize("when", ["open", "fcntl.flock"])
def test_one_whose_directory_another_sweeps_before_it_is_locked_makes_a_new_one(tmp_path: Path, when: str) -> None:
    command = [sys.executable, "-c", SWEPT, when, tmp_path / "usage", "--open-domain"]
    made = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603  # our own script
    assert made.returncode == 0, made.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["usage"]
    assert (tmp_path / "usage" / "deployment.toml").exists()


def test_of_two_at_a_time_one_is_made_and_the_other_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish, inner = pipelines.commands.init.write.publish, []

    def twice(*given: Any) -> None:
        monkeypatch.setattr(pipelines.commands.init.write, "publish", publish)
        inner.append(done("init", tmp_path / "usage", "--open-domain", "--json").json)
        publish(*given)

    monkeypatch.setattr(pipelines.commands.init.write, "publish", twice)
    refused("init", tmp_path / "usage", "--open-domain", says=[f" {tmp_path / 'usage'}"])
    (made,) = inner
    assert Campaign.read(tmp_path / "usage" / "campaign.json").fingerprint.hex() == made["fingerprint"]
    assert [path.name for path in tmp_path.iterdir()] == ["usage"]


# Who it is for.


@contextmanager
def nobody() -> Iterator[str]:
    if os.geteuid() != 0:
        pytest.skip("only root gives files to another user: that they are given was NOT tested")
    yield pwd.getpwuid(65534).pw_name


def test_root_may_name_the_user_of_the_services(tmp_path: Path) -> None:
    with nobody() as name:
        made = done("init", tmp_path / "usage", "--open-domain", "--user", name, "--json").json
    owners = {path.stat().st_uid for path in (tmp_path / "usage", *(tmp_path / "usage").rglob("*"))}
    assert owners == {65534}
    assert all(command.startswith(f"sudo -u {name} hushcount ") for command in made["commands"])
    assert f"User={name}\n" in (tmp_path / "usage" / "systemd" / "hushcount-run.service").read_text()


# What cannot be.


def test_what_cannot_be_is_one_sentence_and_nothing_is_written(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for options, says in [
        ((), "--dictionary FILE, or --open-domain"),
        (("--open-domain", "--dictionary", "a.txt"), "--dictionary or --open-domain"),
        (("--open-domain", "--discovery-epsilon", 1, "--no-discovery"), "--discovery-epsilon or --no-discovery"),
        (("--open-domain", "--id", "A"), "id is 'A'"),
        (("--open-domain", "--id", "a\x1b[2Jb"), r"id is 'a\x1b[2Jb'"),
        (("--open-domain", "--id", "../a"), "id is '../a'"),
        (("--open-domain", "--id", "a" * 5000), "1 to 64"),
        (("--dictionary", "no\nwhere.txt"), r"no\nwhere.txt'"),
        (("--dictionary", "nowhere.txt"), "nowhere.txt"),
        (("--dictionary", "/dev/zero"), "dictionary /dev/zero"),
        (("--dictionary", f"{'a' * 5000}.gz"), "File name too long"),
        (("--open-domain", "--want-share", "1"), "want-share is '1'"),
        (("--open-domain", "--want-share", "0%"), "want-share is '0%'"),
        (("--open-domain", "--want-share", "nan"), "1% or 0.01"),
        (("--open-domain", "--window", "1y"), "window is '1y'"),
        (("--open-domain", "--window", "367d"), "window is '367d'"),
        (("--open-domain", "--window", "9" * 5000), "9'..."),
        (("--open-domain", "--window", "day", "--zone", "Berlin"), "zone is 'Berlin', must be"),
        (("--open-domain", "--window", "1d", "--zone", "Europe/Berlin"), "unless window is day, week or month"),
        (("--open-domain", "--yes", "--zone", "x\ny" * 5000), r"zone is 'x\nyx"),
        (("--open-domain", "--window", "day", "--starts", "sunday"), "unless window is week"),
        (("--open-domain", "--host", "a b"), "host is 'a b'"),
        (("--open-domain", "--host", "a\nb"), r"host is 'a\nb'"),
        (("--open-domain", "--user", "no such\nuser"), r"user is 'no such\nuser'"),
        (("--open-domain", "--user", "a\0b"), "user is "),
    ]:
        with subtests.test(options=options):
            run = refused("init", tmp_path / "usage", *options, says=[says])
            assert run.out == ""
            assert run.err.count("\n") == 1
            assert run.err.rstrip("\n").isprintable()
            assert list(tmp_path.iterdir()) == []


def test_a_directory_that_no_unit_can_name_is_refused(tmp_path: Path) -> None:
    refused("init", tmp_path / "a\nb", "--open-domain", says=["printable"])
    refused("init", tmp_path / ("a" * 255), "--open-domain", "--id", "a", says=["File name too long"])
    refused("init", tmp_path / "Usage of 2026", "--open-domain", says=["--id"])
    made = done("init", tmp_path / "Usage of 2026", "--open-domain", "--id", "usage", "--json").json
    assert "--config '" in made["commands"][0]
    assert Deployment.read(tmp_path / "Usage of 2026" / "deployment.toml").windows.length.days == 1
