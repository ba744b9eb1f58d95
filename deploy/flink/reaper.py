"""Kill a group of processes when whoever started it is gone, in whichever way it went: standard input ends then.

    python deploy/flink/reaper.py GROUP

Ends quietly when it is sent a line: the group was ended otherwise.
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
