"""Whatever a run changes in its store, one step after the other: tests kill a run there, or let another one work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType
from typing import Any

import pytest

from pipelines.files import storage
from pipelines.schedule import attempts, publishing, run

_STEPS: tuple[tuple[ModuleType, str], ...] = (
    (storage, "put_absent"),
    (storage, "write_whole"),
    (storage, "rename"),
    (storage, "remove"),
    (storage, "remove_directory"),
    (publishing, "move_directory"),
    (publishing, "move_file"),
    (attempts, "_checked"),
)


class Killed(BaseException):
    """Stands for the end of the process: nothing of ours catches it."""


class Writes:
    """Counts the moments before and after each step, and calls back at one of them.

    Attributes:
        names: what the moments so far were, as "NAME before" and "NAME after".
    """

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self._at, self._act = at, act
        self.names: list[str] = []
        self.is_over = False

    def moment(self, name: str) -> None:
        # A job's workers are threads of it; a run is the thread that began it.
        if self.is_over or threading.current_thread() is not threading.main_thread():
            return
        self.names.append(name)
        if len(self.names) == self._at:
            self.is_over = True
            self._act()


@contextmanager
def acting_at(number: int, act: Callable[[], None]) -> Iterator[Writes]:
    """Call `act` at the moment of this number, counted from 1, of the runs in a block; no run has a lease there."""
    writes = Writes(number, act)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "leased", lambda *_: nullcontext())
        for module, name in _STEPS:
            patch.setattr(module, name, _watched(writes, name, getattr(module, name)))
        yield writes


def _watched(writes: Writes, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def step(*given: Any, **options: Any) -> Any:
        writes.moment(f"{name} before")
        done = real(*given, **options)
        writes.moment(f"{name} after")
        return done

    return step


anywhere = pytest.mark.parametrize(
    ("first", "every"), [(1, 4), (2, 4), (3, 4), (4, 4), (1, 11)], ids=["1 of 4", "2 of 4", "3 of 4", "4 of 4", "11"]
)
"""At which moments a test acts: at each one, in shares that workers take; and at every eleventh."""


def kill() -> None:
    """Be killed."""
    raise Killed
