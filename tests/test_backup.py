"""docs/backup.md: its commands, run in a deployment that then goes on for a day and is lost."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from itertools import groupby
from pathlib import Path

import pytest

from tests.support.collecting import collect
from tests.support.jobs import cli, done, refused
from tests.support.site import Site, values

PAGE = (Path(__file__).parents[1] / "docs" / "backup.md").read_text(encoding="utf-8")
FIRST, SECOND = -4, -3
"""Days, counted from the present one. The day after SECOND is over for longer than a run waits for manifests."""
FILES = ("store", "ledger.db", "ledger.db.draws", "campaigns", "keys", "journal")


def block(holding: str) -> str:
    (found,) = [text for text in re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE) if holding in text]
    return str(found)


def sentence(holding: str) -> str:
    """Return the command within a sentence of the page."""
    (found,) = [text for text in re.findall(r"`([^`\n]+)`", PAGE) if text.startswith(holding)]
    return str(found)


def typed(commands: str, site: Site, **environment: str) -> None:
    """Run what the page says in the deployment's directory: our commands here, all others by a shell."""
    for ours, lines in groupby(commands.splitlines(), lambda line: line.startswith("hushcount ")):
        if ours:
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(site.root)
                for line in lines:
                    done(*shlex.split(line)[1:])
            continue
        text = "\n".join(lines)
        ran = subprocess.run(  # noqa: S603  # the page's own lines
            ["sh", "-ec", text],  # noqa: S607
            cwd=site.root, env={**os.environ, **environment}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, f"{text}\n{ran.stdout}\n{ran.stderr}"


def after_a_day(root: Path, settings: str = "") -> Site:
    """Return a deployment with the results of a day."""
    site = Site(root, discovery=True, settings=settings)
    for name in ("operator-keys", "journal"):
        (root / name).mkdir()
    done("ledger", "set", "--ledger", root / "ledger.db", "--campaign", "words", "--epsilon", 9, "--delta", "1e-6")
    go_on(site, FIRST)
    return site


def go_on(site: Site, day: int) -> None:
    collect(site.store, site.campaign, values(200), day=day)
    done("run", "--config", site.config)


def lose(site: Site, *names: str) -> None:
    for path in (site.root / name for name in names):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def charged(site: Site) -> set[str]:
    shown = done("ledger", "show", "--ledger", site.root / "ledger.db", "--json").json
    return {charge["key"] for charge in shown["charges"]}


def counted(site: Site) -> list[int]:
    """Return how many reports each hop received, of all batches; no two numbers may differ."""
    (account,) = done("status", "--config", site.config, "--json").json
    assert account["differences"] == []
    return [hop["received"] for hop in account["hops"]]


@pytest.mark.long
def test_everything_is_as_it_was_when_it_was_copied(tmp_path: Path) -> None:
    site = after_a_day(tmp_path)
    typed(block("tar -cf backup.tar"), site)
    before, numbers = charged(site), counted(site)
    go_on(site, SECOND)
    assert len(charged(site)) == 2 * len(before) == 4
    lose(site, *FILES)
    # The releases of the second day are forgotten, and so are its reports.
    typed(block("tar -xf backup.tar"), site)
    assert (charged(site), counted(site)) == (before, numbers)
    # The ledger of then, and the store of now: the page's sentence.
    go_on(site, SECOND)
    after = charged(site)
    typed("tar -xf backup.tar ledger.db ledger.db.draws", site)
    assert charged(site) == before
    documented = sentence("settings: ledger.db lacked 2 charges").removeprefix("settings: ")
    refused(
        "run", "--config", site.config, status=1,
        says=[re.sub(r"batch [^;]+", f"batch {site.batch(SECOND)}", documented)],
    )  # fmt: skip
    assert charged(site) == after
    typed(sentence("hushcount ledger export"), site)
    assert len((tmp_path / "charges.csv").read_text().splitlines()) == 1 + len(after)


@pytest.mark.long
def test_what_is_copied_while_the_collector_runs_is_whole(tmp_path: Path) -> None:
    if shutil.which("sqlite3") is None:
        pytest.skip("sqlite3's shell is not installed: the commands that copy a running deployment were NOT run")
    site = after_a_day(tmp_path)
    # Nobody has closed its window: whether it is late then is a question of the times of files.
    collect(site.store, site.campaign, values(200), day=SECOND)
    typed(block("sqlite3 ledger.db"), site)
    before = charged(site)
    done("run", "--config", site.config)
    after, numbers = charged(site), counted(site)
    lose(site, "store", "ledger.db", "ledger.db.draws")
    typed("cp -a backup/. .", site)
    assert len(before) == len(charged(site)) == 2
    looked = cli("doctor", "--config", site.config)
    assert looked.status == 1
    assert "no run has closed window" in " ".join(looked.out.split())
    restored = re.sub(r"^(tar .*|hushcount doctor)\n", "", block("tar -xf backup.tar"), flags=re.MULTILINE)
    typed(restored, site)
    # The same batch is made of the same segments. What is shuffled anew is another release, of another charge.
    assert before < charged(site)
    assert (len(charged(site)), counted(site)) == (len(after), numbers)
    assert len(after) == 4


@pytest.mark.long
def test_a_log_that_is_older_than_the_outputs_is_refused_until_the_newer_one_is_back(tmp_path: Path) -> None:
    site = after_a_day(tmp_path)
    shutil.copytree(site.store / "log", tmp_path / "older")
    go_on(site, SECOND)
    shutil.copytree(site.store / "log", tmp_path / "newer")
    before, numbers = charged(site), counted(site)
    for copy in ("older", None):
        lose(site, "store/log")
        if copy is not None:
            shutil.copytree(tmp_path / copy, site.store / "log")
        refused("run", "--config", site.config, status=1, says=["was lost, or is an older copy", "--log-was-restored"])
        assert charged(site) == before
    lose(site, "store/log")
    shutil.copytree(tmp_path / "newer", site.store / "log")
    go_on(site, SECOND + 1)
    assert before < charged(site)
    assert sum(counted(site)) > sum(numbers)


@pytest.mark.long(but=("older",))
@pytest.mark.parametrize("copy", ["older", "missing"])
def test_a_new_log_takes_up_what_is_there_and_gives_up_the_rest(tmp_path: Path, copy: str) -> None:
    site = after_a_day(tmp_path)
    shutil.copytree(site.store / "log", tmp_path / "older")
    go_on(site, SECOND)
    before, numbers = charged(site), counted(site)
    lose(site, "store/log")
    if copy == "older":
        shutil.copytree(tmp_path / "older", site.store / "log")
    typed(block("--log-was-restored"), site)
    assert (charged(site), counted(site)) == (before, numbers)
    shown = done("status", "--config", site.config).out
    assert "given_up 200" in shown
    done("run", "--config", site.config)
    assert (charged(site), counted(site)) == (before, numbers)


@pytest.mark.long
def test_a_store_of_yesterday_beside_the_ledger_of_today_is_refused_until_a_new_log_begins(tmp_path: Path) -> None:
    site = after_a_day(tmp_path)
    shutil.copytree(site.store, tmp_path / "older")
    go_on(site, SECOND)
    before = charged(site)
    lose(site, "store")
    shutil.copytree(tmp_path / "older", site.store)
    refused("run", "--config", site.config, status=1, says=["ledger.db follows its entry"])
    typed(block("--log-was-restored"), site)
    assert charged(site) == before
    assert len(list((site.store / "results" / "words").glob("*/summary.json"))) == 1


@pytest.mark.long
def test_a_ledger_that_is_missing_is_refused_until_the_operator_says_that_it_is_lost(tmp_path: Path) -> None:
    site = after_a_day(tmp_path)
    before = charged(site)
    lose(site, "ledger.db", "ledger.db.draws")
    refused("run", "--config", site.config, status=1, says=["releases are charged in ledger", "is missing"])
    command = sentence("hushcount run --ledger-was-lost")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(site.root)
        refused(*shlex.split(command)[1:], status=1, says=["ledger.db lacked 2 charges"])
    assert charged(site) == before
    done("run", "--config", site.config)


@pytest.mark.long
def test_outputs_that_are_gone_are_named_and_not_made_anew(tmp_path: Path) -> None:
    site = after_a_day(tmp_path)
    before, numbers, names = charged(site), counted(site), ("results", "found")
    for name in names:
        shutil.move(site.store / name, tmp_path / name)
    refused("run", "--config", site.config, status=1, says=["is gone", "restore", site.batch(FIRST)])
    done("run", "--config", site.config)
    shown = cli("status", "--config", site.config)
    assert shown.status == 1
    assert all(f"{name}/words/{site.batch(FIRST)}" in shown.out for name in names), shown.out
    assert not any((site.store / name).rglob("summary.json") for name in names if (site.store / name).exists())
    for name in names:
        shutil.copytree(tmp_path / name, site.store / name, dirs_exist_ok=True)
    done("run", "--config", site.config)
    assert (charged(site), counted(site)) == (before, numbers)


@pytest.mark.long
def test_checkpoints_leases_and_looks_may_be_deleted_at_any_time(tmp_path: Path) -> None:
    site = after_a_day(tmp_path)
    before, numbers = charged(site), counted(site)
    looks = list((site.store / "log").glob("*.look.json"))
    assert len(looks) == 1
    for path in [*site.store.rglob("checkpoints"), *(site.store / "log").glob("*.lease.json"), *looks]:
        lose(site, str(path.relative_to(site.root)))
    done("run", "--config", site.config)
    assert (charged(site), counted(site)) == (before, numbers)
