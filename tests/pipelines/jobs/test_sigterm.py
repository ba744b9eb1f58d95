"""A command that is told to end leaves nothing half done behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.jobs import done, new_campaign, new_keys, write_lines

pytestmark = pytest.mark.beam

WAIT = 180.0
PROGRAM = """
import os, signal, sys
from pipelines.entry import main
from pipelines.files.blocks import _ReadSpan

def process(self, span, whole=_ReadSpan.process):
    # A worker in the middle of its work: it goes on when the test closes standard input, and not before.
    os.write(1, b"in hand\\n")
    sys.stdin.read()
    yield from whole(self, span)

def told(*_):
    os.write(1, b"told\\n")
    raise KeyboardInterrupt

_ReadSpan.process = process
signal.default_int_handler = told
# Who starts tests in the background of a shell has them ignore SIGINT, and Python would leave it so.
signal.signal(signal.SIGINT, told)
main()
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.long
def test_a_job_that_is_told_to_end_removes_what_it_had_in_hand(tmp_path: Path, sent: signal.Signals) -> None:
    keys = new_keys(tmp_path / "keys")
    words = write_lines(tmp_path / "words.txt", ["alpha"])
    campaign = new_campaign(tmp_path / "w.json", keys, dictionary=words)
    values = write_lines(tmp_path / "values.txt", ["alpha"] * 60)
    done("job", "encode", "--campaign", campaign, "--values", values, "--out", tmp_path / "e")
    command = [
        sys.executable, "-c", PROGRAM, "job", "shuffle", "--campaign", str(campaign),
        "--input", str(tmp_path / "e"), "--out", str(tmp_path / "out" / "shuffled"),
    ]  # fmt: skip
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:  # noqa: S603  # our own
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"in hand\n"
            assert [path.name.startswith(".shuffled.") for path in (tmp_path / "out").iterdir()] == [True]
            process.send_signal(sent)
            assert process.stdout.readline() == b"told\n"
            _, said = process.communicate(timeout=WAIT)
        finally:
            process.kill()
    assert process.returncode not in (0, -sent)
    assert b"Traceback" not in said
    assert list((tmp_path / "out").iterdir()) == []
