"""README.md in order, as a newcomer types it: one fresh shell, the environment of `make demo`, and a true answer."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.ports import free_port
from tests.test_pasted import CLIENT, COLLECTOR, README, ROOT, blocks

WINDOW = 60
PATIENCE = 300.0
FAR = 6.0
"""Standard errors. Of 30 estimates one is farther from the truth with a probability of 6e-8."""
NAME = "%Y%m%dT%H%M%SZ"
"""Of a window."""
SENT = "hushcount send "
"""The command of a sentence, which needs the collector that the block before ends."""
COUNTED = "hushcount status"
"""The command before which the reader waits for the window's end."""


class Shell:
    """One bash without a profile, which is given one line after the other."""

    def __init__(self, home: Path) -> None:
        environment = {"PATH": os.defpath, "HOME": str(home), "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}
        self._bash = subprocess.Popen(  # the page's own lines
            ["bash", "--noprofile", "--norc"],  # noqa: S607
            cwd=home, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, start_new_session=True,
        )  # fmt: skip

    def type(self, line: str) -> str:
        """Run a line, which must succeed; return what it printed."""
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.write(f'{line}\necho "ended $?"\n')
        self._bash.stdin.flush()
        said: list[str] = []
        for row in self._bash.stdout:
            if ended := re.fullmatch(r"(.*)ended (\d+)\n", row):
                assert ended[2] == "0", f"{line}: {''.join(said)}"
                return "".join(said) + ended[1]
            said.append(row)
        raise AssertionError(f"{line} ended the shell: {''.join(said)}")

    def end(self) -> None:
        os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.wait()


@contextmanager
def shell(home: Path) -> Iterator[Shell]:
    one = Shell(home)
    try:
        yield one
    finally:
        one.end()


def lines(port: int) -> list[str]:
    """Return the commands of README after its two, with another port than 8080, which may be somebody's."""
    shown = "".join(block.text for block in blocks(README) if block.kind == "sh" and "make demo" not in block.text)
    typed = [line.replace(":8080", f":{port}") for line in shown.splitlines() if line]
    (sent,) = (line for line in typed if line.startswith(SENT))
    typed.remove(sent)
    typed.insert(next(number for number, line in enumerate(typed) if line.startswith(COUNTED)), sent)
    return [f"{line} --port {port}" if line.startswith("hushcount init ") else line for line in typed]


def wait_for_the_windows(trial: Path, people: int) -> None:
    """Wait until all reports of the people are in results."""
    deadline = time.monotonic() + PATIENCE
    while (
        sum(json.loads(path.read_text())["accepted"] for path in trial.glob("store/results/*/*/summary.json")) < people
    ):
        time.sleep(1)
        assert time.monotonic() < deadline, (trial / "run.log").read_text()


def distances(rows: list[dict[str, Any]], truth: dict[str, int], name: str) -> list[float]:
    """Return how many standard errors each count is from the truth; `name`: the column of the item."""
    listed = [row for row in rows if row[name] in truth]
    assert listed
    return [(row["count"] - truth[row[name]]) / row["standard_error"] for row in listed]


@pytest.mark.long
def test_the_readme_in_order_in_one_fresh_shell_ends_with_a_true_answer(tmp_path: Path) -> None:
    # `make demo` leaves an environment in .venv: the one that runs this test.
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    trial, port = tmp_path / "trial", free_port()
    with shell(tmp_path) as typing:
        for line in lines(port):
            if " --send " in line:
                # All people report in one window, so that `ask top` has all of them.
                while time.time() % WINDOW > 10:
                    time.sleep(0.5)
            if line.startswith(SENT):
                report_from_the_apps(trial, f"http://127.0.0.1:{port}")
            if line.startswith(COUNTED):
                wait_for_the_windows(trial, 20_000)
            said = typing.type(line)
            if line.startswith("hushcount ask top"):
                shown = said
            if line.startswith("hushcount ask total"):
                total, new = (json.loads(typing.type(f"hushcount ask {word} --json")) for word in ("total", "new"))
                windows = [f"{datetime.strptime(name, NAME):%Y-%m-%dT%H:%MZ}" for name in total["windows"]]
                tops = [json.loads(typing.type(f"hushcount ask top --json --window {name}")) for name in windows]
    with (trial / "truth.csv").open(newline="") as rows:
        truth = {row["item"]: int(row["count"]) for row in csv.DictReader(rows)}
    assert sum(truth.values()) == 20_000
    # On a busy machine the people arrive in two windows: one of them has half of the people at least.
    top = max((one["rows"] for one in tops), key=lambda found: found[0]["reports"] if found else 0)
    assert top[0]["item"] == max(truth, key=lambda item: truth[item])
    if len(windows) == 1:
        # Values of 5 % of the people are missed with a probability below 1e-7: their counts are 8 errors from 0.
        often = {item for item, count in truth.items() if count > 1000 and not item.startswith("unlisted")}
        assert often <= {row["item"] for row in top}
        assert max(map(abs, distances(top, truth, "item"))) < FAR
        assert top[0]["item"] in shown
    assert max(map(abs, distances(total["rows"], truth, "group"))) < FAR
    wrong = dict(zip(truth, reversed(truth.values()), strict=True))
    assert max(map(abs, distances(total["rows"], wrong, "group"))) > FAR, "another truth is rejected"
    # A value of 100 people is missed with a probability of 1e-8.
    assert {f"unlisted-{number}" for number in range(1, 6)} <= set(re.findall(r"unlisted-\d", json.dumps(new)))
    assert "trial" in (trial / "page.html").read_text(encoding="utf-8")


def report_from_the_apps(trial: Path, site: str) -> None:
    """Run the apps of README and of the client's page against the trial's collector."""
    for page in (README, CLIENT):
        (app,) = (block.text for block in blocks(page) if block.kind == "python")
        run = subprocess.run(  # noqa: S603  # the page's own lines
            [sys.executable, "-c", app.replace(COLLECTOR, site)],
            cwd=trial, env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (run.returncode, run.stdout, run.stderr) == (0, "queued\n", "")
