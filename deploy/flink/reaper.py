"""Kills a group of processes when the process that started the group has ended in any way: then standard input ends.

    python deploy/flink/reaper.py GROUP

If it reads a line instead, the group has ended already, and it does nothing.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Wait for the end of standard input."""
    if not sys.stdin.readline():
        with suppress(ProcessLookupError):
            os.killpg(int(sys.argv[1]), signal.SIGKILL)


if __name__ == "__main__":
    main()
