"""Keeps a process that holds a private key out of core dumps."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from functools import cache

_PR_SET_DUMPABLE = 4


@cache
def keep_out_of_dumps() -> None:
    """Let no core dump be made of this process, nor of what it starts; other users' debuggers are kept out too.

    Forks inherit both settings. Linux alone has the second one, which also holds where the system pipes dumps to a
    program: a limit of 0 does not bind that. It ends where a process executes another program, which asks here itself.

    Raises:
        OSError: the system forbids it.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    if sys.platform == "linux" and ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "prctl")
