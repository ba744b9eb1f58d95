"""The lanes touch no byte outside of the arrays they are given."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sealed_lanes import Lanes

ROOT = Path(__file__).parents[2]


def ended(*arguments: str) -> int:
    """Return how a process ends that opens and seals between forbidden pages: 0, or minus a signal."""
    command = [sys.executable, "-m", "tests.sealed_lanes.guarded", *arguments]
    return subprocess.run(command, check=False, cwd=ROOT).returncode  # noqa: S603  # our own module


def test_nothing_outside_of_an_array_is_touched(lanes: Lanes) -> None:
    assert ended() == 0


@pytest.mark.long
def test_leftover_lanes_that_are_not_clamped_are_caught(lanes: Lanes) -> None:
    assert ended("planted") in (-signal.SIGSEGV, -signal.SIGBUS)
