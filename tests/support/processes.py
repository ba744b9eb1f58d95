"""Run our commands as processes of their own, as a page or an answer of ours says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextmanager
def process(words: list[str], until: Callable[[str], bool], log: Path) -> Iterator[str]:
    """Run one of our commands for as long as the block runs; what it had said when it was ready is yielded."""
    with log.open("wb") as stream:
        child = subprocess.Popen(  # noqa: S603  # our own commands
            [sys.executable, "-m", "pipelines", *words], stdout=stream, stderr=stream,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 300
        while not until(log.read_text()):
            assert child.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield log.read_text()
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0, log.read_text()
    finally:
        child.kill()
        child.wait()
