"""hushcount run, status, doctor, epoch: what an operator's schedule calls, and what an operator looks at."""

from __future__ import annotations

import signal
import threading
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from hushcount.errors import HushcountError, UsageError
from pipelines.console.common import JsonOption, moment, out_console, progress_console, reported, show_json, span
from pipelines.console.numbers import MOST_WINDOWS
from pipelines.console.tables import show_table, stamp, window_names

if TYPE_CHECKING:
    from pipelines.audit.reconcile import Account
    from pipelines.schedule.report import Done

epoch_app = typer.Typer(help="Publish what is collected from when on.", no_args_is_help=True)
ConfigOption = Annotated[Path, typer.Option("--config", help="Deployment file, .toml or .json.")]


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


@reported
def status(
    config: ConfigOption,
    campaign: Annotated[str | None, typer.Option(help="Only this campaign.")] = None,
    last: Annotated[
        int, typer.Option(help="So many windows; the counts of all are checked.", min=1, max=MOST_WINDOWS)
    ] = 7,
    digests: Annotated[
        bool, typer.Option("--digests", help="Read all that was handed on, not only what is new.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what became of every report, by number; exit status 1 where two numbers do not agree.

    Example: hushcount status --config deployment.toml
    """
    from pipelines.audit.collecting import collecting
    from pipelines.audit.reconcile import Account, account_of
    from pipelines.batches.state import opened, snapshot
    from pipelines.batches.unclaimed import unclaimed
    from pipelines.commands.collecting import facts_of, show_collecting
    from pipelines.deployment.campaigns import read_epochs
    from pipelines.deployment.settings import Deployment

    deployment = Deployment.read(config)
    campaigns, faults = read_epochs(deployment.campaigns)
    names = [epochs.campaign for epochs in campaigns]
    if campaign is not None and campaign not in names:
        raise UsageError(f"campaign is {campaign!r}, must be one of {', '.join(names) or 'none'}")
    with opened(deployment.state) as state, snapshot(state) as connection:
        accounts = [
            account_of(connection, deployment, name, digests=digests) for name in names if campaign in (None, name)
        ]
    now = datetime.now(timezone.utc)
    strange = unclaimed(deployment, {*names, *faults}) if campaign is None else {}
    open_now = {account.campaign: collecting(deployment, account.campaign, now) for account in accounts}
    if as_json:
        without_file = [asdict(Account(name, differences=[said])) for name, said in strange.items()]
        shown = [{**asdict(account), "collecting": facts_of(open_now[account.campaign])} for account in accounts]
        show_json([*shown, *without_file])
    else:
        for account in accounts:
            show_collecting(account.campaign, open_now[account.campaign])
            _show_account(account, last)
        for said in strange.values():
            out_console().print(f"DIFFERENCE {said}", style="yellow", markup=False, soft_wrap=True)
    for name, fault in faults.items():
        progress_console().print(f"error: {name}: {fault}", style="bold red", markup=False, soft_wrap=True)
    differences = len(faults) + len(strange) + sum(len(account.differences) for account in accounts)
    if differences:
        raise HushcountError(f"{differences} difference{'s' if differences > 1 else ''}: see above")


def _show_account(account: Account, last: int) -> None:
    from pipelines.audit.reconcile import WindowCounts

    console = out_console()
    windows = sorted({counts.window for counts in account.windows} | set(account.refused))[-last:]
    short = window_names(windows)
    heads = ("window", "stream", "received", "by now", "refused")
    rows = []
    received = {counts.window for counts in account.windows if counts.stream == "reports"}
    # A window may have brought refusals and nothing else.
    empty = [WindowCounts(window, "reports", 0, {}) for window in account.refused if window not in received]
    for counts in sorted((*account.windows, *empty), key=lambda counts: (counts.window, counts.stream)):
        if counts.window in windows:
            refused = account.refused.get(counts.window, {}) if counts.stream == "reports" else {}
            numbers = (f"{counts.received:,}", _by_reason(counts.states), _by_reason(refused))
            rows.append((short[counts.window], counts.stream, *numbers))
    title = f"{account.campaign}: collected, by windows that begin then, UTC"
    show_table(console, heads, rows, title=title, words=("by now", "refused"))
    console.print()
    heads = ("batch", "hop", "received", "forwarded", "rejected")
    rows = []
    for hop in account.hops:
        if hop.batch.partition("-")[0] in windows:
            window, epoch, _ = hop.batch.split("-")
            numbers = (f"{hop.received:,}", f"{hop.accepted:,}", _by_reason(hop.rejected))
            rows.append((f"{short[window]} epoch {int(epoch)}", f"{hop.hop} {hop.stream}", *numbers))
    show_table(console, heads, rows, title=f"{account.campaign}: processed", words=("batch", "hop", "rejected"))
    console.print()
    for difference in account.differences:
        console.print(f"DIFFERENCE {difference}", style="bold red", markup=False, soft_wrap=True)
    for one in account.waiting:
        style = "yellow" if one.verdict == "warning" else "bold red"
        console.print(f"WAITS {one.says}", style=style, markup=False, soft_wrap=True)
    if not account.differences:
        console.print(f"{account.campaign}: all numbers agree", style="green", markup=False)


def _by_reason(numbers: dict[str, int]) -> str:
    return ", ".join(f"{reason} {number:,}" for reason, number in sorted(numbers.items())) or "none"


@epoch_app.command("publish")
@reported
def publish_epoch(
    config: ConfigOption,
    campaign: Annotated[Path, typer.Option(help="Campaign file of the new epoch, its dictionary beside it.")],
    begins: Annotated[
        str | None,
        typer.Option(help="When, as in 2026-12-01T00:00:00Z; the end of the present window when not given."),
    ] = None,
    early: Annotated[
        bool, typer.Option("--early", help="Also before the epoch before has its least length, under [next_epoch.ID].")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Let collectors and clients use a campaign file from a moment on; the epoch before ends then.

    Example: hushcount epoch publish --config deployment.toml --campaign settings.json
    """
    from pipelines.deployment.publish import publish
    from pipelines.deployment.settings import Deployment

    start = None if begins is None else moment("begins", begins)
    part = publish(Deployment.read(config), campaign, start, early=early)
    if as_json:
        show_json(part.model_dump(mode="json"))
        return
    out_console().print(
        f"epoch {part.epoch} begins {part.begins.isoformat()}: {part.file}", markup=False, soft_wrap=True
    )


@reported
def doctor(config: ConfigOption, as_json: JsonOption = False) -> None:
    """Check keys, clocks, storage, disks, campaigns, numbers, and say what to do; exit status 1 where something is bad.

    Example: hushcount doctor --config deployment.toml
    """
    from pipelines.audit.doctor import examine
    from pipelines.deployment.settings import Deployment

    checks = examine(Deployment.read(config))
    if as_json:
        show_json([asdict(check) for check in checks])
    else:
        styles = {"good": "green", "warning": "yellow", "bad": "bold red"}
        rows = [(Text(check.verdict, styles[check.verdict]), check.name, check.says) for check in checks]
        show_table(out_console(), ("verdict", "what", "found"), rows, words=("what", "found"))
    bad = sum(check.verdict == "bad" for check in checks)
    if bad:
        raise HushcountError(f"{bad} of {len(checks)} checks are bad: see above")
