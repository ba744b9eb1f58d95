"""Kills a group of processes when the process that started the group has ended in any way.

    python deploy/flink/reaper.py GROUP

The end of the starting process closes this script's standard input. If the script reads a line instead, the group has
ended already, and the script does nothing.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Wait for a line or the end of standard input; at the end, kill the group."""
    if not sys.stdin.readline():
        with suppress(ProcessLookupError):
            os.killpg(int(sys.argv[1]), signal.SIGKILL)


if __name__ == "__main__":
    main()
