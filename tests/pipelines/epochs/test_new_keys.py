"""No run publishes a key that did not open made-up reports, whatever is killed between `keys rotate` and the epoch."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from keys.listing import read_listing
from keys.records import key_path
from keys.rotation import rotate
from tests.pipelines.schedule.test_watch import WAIT, watching
from tests.shuffler.collector.running import wait_for
from tests.support.collecting import collect
from tests.support.jobs import done
from tests.support.next_epoch import AT_ONCE, collection, newest, sent
from tests.support.site import Site, at

KILLED = """
import os, signal, sys
from pipelines.entry import main

left, keys = [int(sys.argv[1])], sys.argv[2]


def one_file_less(event, arguments):
    if event in ("os.rename", "os.link") and str(arguments[1]).startswith(keys):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)


sys.addaudithook(one_file_less)
sys.argv = ["hushcount", "keys", "rotate", "--keys", keys, "--overlap", "7d"]
main()
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, discovery=True, tail=f"[metrics]\ntextfile = 'run.prom'\n[next_epoch.words]\n{AT_ONCE}")


def epochs(site: Site) -> list[int]:
    return [one.epoch for one in collection(site).epochs]


@pytest.mark.parametrize("role", ["analyzer", "aux_server"])
def test_a_new_key_that_is_not_here_is_published_only_once_it_is(site: Site, role: str) -> None:
    before = newest(site).keys
    rotate(site.keys, (role,), overlap=timedelta(days=7), begins=at(1.05))  # type: ignore[arg-type]
    new = read_listing(site.keys).of(role)[-1].id  # type: ignore[arg-type]
    path = key_path(site.keys, role, new)  # type: ignore[arg-type]
    kept = path.read_bytes()
    path.unlink()
    finished = site.run(1.1)
    assert (finished.published, epochs(site), newest(site).keys) == ([], [1], before)
    (problem,) = finished.problems
    for said in (
        f"{role} key {new}: key directory",
        str(site.keys),
        "hushcount keys rehearse",
        "hushcount campaign new --after",
    ):
        assert said in problem
    path.write_bytes(kept)
    path.chmod(0o600)
    assert (site.run(1.2).published, site.run(1.3).published) == (["words/2"], [])
    assert [key.id for key in getattr(newest(site).keys, role)] == [new]


def test_a_change_of_the_dictionary_alone_is_not_rehearsed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a key of a party elsewhere, which was rehearsed when it was new, would stop every later epoch."""
    (there,) = newest(site).keys.aux_server
    collect(site.store, site.campaign, sent(200), day=0)
    monkeypatch.setattr("pipelines.jobs.rehearse.rehearse", lambda *_: pytest.fail("rehearsed"))
    assert site.run(1.1).published == ["words/2"]
    assert newest(site).keys.aux_server == (there,)


@pytest.mark.long
def test_a_watching_run_and_a_rotation_that_are_killed_at_each_step_publish_no_key_unrehearsed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = site.root / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    looked = site.root / "run.prom"

    def look_again() -> None:
        wait_for(looked.exists, WAIT)
        for _ in range(2):
            before = looked.stat().st_mtime_ns
            wait_for(lambda: looked.stat().st_mtime_ns > before, WAIT)  # noqa: B023  # called at once

    with watching(site) as (process, log):
        look_again()
        # Before the first key file, the second, and the listing.
        for step in range(3):
            command = [sys.executable, "-c", KILLED, str(step), str(site.keys)]
            assert subprocess.run(command, check=False).returncode == -signal.SIGKILL  # noqa: S603  # our own script
            look_again()
            assert epochs(site) == [1]
        # The key is listed, but the run cannot read it: a rotation by another user looks like this.
        process.send_signal(signal.SIGSTOP)
        done("keys", "rotate", "--keys", site.keys, "--overlap", "7d")
        new = read_listing(site.keys).of("analyzer")[-1].id
        hidden = key_path(site.keys, "analyzer", new)
        hidden.rename(site.root / "hidden")
        process.send_signal(signal.SIGCONT)
        wait_for(lambda: f"analyzer key {new}" in log.read_text(), WAIT)
        assert epochs(site) == [1]
        (site.root / "hidden").rename(hidden)
        # Killed in the middle of the rehearsal.
        wait_for(lambda: any(scratch.glob("hushcount-rehearsal-*")), WAIT)
        process.kill()
        process.wait(WAIT)
    assert epochs(site) == [1]
    with watching(site) as (process, log):
        wait_for(lambda: "published: words/2" in log.read_text(), WAIT)
        assert "words: rehearsing the new keys of epoch 2\n" in log.read_text().partition("published: ")[0]
        look_again()
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0
    assert epochs(site) == [1, 2]
    assert [key.id for key in newest(site).keys.analyzer] == [new]
    path = newest(site).path
    assert done("keys", "rehearse", "--campaign", path, "--keys", site.keys, "--json").json["passed"] is True
