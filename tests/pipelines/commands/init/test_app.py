"""The app that init writes says what became of its report, whatever the collector does, and never raises."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.jobs import cli, done, write_lines
from tests.support.ports import free_port
from tests.support.processes import ROOT, process


def run_app(home: Path) -> list[str]:
    """Run the app as its own process; return its lines."""
    run = subprocess.run(  # the app that init wrote
        [sys.executable, "app.py"], cwd=home, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout.splitlines()


@pytest.mark.parametrize(
    "windows", [(), ("--window", "month", "--zone", "Europe/Berlin")], ids=["of a length", "of a calendar"]
)
@pytest.mark.long(but=("of a length",))
def test_the_app_runs_before_the_collector_twice_in_a_window_and_while_it_is_down(
    tmp_path: Path, windows: tuple[str, ...]
) -> None:
    home = tmp_path / "usage"
    listed = ("--dictionary", write_lines(tmp_path / "settings.txt", ["dark-mode", "large-text", "autosave"]))
    done("init", home, *listed, "--no-discovery", "--yes", "--port", free_port(), *windows)
    collecting = ["collect", "--config", str(home / "deployment.toml")]
    assert run_app(home) == ["report: not_yet", "not queued: {'not_yet': 1}", "waiting: 0"]
    with process(collecting, lambda said: '"event": "started"' in said, tmp_path / "collect.log"):
        assert run_app(home) == ["report: queued", "not queued: {}", "waiting: 1"]
        again = run_app(home)
        # The report waits a random time of ten minutes at most, and is sent now with probability 0.01.
        assert (again[0], again[2]) in {("report: over_cap", "waiting: 1"), ("report: over_cap", "waiting: 0")}
    down = run_app(home)
    assert (down[0], down[2]) in {("report: over_cap", "waiting: 1"), ("report: over_cap", "waiting: 0")}
    (send,) = re.findall(r"^# Send at once what waits: hushcount (.*)$", (home / "app.py").read_text(), re.MULTILINE)
    words = [str(home / word) if word in ("policy.json", "app-state") else word for word in shlex.split(send)]
    with process(collecting, lambda said: '"event": "started"' in said, tmp_path / "collect.log"):
        sent = cli(*words, "--json").json
        assert (sent["sent"], sent["waiting"], sent["dropped"]) == (int(down[2][-1]), 0, {})
        assert run_app(home)[2] == "waiting: 0"
