"""hushcount run: what an operator's schedule calls."""

from __future__ import annotations

import signal
import threading
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from hushcount.errors import UsageError
from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, out_console, progress_console, reported, show_json, span
from pipelines.console.options import ConfigOption
from pipelines.console.tables import stamp

if TYPE_CHECKING:
    from pipelines.schedule.report import Done

app = new_app()


@app.command("run")
@reported
def run(
    config: ConfigOption,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on until stopped; say what was due, and nothing else.")
    ] = False,
    every: Annotated[str, typer.Option(help="With --watch: how often to look, as in 30s or 5m.")] = "30s",
    wait: Annotated[bool, typer.Option("--wait", help="Wait for another run on the same state to end.")] = False,
    clock_is_right: Annotated[
        bool,
        typer.Option(
            "--clock-is-right", help="Trust the clock, though it is far ahead of all else that tells the time."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Close the windows that are due, and shuffle, discover and analyze their batches; what is done is not done again.

    Example: hushcount run --config deployment.toml
    """
    from pipelines.deployment.settings import Deployment
    from pipelines.schedule.report import Done
    from pipelines.schedule.run import run as once

    pause = span("--every", every)
    if watch and clock_is_right:
        raise UsageError("option --clock-is-right is of one run, and --watch would trust the clock for ever: give one")
    console = progress_console()
    waited: list[str] = []
    # A run that does not watch is ended by a signal at once: the next one goes on where it was.
    stop = _on_signals() if watch else threading.Event()
    while True:
        try:
            # Who watches waits by looking again: a database's lock cannot be waited for and a signal be heard.
            done = once(
                Deployment.read(config),
                wait=wait and not watch,
                clock_is_right=clock_is_right,
                console=console,
                say=_say(console),
            )
        except Exception as error:
            # A database that is away, a campaign file that is being mended: the next look may find it well.
            if not watch:
                raise
            from pipelines.files.storage_errors import told

            _line(console, f"error: {told(error)}", "bold red")
        else:
            # Who watches hears of what waits once, not with every look.
            news = [line for line in done.waiting if line not in waited]
            if not watch or news or done != Done(waiting=done.waiting):
                _show_done(done, as_json, news)
            waited = done.waiting
            if not watch:
                if done.problems:
                    raise typer.Exit(1)
                return
        if _stopped_within(stop, pause):
            return


def _say(console: Console) -> Any:
    def say(line: str) -> None:
        _line(console, line, "dim")

    return say


def _line(console: Console, line: str, style: str = "") -> None:
    """Print a line of a run with the time: what it does may take hours, and it may go on for years."""
    console.print(f"{stamp(datetime.now(timezone.utc))} {line}", style=style, soft_wrap=True)


def _on_signals() -> threading.Event:
    """Return an event that SIGTERM sets: a watching run then ends after the step it is at."""
    stop = threading.Event()

    def told(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, told)
    return stop


def _stopped_within(stop: threading.Event, pause: timedelta) -> bool:
    try:
        return stop.wait(pause.total_seconds())
    except KeyboardInterrupt:
        return True


def _show_done(done: Done, as_json: bool, waiting: list[str]) -> None:
    from pipelines.schedule.report import Done

    if as_json:
        show_json(asdict(done))
        return
    console = out_console()
    for what, names in (
        ("closed", done.closed),
        ("done", done.hops),
        ("published", done.published),
        ("found values that wait for hushcount epoch review", done.review),
        ("deleted", done.deleted),
    ):
        for name in names:
            _line(console, f"{what}: {name}")
    if done == Done(waiting=done.waiting):
        _line(console, "nothing is due")
    for name, lines, style in (("waits", waiting, "yellow"), ("dropped", done.dropped, "bold red")):
        for line in lines:
            _line(progress_console(), f"{name}: {line}", style)
    for problem in done.problems:
        _line(progress_console(), f"error: {problem}", "bold red")
