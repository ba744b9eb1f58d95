"""Prevent core dumps of a process that holds a private key."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from functools import cache

_PR_SET_DUMPABLE = 4


@cache
def keep_out_of_dumps() -> None:
    """Prevent core dumps of this process and its children, and keep debuggers of other users from attaching to them.

    Child processes inherit both settings, the size limit of 0 and, on Linux only, PR_SET_DUMPABLE. PR_SET_DUMPABLE also
    prevents dumps that the system pipes to a program; the size limit does not prevent these dumps. PR_SET_DUMPABLE is
    reset when a process executes another program, so that program must call this function itself.

    Raises:
        OSError: the system forbids it.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    if sys.platform == "linux" and ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "prctl")
