"""The machine that measurements are made on."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

_LIBRARIES = ("numpy", "numba", "llvmlite", "PyNaCl", "apache-beam")
_CPU = Path("/proc/cpuinfo")
IFMA = {"avx512f", "avx512ifma"}
"""The same flags as in `sealed_lanes`, which is not imported here because it would load the compiler."""


def machine() -> str:
    """Return processor, memory and versions in one line."""
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{_processor()} {'with' if has_ifma() else 'without'} AVX-512 IFMA, {os.cpu_count()} cores, "
        f"{memory:.0f} GiB, {platform.system()}, Python {platform.python_version()}, {libraries}"
    )


def has_ifma() -> bool:
    """Return whether the processor has the instructions that the lanes use."""
    found = re.search(r"^flags\s*: (.+)$", _CPU.read_text(), re.MULTILINE)
    return found is not None and set(found[1].split()) >= IFMA


def _processor() -> str:
    found = re.search(r"^model name\s*: (.+)$", _CPU.read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()
