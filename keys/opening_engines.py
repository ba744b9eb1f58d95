"""The two engines that open and seal boxes, libsodium and the lanes, and the choice between them (docs/adr/0029)."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from hushcount.arrays import BoolArray, Octets
from hushcount.errors import UsageError
from hushcount.wire.sealing import SealRows, seal_rows
from keys import libsodium

if TYPE_CHECKING:
    from sealed_lanes import Lanes

EngineName = Literal["lanes", "libsodium"]
VARIABLE = "HUSHCOUNT_OPENING"
ENOUGH = 1 << 15
"""From this number of boxes on the lanes are faster, although compiling takes 0.5 s, because they save 25 us a box."""

_LOG = logging.getLogger(__name__)
_MAKING = threading.RLock()
# A forked child must not inherit a lock that another thread holds, so a fork waits until that thread has made the
# lanes.
os.register_at_fork(before=_MAKING.acquire, after_in_parent=_MAKING.release, after_in_child=_MAKING.release)


class Opened(NamedTuple):
    """The result of opening uint8[n, L + 48].

    Attributes:
        plain: uint8[n, L], zero where a row did not open.
        opened: bool[n], true where a row opened.
        rescued: number of rows that libsodium opened after another engine had failed to open them.
    """

    plain: Octets
    opened: BoolArray
    rescued: int


@dataclass(frozen=True)
class OpeningEngine:
    """An opening engine; `attempt` takes sealed rows, public key and secret; returns plain rows and which rows opened.

    Both engines give identical results. If an engine computes a wrong product, key or nonce, the box does not open,
    because libsodium's secretbox authenticates it. The lanes' self-test covers two other cases: a box that must be
    refused, and a product that is zero.
    """

    name: EngineName
    attempt: Callable[[Octets, bytes, bytes], tuple[Octets, BoolArray]]

    def open_rows(self, sealed: Octets, public_key: bytes, secret: bytes) -> Opened:
        """Open every row of uint8[n, L + 48]; libsodium tries to open the rows that another engine did not open."""
        plain, opened = self.attempt(sealed, public_key, secret)
        if self.name == LIBSODIUM.name or opened.all():
            return Opened(plain, opened, 0)
        again = np.flatnonzero(~opened)
        plain[again], opened[again] = libsodium.open_rows(sealed[again], public_key, secret)
        return Opened(plain, opened, int(opened[again].sum()))


LIBSODIUM = OpeningEngine("libsodium", libsodium.open_rows)


def engine_for(boxes: int) -> OpeningEngine:
    """Return the engine for a number of boxes, and log the choice's reason once; raises what `lanes_for` raises."""
    lanes = lanes_for(boxes)
    if isinstance(lanes, str):
        _log(f"sealed reports are opened by libsodium: {lanes}")
        return LIBSODIUM
    _log("sealed reports are opened in lanes")
    return OpeningEngine("lanes", lanes.open_rows)


def sealing_for(boxes: int) -> SealRows:
    """Return the function to seal a number of boxes, and log the choice's reason once; raises what `lanes_for` raises.

    Call the function with whole arrays, because the lanes seal 32 boxes in one turn, and a turn for one box takes as
    long.
    """
    lanes = lanes_for(boxes)
    if isinstance(lanes, str):
        _log(f"reports are sealed by libsodium: {lanes}")
        return seal_rows
    _log("reports are sealed in lanes")
    return lanes.seal_rows


def lanes_for(boxes: int) -> Lanes | str:
    """Return the lanes, or the reason why libsodium is used for this number of boxes.

    Raises:
        UsageError: the environment names an unknown engine.
    """
    if lanes_are_off():
        return f"{VARIABLE} says so"
    if boxes < ENOUGH:
        return f"making the lanes does not pay below {ENOUGH:,} boxes"
    with _MAKING:
        return _made()


def lanes_are_off() -> bool:
    """Return whether the environment asks for libsodium; raises what `lanes_for` raises."""
    require_opening_engine()
    return os.environ.get(VARIABLE) == LIBSODIUM.name


def require_opening_engine() -> None:
    """Raise UsageError if the environment names an unknown engine."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", LIBSODIUM.name):
        raise UsageError(
            f"{VARIABLE} is {wanted!r}, must be {LIBSODIUM.name} or empty: unset it, or set it to {LIBSODIUM.name}"
        )


@cache
def _made() -> Lanes | str:
    """Make the lanes once in a process, or return the reason why this machine cannot make them."""
    try:
        # The import is here, so that a job that needs no lanes does not load the compiler.
        from sealed_lanes import FaultyLanes, NoLanes, make_lanes
    except (ImportError, OSError) as error:
        return f"the compiler cannot be loaded ({type(error).__name__})"
    try:
        return make_lanes()
    except FaultyLanes as fault:
        _LOG.warning("libsodium is used instead of the lanes, and no report is lost: %s; report this as a bug", fault)
        return str(fault)
    except NoLanes as missing:
        return str(missing)


@cache
def _log(sentence: str) -> None:
    """Log a sentence once in a process."""
    _LOG.info(sentence)
