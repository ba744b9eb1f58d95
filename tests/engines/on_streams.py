"""Streams on Prism and Flink: scripted, and live, with segments that come while the job runs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hushcount.collection.windows import window_at
from pipelines.streaming.windows import StreamWindows
from tests.engines.conftest import Engines
from tests.support.streams import Collected, collect, play_a_day, record, require_added_up, require_equal

LIVE = StreamWindows(timedelta(seconds=20), timedelta(seconds=20))
LONG_AGO = window_at(datetime(2021, 3, 1, 12, tzinfo=timezone.utc), LIVE.length)
MOST_SECONDS = 300.0

# Workers that are threads of this process end with an exception when their engine hangs up, in jobs that are done too.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


@pytest.fixture
def collected(tmp_path: Path) -> Collected:
    return collect(tmp_path / "collected")


@pytest.mark.parametrize("engine", ["Prism", "Flink, embedded"])
def test_a_scripted_day(collected: Collected, options: Engines, tmp_path: Path, engine: str) -> None:
    _, runner, _, *given = options[engine]
    # Flink gives a script to one task only.
    play_a_day(collected, tmp_path, f"--runner={runner}", *given, *(["--parallelism=1"] * engine.startswith("Flink")))


def now() -> datetime:
    return datetime.now(timezone.utc)


@pytest.mark.parametrize("engine", ["Prism", "Flink, embedded", "Flink, worker pool"])
def test_windows_close_while_the_job_runs_and_a_stopped_job_leaves_nothing_half_made(
    collected: Collected, options: Engines, tmp_path: Path, engine: str
) -> None:
    out = tmp_path / "out"
    collected.segment(LONG_AGO, "before-it-ran", 0, 100)
    far_ahead = window_at(now() + timedelta(days=1), LIVE.length)
    collected.segment(far_ahead, "still-open", 500, 100)
    paths = ("--segments", collected.store, "--keys", collected.chain.keys, "--out", out)
    times = ("--window", "20s", "--lateness", "20s", "--every", "1s", "--json")
    command = ["stream", "--campaign", collected.chain.campaign_path, *paths, *times, *options[engine]]
    hushcount = Path(sys.executable).with_name("hushcount")
    with (
        (tmp_path / "printed").open("w+b") as printed,
        subprocess.Popen([hushcount, *map(str, command)], stdout=printed) as running,  # noqa: S603  # our own
    ):

        def wait_for(there: Callable[[], bool]) -> None:
            end = time.monotonic() + MOST_SECONDS
            while not there():
                assert running.poll() is None, "the job ended"
                assert time.monotonic() < end, "not in time"
                time.sleep(0.1)

        try:
            wait_for((out / LONG_AGO.name / "results" / "summary.json").exists)
            window = window_at(now(), LIVE.length).next
            wait_for(lambda: now() > window.start)
            stored = collected.segment(window, "during", 100, 90)
            wait_for(lambda: now() > window.end)
            stored += collected.segment(window, "within-the-lateness", 190, 80)
            assert not (out / window.name).exists()
            wait_for((out / window.name / "results" / "summary.json").exists)
            late = collected.segment(window, "too-late", 270, 70)
            wait_for(lambda: all((out / "too_late" / f"{name}.json").exists() for name in late))
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(MOST_SECONDS)
        assert running.returncode == 0
        printed.seek(0)
        shown = json.load(printed)
    assert [one["window"] for one in shown["windows"]] == [LONG_AGO.name, window.name]
    assert shown["too_late"] == 2 * 70
    assert sorted(path.name for path in out.iterdir()) == [LONG_AGO.name, window.name, "stream.json", "too_late"]
    assert sorted(record(out, window)["segments"]) == sorted(stored)
    require_added_up(out, window, [*stored, *late], collected)
    for name in late:
        (collected.store / name).unlink()
    for settled in (LONG_AGO, window):
        require_equal(out / settled.name, collected.batch(collected.store / settled.name, tmp_path / settled.name))
