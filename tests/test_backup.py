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
from tests.support.jobs import done, refused
from tests.support.postgres import server
from tests.support.site import Site, values

PAGE = (Path(__file__).parents[1] / "docs" / "backup.md").read_text(encoding="utf-8")
FIRST, SECOND = -3, -2
FILES = ("store", "state.db", "ledger.db", "ledger.db.draws", "campaigns", "keys", "journal")


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
def test_what_is_copied_while_all_runs_is_whole(tmp_path: Path) -> None:
    if shutil.which("sqlite3") is None:
        pytest.skip("sqlite3's shell is not installed: the commands that copy a running deployment were NOT run")
    site = after_a_day(tmp_path)
    typed(block("sqlite3 state.db"), site)
    before, numbers = charged(site), counted(site)
    go_on(site, SECOND)
    lose(site, "store", "state.db", "ledger.db", "ledger.db.draws")
    typed("cp -r backup/. .", site)
    restored = block("tar -xf backup.tar").replace("tar -xf backup.tar\n", "")
    typed(restored, site)
    assert (charged(site), counted(site)) == (before, numbers)


@pytest.mark.long
def test_a_state_in_postgresql_is_put_back_under_the_store_of_today(tmp_path: Path) -> None:
    for name in ("pg_dump", "psql"):
        if shutil.which(name) is None:
            pytest.skip(f"PostgreSQL's {name} is not installed: the commands for PostgreSQL were NOT run")
    with server() as running:
        site = after_a_day(tmp_path, settings=f'state = "{running.url}"')
        typed(sentence("pg_dump"), site, STATE_URL=running.url)
        go_on(site, SECOND)
        after, numbers = charged(site), counted(site)
        typed(sentence("psql"), site, STATE_URL=running.url)
        done("run", "--config", site.config)
        assert (charged(site), counted(site)) == (after, numbers)
