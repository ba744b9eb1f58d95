"""Progress bars over jobs in other processes: workers append to a file, the bar reads it."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pipelines.files.storage import is_remote

_STEP = struct.Struct("<I")
_INTERVAL_SECONDS = 0.2


def tick(path: str | None, done: int) -> None:
    """Note that `done` more records are done; a retried bundle counts twice, which only the bar shows."""
    if path is None:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, _STEP.pack(done))
    finally:
        os.close(descriptor)


@contextmanager
def bar(console: Console | None, title: str, total: int, directory: str) -> Iterator[str | None]:
    """Show a bar while the block runs and yield the file for `tick`; None where there is no terminal for it.

    Args:
        directory: the job's own staging directory; no bar where it is remote, because workers could not append.
    """
    if console is None or not console.is_terminal or total == 0 or is_remote(directory):
        yield None
        return
    path = Path(directory) / ".progress"
    path.touch()
    done = threading.Event()
    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=False) as progress:
        task = progress.add_task(title, total=total)

        def follow() -> None:
            while not done.wait(_INTERVAL_SECONDS):
                progress.update(task, completed=min(total, _read(path)))

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield str(path)
            progress.update(task, completed=total)
        finally:
            done.set()
            thread.join()
            path.unlink(missing_ok=True)


def _read(path: Path) -> int:
    raw = path.read_bytes()
    whole = len(raw) - len(raw) % _STEP.size
    return sum(step for (step,) in _STEP.iter_unpack(raw[:whole]))
