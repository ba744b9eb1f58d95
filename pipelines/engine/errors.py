"""Say in one line why a job failed.

The line that says why a job failed never quotes a value from a report, although a worker's exception may quote one. For
an exception that is not one of our own classes, the line has only the exception's type, the failed step and the place
in the code. Engines with separate workers pass on the text that Python prints for an exception. Of the text that an
engine passes on, only the part before the first exception's message is certain to come from Python. The first
exception's message and all text after it may come from a report, even if this text looks like a stack.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection
from pathlib import Path
from traceback import extract_tb

from hushcount.errors import HushcountError
from pipelines.engine.job_server import REMEDIES
from pipelines.engine.worker_processes import LOST

# The embedded runner's message if a worker process ends while the runner sends data to the worker.
_CHANNEL_CLOSED = "Channel closed prematurely."
_STEP = re.compile(r" \[while running '([^'\n]+)'\]")
_STACK = "Traceback (most recent call last):\n"
_FRAME = re.compile(r'  File "([^"\n]+)", line (\d+), in ')
_TYPE = re.compile(r"([A-Za-z_][\w.]*)(?:: (.*))?$")
_ERRNO = re.compile(r"\[Errno (\d{1,3})\]")
_JAVA = re.compile(r"\b(?:java|javax|org\.apache|io\.grpc)(?:\.\w+)*\.[A-Z]\w*(?:Exception|Error)\b")
_RUNNERS = re.compile(r"apache_beam/runners/(?:portability|dataflow|direct)/")
_HOME = Path(__file__).parents[2]


def root(error: BaseException, steps: Collection[str] = ()) -> str:
    """Return in one line why a job failed, without Beam's stack; `steps` are the full names of the graph's steps."""
    text, frames = str(error), [(frame.filename, str(frame.lineno)) for frame in extract_tb(error.__traceback__)]
    first = (text.strip().splitlines() or [""])[0]
    known = [said for said in (LOST, *REMEDIES) if said in first]
    if known or _CHANNEL_CLOSED in first:
        return known[0] if known else LOST
    if isinstance(error, HushcountError):
        return _STEP.split(text)[0]
    parts = [type(error).__name__]
    if frames and _RUNNERS.search(frames[-1][0]):
        # The text of an engine's exception repeats what the engine's workers printed.
        head, stack, printed = text.partition(_STACK)
        if stack:
            return _of_text(printed, text, steps)
        parts += [found[0] for found in [_JAVA.search(head)] if found]
    return f"{': '.join(parts)}{_system(text)}{_at(frames)}{_step(text, steps)}"


def _system(text: str) -> str:
    """Return the system's message for an error number in `text`: for "[Errno 28]", ": No space left on device"."""
    named = _ERRNO.search(text)
    number = int(named[1]) if named else 0
    return f": {os.strerror(number)}" if number in errno.errorcode else ""


def _of_text(printed: str, text: str, steps: Collection[str]) -> str:
    """Return the type of the first exception in a printed stack, or the exception's text if the class is ours."""
    frames: list[tuple[str, str]] = []
    for line in printed.splitlines():
        frame = _FRAME.match(line)
        if frame is not None:
            frames.append((frame[1], frame[2]))
        elif not line.startswith(" "):
            kind = _TYPE.match(line)
            if kind is None:
                break
            if kind[1] in _ours():
                return _STEP.split(kind[2] or kind[1])[0]
            return kind[1].rpartition(".")[2] + _system(line) + _at(frames) + _step(text, steps)
    return f"an exception{_at(frames)}{_step(text, steps)}"


def _ours() -> set[str]:
    """Return the full names of our exception classes, whose texts never quote a value."""
    found, left = set(), [HushcountError]
    while left:
        kind = left.pop()
        found.add(f"{kind.__module__}.{kind.__qualname__}")
        left += kind.__subclasses__()
    return found


def _at(frames: list[tuple[str, str]]) -> str:
    """Return the last stack frame in our code or, if there is none, the last frame, as " at FILE:LINE"."""
    if not frames:
        return ""
    ours = [(name, line) for name, line in frames if Path(name).is_relative_to(_HOME)]
    name, line = (ours or frames)[-1]
    return f" at {Path(name).relative_to(_HOME) if ours else Path(name).name}:{line}"


def _step(text: str, steps: Collection[str]) -> str:
    """Return " in step NAME", if Beam names a step after the exception's text and the graph has this step; else ""."""
    named = [name for name in _STEP.findall(text) if name in steps]
    return f" in step {named[-1]!r}" if named else ""
