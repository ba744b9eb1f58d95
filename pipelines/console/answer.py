"""The answer of a command: print the answer for people or as JSON, and end the process with its exit status."""

from __future__ import annotations

import inspect
import json
import math
import os
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import typer
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from hushcount.errors import HushcountError
from pipelines.console import options
from pipelines.console.tables import Table

_PIPE_COLUMNS = 160
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_STOPPED = 130
"""Exit status of a command that Ctrl-C ended; shells use the same number."""


@dataclass(frozen=True)
class Answer:
    """The result of a command.

    Attributes:
        data: data for machines, printed with --json; or a function that returns the data, if it takes long.
        people: lines and tables for people; with --json the command does not compute them.
        failure: error message; with a message the command ends with exit status 1; empty if there is no failure.
        status: exit status if there is no failure.
    """

    data: Any
    people: Iterable[RenderableType] = ()
    failure: str = ""
    status: int = 0


@dataclass(frozen=True)
class Sentence:
    """A sentence below a table: a terminal wraps it between words, and a pipe gets it in one line."""

    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = Text(self.text)
        lines = text.wrap(console, options.max_width - 2) if console.is_terminal else [text]
        yield from (Text(f"  {line.plain.rstrip()}") for line in lines)


def out_console() -> Console:
    """Return the console for results; it respects NO_COLOR and COLUMNS, and prints no colors into a pipe."""
    # Into a pipe or a file, print 160 columns instead of the 80 columns that the library assumes.
    narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
    return _console(width=None if narrow else _PIPE_COLUMNS)


def progress_console() -> Console:
    """Return the console for progress and messages, which prints on standard error."""
    return _console(stderr=True)


def _console(**options: Any) -> Console:
    # Print text in brackets and words between colons as they are, not as markup or emoji.
    return Console(highlight=False, markup=False, emoji=False, **options)


def note(line: str, style: str = "") -> None:
    """Print a line on standard error, so that the answer on standard output stays as it is."""
    progress_console().print(line, style=style, soft_wrap=True)


def show(parts: Iterable[RenderableType], console: Console | None = None) -> None:
    """Print lines and tables on standard output, with an empty line after each table except the last part."""
    console, after_table = console or out_console(), False
    for part in parts:
        if after_table:
            console.print()
        whole = isinstance(part, str | Text) or (isinstance(part, Sentence) and not console.is_terminal)
        console.print(part, soft_wrap=whole)
        after_table = isinstance(part, Table)


def show_json(data: Any) -> None:
    """Print JSON for machines."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=plain) + "\n")


def finite(data: Any) -> Any:
    """Return data for JSON, which has no infinity and no NaN: null is in their place."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {key: finite(value) for key, value in data.items()}
    return [finite(value) for value in data] if isinstance(data, list | tuple) else data


def fail(message: str, status: int) -> NoReturn:
    """Print a sentence on standard error and end with a status.

    Raises:
        Exit: always.
    """
    head = Text("not yet: ", "bold yellow") if status == 3 else Text("error: ", "bold red")
    progress_console().print(Text.assemble(head, message), soft_wrap=True)
    raise typer.Exit(status)


def answering(command: Callable[..., Answer | None]) -> Callable[..., None]:
    """Wrap a command for the parser: the wrapper prints the command's answer, or after an error one sentence.

    A command that returns an Answer also gets the option --json. A command that returns None has printed its output.
    """
    signature = inspect.signature(command, eval_str=True)
    parameters = list(signature.parameters.values())
    answers = signature.return_annotation is Answer
    if answers:
        parameters.append(inspect.Parameter("as_json", _KEYWORD, default=False, annotation=options.Json))

    def run(**options: Any) -> None:
        as_json = answers and options.pop("as_json")
        try:
            answer = command(**options)
            if answer is not None:
                if as_json:
                    show_json(answer.data() if callable(answer.data) else answer.data)
                else:
                    show(answer.people)
                if answer.failure:
                    fail(answer.failure, 1)
                raise typer.Exit(answer.status)
        except HushcountError as error:
            fail(str(error), error.exit_status)
        except OSError as error:
            fail(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""), 1)
        except KeyboardInterrupt:
            # Restore the default handler, so that a second Ctrl-C ends the process at once.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            note("stopped")
            raise typer.Exit(_STOPPED) from None

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # read by typer
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run
