"""The lanes of this machine, made once, and the memory that their calls work in."""

from __future__ import annotations

import pytest

from sealed_lanes import Lanes, compiled
from sealed_lanes.arrays import Octets
from tests.sealed_lanes.machine import of_this_machine


@pytest.fixture(scope="session")
def lanes() -> Lanes:
    return of_this_machine()


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Octets, bytes]]:
    """The memory of each call from here on, and what it held before it was wiped."""
    memories: list[tuple[Octets, bytes]] = []

    class Kept(compiled._Scratch):
        def __exit__(self, *error: object) -> None:
            memories.append((self._octets, self._octets.tobytes()))
            super().__exit__(*error)

    monkeypatch.setattr(compiled, "_Scratch", Kept)
    return memories
