"""The commands of an operator's machine: collect, evaluate and run."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from typer import Exit, Option

from hushcount.clock import MACHINE
from hushcount.collection.windows import window_text
from hushcount.errors import UsageError
from pipelines.console import options
from pipelines.console.answer import note, out_console, progress_console, show_json
from pipelines.console.tables import stamp

if TYPE_CHECKING:
    from pipelines.deployment.settings import Deployment
    from pipelines.log.log import Logs
    from pipelines.monitoring.run_metrics import Looks
    from pipelines.schedule.done import Done
    from pipelines.schedule.work import Say

_MOST_TOLD = 3
"""The most campaigns that a line of `run` tells about."""
_LOOK_SECONDS = 900.0
"""A watch computes alerts and metrics after each look that did work, and otherwise once in this number of seconds."""


def collect(config: options.Config = options.HERE) -> None:
    """Run it on the collector's machine. At SIGTERM or Ctrl-C it uploads all reports that it acknowledged, and ends.

    Example: hushcount collect
    """
    from pipelines.deployment.collector import collect as job
    from pipelines.deployment.settings import Deployment

    job(Deployment.read(config, waits=True))


def evaluate(config: options.Config = options.HERE) -> None:
    """Run it beside the collector, or on another party's machine, until SIGTERM or Ctrl-C.

    Example: hushcount evaluate
    """
    from pipelines.deployment.evaluator import evaluate as job
    from pipelines.deployment.settings import Deployment

    job(Deployment.read(config, waits=True))


def issue(config: options.Config = options.HERE) -> None:
    """Run it where accounts are known, apart from collector and evaluator, until SIGTERM or Ctrl-C.

    Example: hushcount issue
    """
    from pipelines.deployment.issuer import issue as job
    from pipelines.deployment.settings import Deployment

    job(Deployment.read(config, waits=True))


def run(
    config: options.Config = options.HERE,
    watch: Annotated[bool, Option("--watch", help="Repeat until stopped; print only work and problems.")] = False,
    every: Annotated[str, Option(help="With --watch: time between two looks, as in 30s or 5m.")] = "30s",
    wait: Annotated[bool, Option("--wait", help="Wait until another run of the same parties ends.")] = False,
    clock_is_right: Annotated[
        bool, Option("--clock-is-right", help="Trust this machine's clock although it is far ahead.")
    ] = False,
    log_was_restored: Annotated[
        bool, Option("--log-was-restored", help="Replace a lost log by a new one; give up unknown reports.")
    ] = False,
    ledger_was_lost: Annotated[
        bool, Option("--ledger-was-lost", help="Charge this ledger although the log names another one.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Run it from a schedule, or once with --watch. Each step is done once; the next run resumes a killed one.

    Example: hushcount run
    """
    from pipelines.deployment.settings import Deployment
    from pipelines.log.log import Logs
    from pipelines.monitoring.run_metrics import Looks
    from pipelines.schedule.run import run as once
    from pipelines.schedule.work import Vouched

    pause = options.span("--every", every)
    vouched = Vouched(clock_is_right, log_was_restored, ledger_was_lost)
    if watch and vouched != Vouched():
        raise UsageError(
            "options --clock-is-right, --log-was-restored and --ledger-was-lost are for one run, but --watch repeats "
            "runs forever: leave --watch out, run once with the option, then start --watch again"
        )
    console = progress_console()
    look = partial(once, vouched=vouched, console=console)
    say = partial(_print, console, "dim")
    if not watch:
        deployment = Deployment.read(config)
        logs = Logs(deployment)
        work = partial(look, deployment, wait=wait, say=say, logs=logs)
        done = _look(deployment, logs, Looks(), work, lambda _: True)
        _show_done(done, as_json, done.waiting, deployment, logs)
        raise Exit(1 if done.problems else 0)
    _watch(config, look, say, pause, console, as_json)


def _watch(
    config: Path, look: Callable[..., Done], say: Say, pause: timedelta, console: Console, as_json: bool
) -> None:
    """Run all due steps again and again until a signal comes; if a run fails, print its error before the next run."""
    from pipelines.deployment.settings import Deployment
    from pipelines.files.storage_errors import told
    from pipelines.ledger.clock import span
    from pipelines.log.log import Logs
    from pipelines.monitoring.run_metrics import Looks

    stop = _on_signals()
    waited: list[str] = []
    numbers, pace = Looks(), _Pace()
    kept: tuple[Deployment, Logs] | None = None
    while True:
        try:
            deployment = Deployment.read(config)
            if kept is None or kept[0] != deployment:
                kept = deployment, Logs(deployment)
                _print(console, "", _with_outlooks(f"looks every {span(pause)}", *kept))
            unless_stopped = partial(_say_unless_stopped, stop, say)
            # Do not wait until another process ends its run, because no signal could interrupt the wait.
            work = partial(look, deployment, wait=False, say=unless_stopped, logs=kept[1])
            done = _look(deployment, kept[1], numbers, work, pace.is_due)
        except _Stopped:
            return
        except Exception as error:
            # Continue after an error: at the next look the store may work again, or the campaign file may be corrected.
            _print(console, "bold red", f"error: {told(error)}")
        else:
            # Print a sentence on something that waits only if the previous look did not have the same sentence.
            news = [line for line in done.waiting if line not in waited]
            if news or not done.is_quiet:
                _show_done(done, as_json, news, *kept)
            waited = done.waiting
        if _stopped_within(stop, pause):
            return


class _Pace:
    """Decides after which looks a watch computes alerts and metrics, which takes as long as `hushcount status`."""

    def __init__(self) -> None:
        self._last = -math.inf
        self._before: Done | None = None

    def is_due(self, done: Done) -> bool:
        # If the look before had a problem, such as an undelivered alert, compute alerts and metrics again to see
        # whether the problem is cured.
        failed = self._before is not None and bool(self._before.problems)
        self._before = done
        if done.is_quiet and not failed and MACHINE.steady() - self._last < _LOOK_SECONDS:
            return False
        self._last = MACHINE.steady()
        return True


def _look(
    deployment: Deployment, logs: Logs, numbers: Looks, work: Callable[[], Done], is_due: Callable[[Done], bool]
) -> Done:
    """Do the due work, send alerts, and record the metrics; if the work fails, record the metrics of the failure."""
    from pipelines.files.storage_errors import told
    from pipelines.monitoring.telling import tell
    from pipelines.schedule.done import Done
    from pipelines.schedule.run import AnotherRun

    try:
        done = work()
    except AnotherRun:
        # Record nothing, because the process of the other run records the metrics.
        raise
    except Exception as error:
        failed = Done(problems=[told(error)])
        numbers.record(deployment, failed, logs=logs, measures=False)
        for said in failed.problems[1:]:
            note(f"error: {said}", "bold red")
        raise
    looks = is_due(done)
    if looks:
        tell(deployment, done, logs=logs)
    numbers.record(deployment, done, logs=logs, measures=looks)
    return done


def _print(console: Console, style: str, line: str) -> None:
    """Print a line with the time, because a run may last hours, and a watch years."""
    console.print(f"{stamp(MACHINE.now())} {line}", style=style, soft_wrap=True)


class _Stopped(BaseException):
    """Raised between two steps of a run after a signal has told the process to stop."""


def _say_unless_stopped(stop: threading.Event, say: Say, line: str) -> None:
    """Say which step begins; if a signal has come, end the run before this step, because all steps may take hours."""
    if stop.is_set():
        raise _Stopped
    say(line)


def _on_signals() -> threading.Event:
    """Return an event that SIGTERM sets, so that a watch ends after its present step."""
    stop = threading.Event()

    def heard(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, heard)
    return stop


def _stopped_within(stop: threading.Event, pause: timedelta) -> bool:
    try:
        return stop.wait(pause.total_seconds())
    except KeyboardInterrupt:
        return True


def _with_outlooks(says: str, deployment: Deployment, logs: Logs) -> str:
    """Return a sentence, followed by a sentence on the next result of each campaign, of at most _MOST_TOLD."""
    from pipelines.audit.view import View
    from pipelines.deployment.campaigns import read_epochs

    campaigns, faults = read_epochs(deployment.campaigns)
    if not campaigns and not faults:
        return f"{says}; no campaign is published: {deployment.command('campaign publish --campaign FILE')}"
    views = [*View(deployment, MACHINE.now(), campaigns, faults, logs=logs).readable().each()]
    told = [f"{view.campaign}: {'; '.join(view.collecting.outlook)}" for view in views[:_MOST_TOLD]]
    if len(views) > _MOST_TOLD:
        told.append(f"and {len(views) - _MOST_TOLD:,} more campaigns: {deployment.command('status')}")
    return "; ".join([says, *told])


def _results_of(done: Done, deployment: Deployment) -> Iterator[str]:
    """Yield for each campaign the windows with new results, and the command that shows the newest of them."""
    from pipelines.deployment.campaigns import read_published

    epochs = {one.campaign: one for one in read_published(deployment.campaigns)[0]} if done.results else {}
    for campaign, results in groupby(sorted(set(done.results)), lambda one: one.partition("/")[0]):
        names = [window_text(one.partition("/")[2]) for one in results]
        of = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}, {len(names):,} windows"
        number = epochs[campaign].newest[1].number if campaign in epochs else None
        question = f"ask {'top' if number is None else number.question}"
        asked = f"{question} --campaign {campaign}" if len(epochs) > 1 else question
        yield f"{campaign} {of}: {deployment.command(asked)}"


def _show_done(done: Done, as_json: bool, waiting: list[str], deployment: Deployment, logs: Logs) -> None:
    if as_json:
        show_json(asdict(done))
        return
    results = {
        "announced": done.announced,
        "closed": [f"{campaign} {window_text(window)}" for campaign, window in (one.split("/") for one in done.closed)],
        "done": done.hops,
        "result": [*_results_of(done, deployment)],
        "published": done.published,
        "discovered values that wait for hushcount campaign review": done.review,
        "deleted": done.deleted,
    }
    console = out_console()
    for what, names in results.items():
        for name in names:
            _print(console, "", f"{what}: {name}")
    if not (any(results.values()) or done.dropped or done.problems):
        _print(console, "", _with_outlooks("nothing is due", deployment, logs))
    warnings = (
        ("waits", waiting, "yellow"),
        ("dropped", done.dropped, "bold red"),
        ("error", done.problems, "bold red"),
    )
    for what, lines, style in warnings:
        for line in lines:
            _print(progress_console(), style, f"{what}: {line}")
