"""Where a run may be interrupted: before each change of a file, the state or the ledger.

A run that is killed does nothing more: whatever its ending tries to tidy up is refused too.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Engine, event

from pipelines.files import storage
from pipelines.ledger import charging, draws
from pipelines.outputs import staging

_CHANGES = (
    *((storage, name) for name in ("write_whole", "copy", "remove", "remove_directory", "remove_empty")),
    (staging, "_put"),
    (charging, "opened"),
    (draws, "write_new"),
)


class Killed(BaseException):
    """A run's process is gone."""


@dataclass
class Process:
    """A run under way.

    Attributes:
        at: at which of its changes something happens to it; 0: nothing does.
        what: happens then.
        made: changes so far.
        names: of them, for whoever reads a trace.
        dead: whether it was killed.
    """

    at: int = 0
    what: Callable[[], None] = lambda: None
    made: int = 0
    names: list[str] = field(default_factory=list)
    dead: bool = False


class Points:
    """The runs under way, the innermost last, and what happens to them."""

    def __init__(self) -> None:
        self.running: list[Process] = []
        self.before_removal: Callable[[], None] = lambda: None
        self._in_transaction = 0

    @contextmanager
    def process(self, process: Process) -> Iterator[Process]:
        """Let a block be a process."""
        self.running.append(process)
        try:
            yield process
        finally:
            self.running.pop()

    def kill(self) -> None:
        """End the innermost process here."""
        self.running[-1].dead = True
        raise Killed

    def reach(self, name: str) -> None:
        """Come to a change."""
        if not self.running:
            return
        process = self.running[-1]
        if process.dead:
            raise Killed
        if name.startswith("remove"):
            self.before_removal()
        if self._in_transaction:
            return
        process.made += 1
        process.names.append(name)
        if process.made == process.at:
            process.what()

    def _transaction(self, by: int) -> Callable[..., None]:
        def change(*_: Any) -> None:
            self._in_transaction += by

        return change

    def put(self, patch: Callable[[object, str, Any], None]) -> None:
        """Put a point before each change.

        Args:
            patch: sets an attribute, as `MonkeyPatch.setattr` does.
        """
        for module, name in _CHANGES:
            patch(module, name, self._before(getattr(module, name), name))
        patch(charging, "writing", self._inside(charging.writing))
        # What ends a job that failed tidies its folder up.
        patch(staging, "shutil", SimpleNamespace(rmtree=self._before(shutil.rmtree, "rmtree")))

    def _before(self, change: Callable[..., Any], name: str) -> Callable[..., Any]:
        def at(*args: Any, **kwargs: Any) -> Any:
            self.reach(f"{name} {args[0]}")
            return change(*args, **kwargs)

        return at

    def _inside(self, writing: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def within(connection: Any) -> Iterator[None]:
            with writing(connection):
                self._in_transaction += 1
                try:
                    yield
                finally:
                    self._in_transaction -= 1

        return within

    @contextmanager
    def of_databases(self) -> Iterator[None]:
        """Put a point before each transaction of a state, while a block runs."""
        listeners = [
            ("begin", lambda _: self.reach("transaction")),
            ("begin", self._transaction(1)),
            ("commit", self._transaction(-1)),
            ("rollback", self._transaction(-1)),
        ]
        for name, listener in listeners:
            event.listen(Engine, name, listener)
        try:
            yield
        finally:
            for name, listener in listeners:
                event.remove(Engine, name, listener)
