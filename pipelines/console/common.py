"""What every command shares: its options, its output for people and machines, and its exit status."""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from hushcount.collection.windows import duration
from hushcount.errors import HushcountError, UsageError
from pipelines.console import tables

if TYPE_CHECKING:
    from pipelines.engine.runner import Engine
    from pipelines.outputs.summary import HopSummary

Command = TypeVar("Command", bound=Callable[..., Any])
_PIPE_COLUMNS = 160
_STOPPED = 130
"""Exit status of a command that Ctrl-C ended, as shells report it."""
BEAM_SETTINGS = {"allow_extra_args": True}

OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace a result that is already there.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
RunnerOption = Annotated[str, typer.Option("--runner", help="Beam runner; any Beam option may follow after a bare --.")]


def out_console() -> Console:
    """Return the console for results; it respects NO_COLOR, plain pipes, and COLUMNS."""
    # In a pipe or a file nothing is as narrow as a terminal that nobody asked about.
    narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
    return _console(width=None if narrow else _PIPE_COLUMNS)


def progress_console() -> Console:
    """Return the console for progress and messages: standard error."""
    return _console(stderr=True)


def _console(**options: Any) -> Console:
    # What is printed is what was said: no text in brackets is markup, none between colons an emoji.
    return Console(highlight=False, markup=False, emoji=False, **options)


def engine(context: typer.Context, runner: str) -> Engine:
    """Return the engine of a job from --runner and the Beam options after `--`.

    Raises:
        UsageError: an option is not one of Beam's.
    """
    # Beam takes a second to import: only when a job is to run.
    from pipelines.engine.options import unknown_options
    from pipelines.engine.runner import Engine

    stray = [argument for argument in context.args if not argument.startswith("-")]
    if context.args and context.args[0] in stray:
        raise UsageError(f"{stray[0]!r} is not an argument of this command: see --help")
    unknown = unknown_options(context.args)
    if unknown:
        raise UsageError(f"option --{unknown[0]} is neither this command's nor Beam's: see --help")
    return Engine(runner, tuple(context.args))


def reported(command: Command) -> Command:
    """Turn our errors into one sentence on standard error and the exit status that they stand for."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            return command(*arguments, **options)
        except HushcountError as error:
            fail(str(error), error.exit_status)
        except OSError as error:
            fail(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""), 1)
        except KeyboardInterrupt:
            # Who presses Ctrl-C again while this ends means it.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            progress_console().print("stopped")
            raise typer.Exit(_STOPPED) from None

    return run  # type: ignore[return-value]  # wraps keeps the signature, which typer reads


def fail(message: str, status: int) -> NoReturn:
    """Print a sentence on standard error and end with a status.

    Raises:
        Exit: always.
    """
    console = progress_console()
    console.print(
        Text.assemble(
            ("not yet: " if status == 3 else "error: ", "bold yellow" if status == 3 else "bold red"), message
        ),
        soft_wrap=True,
    )
    raise typer.Exit(status)


def show_json(data: Any) -> None:
    """Print JSON for machines."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=plain) + "\n")


def show_facts(title: str, facts: dict[str, Any]) -> None:
    """Print names and values for people, as a table of two columns."""
    tables.show_facts(out_console(), title, [(name.replace("_", " "), _text(value)) for name, value in facts.items()])


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={part}" for name, part in value.items()) or "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def show_summary(summary: HopSummary, out: str, as_json: bool, result: str | None = None, state: bool = True) -> None:
    """Print a hop's summary.

    Args:
        summary: the hop's.
        out: where it wrote.
        as_json: whether for machines.
        result: what people want to see first: the main file, or a line about the answer.
        state: whether to print the privacy statement's sentences.
    """
    if as_json:
        show_json({**summary.data(), "out": out})
        return
    console = out_console()
    rows = [
        (str(stream), f"{counts.received:,}", f"{counts.accepted:,}", _reasons(counts.rejected))
        for stream, counts in summary.streams.items()
    ]
    if (bins := summary.bins) is not None:
        rows.append(("kept bins", f"{bins.kept:,}", f"{bins.found:,}", _reasons(bins.rejected)))
    title = f"{summary.hop}: {summary.campaign}"
    tables.show_table(console, ("stream", "received", "accepted", "rejected"), rows, title=title, words=("rejected",))
    console.print()
    for stream, counts in summary.left_out.items():
        said = (
            f"left out: of {counts.received:,} {stream} {counts.accepted:,} can be forwarded, fewer than the "
            "minimum batch: none was released; shuffle them with more of their stream, without what was forwarded"
        )
        console.print(said, style="yellow", markup=False, soft_wrap=True)
    if state:
        show_sentences(console, summary)
    if result:
        console.print(f"  {result}", soft_wrap=True, markup=False)
    console.print(f"  written to {out}", soft_wrap=True, markup=False)


def _reasons(rejected: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {number:,}" for reason, number in rejected.items()) or "none"


def show_sentences(console: Console, summary: HopSummary) -> None:
    """Print the sentences of a hop's privacy statement."""
    console.print(Padding(Text(" ".join(summary.stated.plain), style="bold"), (0, 0, 1, 2)))
    for sentence in summary.stated.sentences:
        console.print(Padding(Text(sentence), (0, 0, 0, 2)))


def moment(name: str, text: str) -> datetime:
    """Return the time that a text like 2026-12-01T00:00:00Z names.

    Raises:
        UsageError: it is none, or names no time zone.
    """
    try:
        # Python 3.10 reads offsets, but no Z.
        found = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise UsageError(f"{name} is {text!r}, must be a time with its zone, as in 2026-12-01T00:00:00Z")
    return found.astimezone(timezone.utc)


def span(name: str, text: str) -> timedelta:
    """Return the duration that an option's text like 15m or 7d names.

    Raises:
        UsageError: it is none.
    """
    try:
        return duration(text)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
