"""What `keys` and `Sealer` need of the lanes: where there is no compiler, in forks, and that they seal as libsodium."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from hushcount.wire.sealing import Sealer
from keys import libsodium
from keys.private import PrivateKey
from sealed_lanes import Lanes
from tests.sealed_lanes.machine import of_this_machine

PUBLIC = PrivateKey(bytes(range(1, 33))).public_key
_ENGINE = "from keys.opening_engines import ENOUGH, engine_for; print(engine_for(ENOUGH).name)"
_LACKS = """
import sys
sys.modules["llvmlite"] = None
"""
_FORKS = """
import os, signal
import sealed_lanes
def fork(*_):
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
signal.signal(signal.SIGUSR1, fork)
make = sealed_lanes.make_lanes
def made():
    os.kill(os.getpid(), signal.SIGUSR1)
    return make()
sealed_lanes.make_lanes = made
"""


@pytest.fixture
def lanes() -> Lanes:
    return of_this_machine()


def engine_after(prelude: str) -> str:
    """Return the engine for many boxes in a process of its own."""
    done = subprocess.run(  # noqa: S603  # our own words
        [sys.executable, "-c", prelude + _ENGINE], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_a_machine_without_the_compiler_opens_with_libsodium() -> None:
    assert engine_after(_LACKS) == "libsodium"


@pytest.mark.long
def test_a_signal_handler_may_fork_while_its_thread_makes_the_code(lanes: Lanes) -> None:
    assert engine_after(_FORKS) == "lanes"


def test_a_key_of_another_length_is_refused_as_by_libsodium(lanes: Lanes) -> None:
    for shape in ((0, 60), (0, 10), (3, 10), (3, 60)):
        sealed, key = np.zeros(shape, dtype=np.uint8), bytes(32)
        for keys in ((b"", key), (bytes(33), key), (key, bytes(31))):
            errors = []
            for open_rows in (lanes.open_rows, libsodium.open_rows):
                with pytest.raises(ValueError, match="32") as error:
                    open_rows(sealed, *keys)
                errors.append(str(error.value))
            assert errors[0] == errors[1]


def test_equal_rows_get_boxes_that_have_nothing_in_common(lanes: Lanes) -> None:
    sealer = Sealer(PUBLIC, lanes.seal_rows)
    sealed = np.concatenate([sealer.seal_many(np.zeros((500, 64), dtype=np.uint8), 2) for _ in range(2)])
    for part in (slice(32), slice(32, 48), slice(48, 112)):
        assert len({row[part].tobytes() for row in sealed}) == 1000


def test_rows_sealed_alike_are_those_of_libsodium(lanes: Lanes) -> None:
    drawn = np.random.default_rng((20, 40))
    plain, keys = (drawn.integers(0, 256, (20, length), dtype=np.uint8) for length in (40, 32))
    held = [key.tobytes() for key in keys]
    assert np.array_equal(
        Sealer(PUBLIC, lanes.seal_rows).seal_many_alike(plain, held), Sealer(PUBLIC).seal_many_alike(plain, held)
    )
