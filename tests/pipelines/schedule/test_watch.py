"""hushcount run --watch: a process that goes on, finds what is due by itself, and ends when it is told to."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hushcount.collection.windows import window_at
from pipelines.schedule.run import leased
from tests.shuffler.collector.running import wait_for
from tests.support import collecting
from tests.support.jobs import done, summary
from tests.support.site import FLOOR, Site, values

WAIT = 120.0


@contextmanager
def watching(site: Site, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Yield a run that watches, and the file that it writes to."""
    command = [sys.executable, "-m", "pipelines", "run", "--config", str(site.config), "--watch", "--every", "1s"]
    log = site.root / "log"
    with (
        log.open("wb") as stream,
        subprocess.Popen([*command, *options], stdout=stream, stderr=stream) as process,  # noqa: S603  # our own
    ):
        try:
            yield process, log
        finally:
            process.kill()


@pytest.mark.long
def test_a_watching_run_that_waits_for_another_ends_on_sigterm(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with leased(site.deployment, wait=False), watching(site, "--wait") as (process, log):
        wait_for(lambda: "another run is at work" in log.read_text(), WAIT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0


@pytest.mark.long
def test_a_watching_run_closes_a_window_when_it_comes_and_ends_on_sigterm(tmp_path: Path) -> None:
    site = Site(tmp_path, tail='[metrics]\ntextfile = "run.prom"\n')
    collection = site.root / "campaigns" / "words" / "collection.json"
    good = collection.read_text()
    collection.write_text("{}")
    # A window of a day that is over, and its patience too: after midnight that of yesterday is not yet.
    ended = window_at(datetime.now(timezone.utc) - timedelta(days=2), timedelta(days=1))
    collecting.collect(site.store, site.campaign, values(100), day=(ended.start - collecting.START).days)
    with watching(site) as (process, log):
        wait_for(lambda: "error: " in log.read_text(), WAIT)
        collection.write_text(good)
        wait_for(lambda: "analyze" in log.read_text() and "done: words/" in log.read_text(), WAIT)
        shows = f"hushcount ask top -c {site.config}\n"
        wait_for(lambda: log.read_text().endswith(shows), WAIT)
        said = log.read_text()
        assert "Z looks every 1 s" in said.splitlines()[0]
        assert [one.partition("Z ")[2] for one in said.splitlines() if "result: " in one] == [
            f"result: words {ended.text}: {shows.strip()}"
        ]
        # Two more looks, at which nothing is due: they print nothing, and each renews the time of the last look.
        for _ in range(2):
            looked = (site.root / "run.prom").stat().st_mtime_ns
            wait_for(lambda: (site.root / "run.prom").stat().st_mtime_ns > looked, WAIT)  # noqa: B023  # called at once
        assert log.read_text() == said
        assert 'hushcount_run_problems{run="shuffler+aux-server+analyzer"} 0.0' in (site.root / "run.prom").read_text()
        assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ ", line) for line in said.splitlines())
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0
    assert "Traceback" not in log.read_text()
    assert "all numbers agree" in done("status", "--config", site.config).out


@pytest.mark.long
def test_a_watching_run_begins_with_what_it_waits_for_and_says_why_a_window_gave_no_result(tmp_path: Path) -> None:
    site = Site(tmp_path)
    ended = window_at(datetime.now(timezone.utc) - timedelta(days=2), timedelta(days=1))
    collecting.collect(site.store, site.campaign, values(FLOOR - 20), day=(ended.start - collecting.START).days)
    with watching(site) as (process, log):
        wait_for(lambda: "waits: " in log.read_text(), WAIT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0
    first, *lines = log.read_text().splitlines()
    begin, between = (
        f"looks every 1 s; words: window {ended.text} ended {ended.end:%Y-%m-%d %H:%M:%SZ}; ",
        "closes it by",
    )
    assert begin in first
    assert f"{between} {ended.end + timedelta(hours=1):%Y-%m-%d %H:%M:%SZ}" in first
    assert f"a result then needs {FLOOR} reports, and {FLOOR - 20} are stored" in first
    (waits,) = (line for line in lines if "waits: " in line)
    assert f"{FLOOR - 20} reports wait, too few for a result, which needs {FLOOR}; " in waits
    assert f"dropped as too_late after {ended.end + timedelta(days=2):%Y-%m-%d %H:%M}" in waits
    # What `run` says afterwards is what `status` says.
    (due,) = (line for line in done("run", "--config", site.config).out.splitlines() if "nothing is due" in line)
    outlook = due.partition("nothing is due; ")[2]
    today = window_at(datetime.now(timezone.utc), timedelta(days=1))
    assert f"the open window ends {today.end:%Y-%m-%d %H:%M:%SZ}" in outlook
    assert f"needs {FLOOR} reports, and {FLOOR - 20} are stored" in outlook
    assert outlook.replace(";", "") in " ".join(done("status", "--config", site.config).out.split())


@pytest.mark.long
def test_a_watching_run_that_is_told_to_stop_begins_no_further_step(tmp_path: Path) -> None:
    site = Site(tmp_path)
    ended = window_at(datetime.now(timezone.utc) - timedelta(days=3), timedelta(days=1))
    day = (ended.start - collecting.START).days
    for one in (day, day + 1):
        collecting.collect(site.store, site.campaign, values(100), day=one)
    with watching(site) as (process, log):
        wait_for(lambda: ": shuffle" in log.read_text(), WAIT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0
    assert "Traceback" not in log.read_text()
    # The step that was under way is done, and the next one is not.
    assert summary(site.store / "shuffled" / "words" / site.batch(day))["accepted"] == 100
    assert not (site.store / "results" / "words" / site.batch(day)).exists()
    assert site.run(day + 2.5).problems == []
    assert [site.result(one)["accepted"] for one in (day, day + 1)] == [100, 100]
