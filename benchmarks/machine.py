"""On what was measured."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

_LIBRARIES = ("numpy", "numba", "PyNaCl", "apache-beam")


def machine() -> str:
    """Return processor, memory and versions in one line."""
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}, "
        f"Python {platform.python_version()}, {libraries}"
    )


def _processor() -> str:
    found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()
