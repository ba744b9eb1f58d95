"""A command that is told to end leaves nothing half done behind."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.jobs import done, new_campaign, new_keys, write_lines

pytestmark = pytest.mark.beam

WAIT = 180.0
TRIES = 10
# Who starts tests in the background of a shell has them ignore SIGINT, and Python would leave it so.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from pipelines.entry import main; main()"
)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.long(but=("2",))
def test_a_job_that_is_told_to_end_removes_what_it_had_in_hand(tmp_path: Path, sent: signal.Signals) -> None:
    keys = new_keys(tmp_path / "keys")
    words = write_lines(tmp_path / "words.txt", ["alpha"])
    campaign = new_campaign(tmp_path / "w.json", keys, dictionary=words)
    values = write_lines(tmp_path / "values.txt", ["alpha"] * 500)
    done("encode", "--campaign", campaign, "--values", values, "--out", tmp_path / "e")
    command = [
        sys.executable, "-c", PROGRAM, "shuffle", "--campaign", str(campaign),
        "--input", str(tmp_path / "e"), "--out", str(tmp_path / "out" / "shuffled"),
    ]  # fmt: skip
    for _ in range(TRIES):
        status, told = _told_to_end(command, tmp_path / "out", sent)
        if status != 0:
            break
        # It was done before the signal came.
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["shuffled"]
        shutil.rmtree(tmp_path / "out")
    assert status not in (0, -sent)
    assert b"Traceback" not in told
    assert list((tmp_path / "out").iterdir()) == []


def _told_to_end(command: list[str], out: Path, sent: signal.Signals) -> tuple[int, bytes]:
    """Start a job, send it a signal once it has something in hand, and return its status and what it said."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603  # our own
        try:
            end = time.monotonic() + WAIT
            while not list(out.glob(".shuffled.*")) and process.poll() is None:
                assert time.monotonic() < end
                time.sleep(0.01)
            process.send_signal(sent)
            _, told = process.communicate(timeout=WAIT)
        finally:
            process.kill()
    return process.returncode, told
