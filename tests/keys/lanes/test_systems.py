"""Where the lanes cannot be made, libsodium opens: no system, processor or signal ends the process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from keys import libsodium
from keys.lanes.compiled import Lanes

_ENGINE = "from keys.opening_engines import ENOUGH, engine_for; print(engine_for(ENOUGH).name)"
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
import sys
sys.modules["llvmlite"] = None
"""
_FORKS = """
import os, signal
from keys import opening_engines
import keys.lanes.compiled as compiled
def fork(*_):
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
signal.signal(signal.SIGUSR1, fork)
make = compiled.make_lanes
def made():
    os.kill(os.getpid(), signal.SIGUSR1)
    return make()
compiled.make_lanes = made
"""


def engine_after(prelude: str) -> str:
    """Return the engine for many boxes in a process of its own."""
    done = subprocess.run(  # noqa: S603  # our own words
        [sys.executable, "-c", prelude + _ENGINE], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_a_system_that_forbids_new_code_opens_with_libsodium() -> None:
    """LLVM would not notice, and the first call would end the process."""
    engine = engine_after(_FORBIDS)
    if engine == "older":
        pytest.skip("this kernel cannot forbid a process to make code: NOT tested what happens then")
    assert engine == "libsodium"


def test_a_machine_without_the_compiler_opens_with_libsodium() -> None:
    assert engine_after(_LACKS) == "libsodium"


def test_features_that_a_hypervisor_hides_end_no_process(lanes: Lanes) -> None:
    """To LLVM, AVX-512 is gone where FMA is; it would abort at the first vector."""
    assert engine_after(_HIDES) == "lanes"


@pytest.mark.long
def test_a_signal_handler_may_fork_while_its_thread_makes_the_code(lanes: Lanes) -> None:
    assert engine_after(_FORKS) == "lanes"


def test_a_key_of_another_length_is_refused_as_by_libsodium(lanes: Lanes) -> None:
    for shape in (
        (0, 60),
        (0, 10),
        (3, 10),
        (3, 60),
    ):
        sealed, key = np.zeros(shape, dtype=np.uint8), bytes(32)
        for keys in ((b"", key), (bytes(33), key), (key, bytes(31))):
            errors = []
            for open_rows in (lanes.open_rows, libsodium.open_rows):
                with pytest.raises(ValueError, match="32") as error:
                    open_rows(sealed, *keys)
                errors.append(str(error.value))
            assert errors[0] == errors[1]
