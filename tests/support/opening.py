"""Lanes of the tests' own. libsodium opens for them, so that they run on every machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

import sealed_lanes
from hushcount.arrays import BoolArray, Octets
from hushcount.wire.sealing import seal_rows
from keys import libsodium, opening_engines


@dataclass
class FakeLanes:
    """Lanes that do not open every box, if `faulty`: of every three rows they refuse the first.

    Attributes:
        calls: how many rows each call that opens had.
        sealed: how many rows each call that seals had.
    """

    faulty: bool = False
    calls: list[int] = field(default_factory=list)
    sealed: list[int] = field(default_factory=list)

    def open_rows(self, sealed: Octets, public_key: bytes, secret: bytes) -> tuple[Octets, BoolArray]:
        self.calls.append(len(sealed))
        plain, opened = libsodium.open_rows(sealed, public_key, secret)
        if self.faulty:
            opened[::3] = False
            plain[::3] = 0
        return plain, opened

    def seal_rows(self, plain: Octets, public_key: bytes, secrets: Octets) -> Octets:
        self.sealed.append(len(plain))
        return seal_rows(plain, public_key, secrets)

    def missed(self, opens: BoolArray) -> int:
        """Return how many rows they refuse of those that open, in one call."""
        return int(np.count_nonzero(opens[::3])) if self.faulty else 0


def put_lanes(monkeypatch: pytest.MonkeyPatch, make: Callable[[], object], enough: int = 1) -> None:
    """Let `make` make the lanes of this process, for so many boxes and more; nothing is made or logged yet."""
    monkeypatch.delenv(opening_engines.VARIABLE, raising=False)
    monkeypatch.setattr(opening_engines, "_made", cache(opening_engines._made.__wrapped__))
    monkeypatch.setattr(opening_engines, "_log", cache(opening_engines._log.__wrapped__))
    monkeypatch.setattr(sealed_lanes, "make_lanes", make)
    monkeypatch.setattr(opening_engines, "ENOUGH", enough)
