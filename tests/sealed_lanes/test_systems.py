"""Where the lanes cannot be made, `NoLanes` says so: no system and no processor ends the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sealed_lanes import Lanes

_MAKE = """
from sealed_lanes import FaultyLanes, NoLanes, make_lanes
try:
    make_lanes()
    print("made")
except NoLanes as reason:
    print("none" if type(reason) is NoLanes else reason)
"""
_FORBIDS = """
import ctypes
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):  # PR_SET_MDWE, since Linux 6.3
    print("older")
    raise SystemExit
"""
_HIDES = """
import llvmlite.binding as llvm
features = llvm.get_host_cpu_features()
features["fma"] = features["f16c"] = False
llvm.get_host_cpu_features = lambda: features
"""
_LACKS = """
import llvmlite.binding as llvm
llvm.get_host_cpu_features = lambda: {"avx512f": True}
"""


def made_after(prelude: str) -> str:
    """Return what became of the lanes in a process of its own."""
    done = subprocess.run(  # noqa: S603  # our own words
        [sys.executable, "-c", prelude + _MAKE], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_a_system_that_forbids_new_code_has_none() -> None:
    """LLVM would not notice, and the first call would end the process."""
    made = made_after(_FORBIDS)
    if made == "older":
        pytest.skip("this kernel cannot forbid a process to make code: NOT tested what happens then")
    assert made == "none"


def test_a_processor_without_the_instructions_has_none() -> None:
    assert made_after(_LACKS) == "none"


def test_features_that_a_hypervisor_hides_end_no_process(lanes: Lanes) -> None:
    """To LLVM, AVX-512 is gone where FMA is; it would abort at the first vector."""
    assert made_after(_HIDES) == "made"
