"""Where a run may be interrupted: before each change of a file, the log or the ledger, and before each listing.

A run that is killed does nothing more: whatever its ending tries to tidy up is refused too. Two runs may also take
turns at their changes, each in a thread of its own, of which one is at work at a time.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from random import Random
from types import SimpleNamespace
from typing import Any, Literal

from pipelines.files import moving, storage
from pipelines.files.storage_errors import StorageError
from pipelines.handover.hops import CHAIN
from pipelines.ledger import charging, draws
from pipelines.outputs import staging

Answer = Literal["lost", "taken", "refused"]
"""Of a store that was asked to put an entry: none, though it did; that the name was taken, by its own; none."""
_CHANGES = (
    *((storage, name) for name in ("write_whole", "copy", "remove", "remove_empty", "list_tree")),
    *((moving, name) for name in ("_renamed", "_move")),
    (staging, "_put"),
    (charging, "opened"),
    (draws, "write_new"),
)
_OUTPUTS = [hop.folder for hop in CHAIN.values()]
_SHARE = 0.25
"""How often one run lets the other go on before a change."""
_SECONDS = 120.0


class Killed(BaseException):
    """A run's process is gone."""


@dataclass
class Process:
    """A run under way.

    Attributes:
        at: at which of its changes something happens to it, by number, or the first of a name; 0: nothing does.
        what: happens then.
        answer: of the store, to the entry that it puts as number `at_entry`.
        turn: lets another run go on, perhaps.
        made: changes so far.
        names: of them, for whoever reads a trace.
        put: entries so far.
        dead: whether it was killed.
        in_transaction: whether it holds the ledger's lock.
    """

    at: int | str = 0
    what: Callable[[], None] = lambda: None
    answer: Answer = "lost"
    at_entry: int = 0
    turn: Callable[[], None] = lambda: None
    made: int = 0
    names: list[str] = field(default_factory=list)
    put: int = 0
    dead: bool = False
    in_transaction: bool = False


class Points:
    """The runs under way, and what happens to them."""

    def __init__(self) -> None:
        self.at_work = 0
        # Of something in an output.
        self.before_removal: Callable[[], None] = lambda: None
        self._own = threading.local()

    @property
    def _running(self) -> list[Process | None]:
        """Those of this thread, the innermost last; None: what is done in between is of no run."""
        if not hasattr(self._own, "running"):
            self._own.running = []
        running: list[Process | None] = self._own.running
        return running

    @contextmanager
    def process(self, process: Process) -> Iterator[None]:
        """Let a block be a process."""
        self._running.append(process)
        self.at_work += 1
        try:
            yield
        finally:
            self.at_work -= 1
            self._running.pop()

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Let a block be of no process."""
        self._running.append(None)
        try:
            yield
        finally:
            self._running.pop()

    def kill(self) -> None:
        """End the innermost process here."""
        process = self._running[-1]
        assert process is not None
        process.dead = True
        raise Killed

    def kill_next(self) -> None:
        """End the innermost process before its next change."""
        process = self._running[-1]
        assert process is not None
        process.at, process.what = process.made + 1, self.kill

    def reach(self, name: str) -> None:
        """Come to a change."""
        process = self._running[-1] if self._running else None
        if process is None:
            return
        if process.dead:
            raise Killed
        if name.startswith("remove") and any(f"/{folder}/" in name for folder in _OUTPUTS):
            with self.outside():
                self.before_removal()
        if process.in_transaction:
            return
        process.made += 1
        process.names.append(name)
        if process.made == process.at or (isinstance(process.at, str) and fnmatchcase(name, process.at)):
            process.at = 0
            process.what()
        process.turn()

    def put(self, patch: Callable[[object, str, Any], None]) -> None:
        """Put a point before each change.

        Args:
            patch: sets an attribute, as `MonkeyPatch.setattr` does.
        """
        for module, name in _CHANGES:
            patch(module, name, self._before(getattr(module, name), name.lstrip("_")))
        patch(storage, "put_absent", self._answered(storage.put_absent))
        patch(storage, "remove_directory", self._one_by_one(storage.remove_directory))
        patch(charging, "writing", self._inside(charging.writing))
        # What ends a job that failed tidies its folder up.
        patch(staging, "shutil", SimpleNamespace(rmtree=self._before(shutil.rmtree, "rmtree")))

    def _before(self, change: Callable[..., Any], name: str) -> Callable[..., Any]:
        def at(*args: Any, **kwargs: Any) -> Any:
            self.reach(f"{name} {args[0]}")
            return change(*args, **kwargs)

        return at

    def _one_by_one(self, remove_directory: Callable[[str], None]) -> Callable[[str], None]:
        def at(path: str) -> None:
            self.reach(f"remove_directory {path}")
            for name in storage.list_objects(path):
                with suppress(FileNotFoundError):
                    storage.remove(name)
            with suppress(FileNotFoundError):
                remove_directory(path)

        return at

    def _answered(self, put: Callable[[str, bytes], bool]) -> Callable[[str, bytes], bool]:
        def at(path: str, data: bytes) -> bool:
            self.reach(f"put_absent {path}")
            process = self._running[-1] if self._running else None
            if process is None:
                return put(path, data)
            process.put += 1
            if process.put != process.at_entry:
                return put(path, data)
            if process.answer != "refused":
                put(path, data)
            if process.answer != "taken":
                raise StorageError(f"cannot write {path}: no answer")
            return False

        return at

    def _inside(self, writing: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def within(connection: Any) -> Iterator[None]:
            process = (self._running[-1] if self._running else None) or Process()
            with writing(connection):
                process.in_transaction = True
                try:
                    yield
                finally:
                    process.in_transaction = False

        return within


def take_turns(draw: Random, works: Sequence[Callable[[Callable[[], None]], None]]) -> None:
    """Do works at the same time, one of them at work at each moment; each gets a function that may let another go on.

    Raises:
        BaseException: what the first of them raised.
    """
    turns, over = [threading.Semaphore(0) for _ in works], threading.Semaphore(0)
    left, raised = set(range(len(works))), list[BaseException]()

    def turn(mine: int) -> None:
        others = sorted(left - {mine})
        if others and draw.random() < _SHARE:
            turns[draw.choice(others)].release()
            _wait(turns[mine])

    def begin(mine: int) -> None:
        try:
            _wait(turns[mine])
            works[mine](lambda: turn(mine))
        except BaseException as error:
            raised.append(error)
        finally:
            left.discard(mine)
            (turns[min(left)] if left else over).release()

    for number in range(len(works)):
        threading.Thread(target=begin, args=(number,), daemon=True).start()
    turns[0].release()
    _wait(over)
    if raised:
        raise raised[0]


def _wait(turn: threading.Semaphore) -> None:
    if not turn.acquire(timeout=_SECONDS):
        raise TimeoutError("a run waits for the other, which waits for it")
