"""hushcount run: close the windows that are due, and take every batch as far as the parties that run here can.

Outputs appear whole, and a hop with a complete output does not run again. So a run may be killed anywhere, and started
twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TypeVar

from rich.console import Console
from sqlalchemy import Connection
from sqlalchemy import Engine as Database
from sqlalchemy.exc import OperationalError

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import HushcountError, LostLock, NotYet, RetiredKey
from pipelines.batches import rows
from pipelines.batches.hops import hop_names
from pipelines.batches.intake import close_due, register_new, take_back_restored
from pipelines.batches.lock import alone, prove
from pipelines.batches.rebuild import enter_deleted, outputs, take_up_batches
from pipelines.batches.retention import delete_old
from pipelines.batches.state import opened, snapshot
from pipelines.batches.waiting import unclaimed, waiting_of
from pipelines.batches.writing import batch_path
from pipelines.deployment.campaigns import Epochs, read_epochs
from pipelines.deployment.settings import Deployment, RetentionPart
from pipelines.engine.runner import Engine
from pipelines.files import storage
from pipelines.files.storage_errors import told
from pipelines.handover.names import Batch
from pipelines.handover.retired import CountedRetired
from pipelines.outputs.counts import HopCounts
from pipelines.outputs.minimum_batch import is_withheld, sentence
from pipelines.schedule.forgotten import charge_forgotten
from pipelines.schedule.hops import Job, hops_of
from pipelines.schedule.report import Done
from pipelines.schedule.witnesses import told_time, trust

Say = Callable[[str], None]
_T = TypeVar("_T")


@dataclass(frozen=True)
class _Work:
    """What the steps of a run share."""

    deployment: Deployment
    state: Database
    now: datetime
    """The moment to work by: the clock's, unless that is far ahead."""
    is_ahead: bool
    done: Done
    engine: Engine
    console: Console | None
    say: Say

    @property
    def shuffles(self) -> bool:
        """Whether the shuffler runs here."""
        return "shuffler" in self.deployment.file.parties

    def read(self, query: Callable[[Connection, str], _T], campaign: str) -> _T:
        """Return what the state says of a campaign."""
        with self.state.begin() as connection:
            return query(connection, campaign)


def run(
    deployment: Deployment,
    *,
    now: datetime | None = None,
    wait: bool = False,
    clock_is_right: bool = False,
    console: Console | None = None,
    say: Say | None = None,
) -> Done:
    """Do all that is due.

    Args:
        say: is told each step before it begins, and may raise what is no Exception to end the run there.
        clock_is_right: whether the operator confirms a clock that is far ahead of everything else.

    Raises:
        HushcountError: another run is at work, or the state, the deployment or its campaigns cannot be used.
    """
    moment, done = now or datetime.now(timezone.utc), Done()
    with opened(deployment.state) as database, alone(database, deployment.state, wait) as state:
        engine = Engine(deployment.file.engine.runner, deployment.file.engine.options)
        work = _Work(deployment, state, moment, False, done, engine, console, say or (lambda _: None))
        campaigns, faults = read_epochs(deployment.campaigns)
        for campaign, fault in faults.items():
            done.problems.append(f"{campaign}: {fault}")
        # All manifests are registered before anything is done by the clock: they tell the time.
        registered = _each(work, campaigns, _register)
        _each(_timed(work, clock_is_right), registered, _run_campaign)
        with _contained(work, "segments"):
            done.waiting += unclaimed(deployment, {epochs.campaign for epochs in campaigns} | faults.keys()).values()
    return done


def _each(work: _Work, campaigns: Iterable[Epochs], step: Callable[[_Work, Epochs], None]) -> list[Epochs]:
    """Take a step for each campaign, and return those for which it did not fail."""
    through = []
    for epochs in campaigns:
        with _contained(work, epochs.campaign):
            step(work, epochs)
            through.append(epochs)
    return through


def _timed(work: _Work, confirmed: bool) -> _Work:
    """Return the work with the moment to work by: a clock that is far ahead decides nothing final."""
    told = told_time(work.state, work.deployment, work.now)
    work.done.problems += told.problems
    if confirmed or not told.clock.is_far:
        trust(work.state, told.clock, confirmed=confirmed)
        return work
    work.done.problems.append(told.says)
    return replace(work, now=told.present, is_ahead=True)


def _register(work: _Work, epochs: Epochs) -> None:
    if work.shuffles:
        work.done.problems += register_new(work.state, work.deployment, epochs.campaign)


@contextmanager
def _contained(work: _Work, where: str) -> Iterator[None]:
    """Make a problem of whatever a block raises; only a database that is away or lost ends the run."""
    try:
        yield
    except (OperationalError, LostLock):
        raise
    except Exception as error:
        work.done.problems.append(f"{where}: {told(error)}")


def _run_campaign(work: _Work, epochs: Epochs) -> None:
    campaign = epochs.campaign
    aside, gone = work.read(_aside, campaign), work.read(rows.dropped, campaign)
    analyzed = work.read(rows.analyzed_batches, campaign)
    failed: set[str] = set()
    if work.shuffles:
        work.done.problems += take_back_restored(work.state, work.deployment, campaign, work.now)
        _note(work, take_up_batches(work.state, work.deployment, epochs, work.now), failed)
    _note(work, enter_deleted(work.state, work.deployment, campaign), failed)
    work.done.problems += charge_forgotten(work.state, work.deployment, epochs, _batches(work, epochs))
    # Before a window closes: what is left out of a batch can join the next one.
    _advance_all(work, epochs, failed)
    if work.shuffles:
        for window in close_due(work.state, work.deployment, epochs, work.now, work.say):
            work.done.closed.append(f"{campaign}/{window}")
            # Before the next one closes: what turns out to be too little for a batch must find a window that is open.
            _advance_all(work, epochs, failed)
    for path, reason in sorted(work.read(_aside, campaign).items() - aside.items()):
        work.done.problems.append(f"{path} {reason}: it was put aside, the rest went on; restore it")
    with _contained(work, f"{campaign}: not all estimates were written"):
        _export(work, epochs, analyzed)
    _follow(work, epochs)
    _delete(work, epochs)
    for path, (number, reason) in sorted(work.read(rows.dropped, campaign).items() - gone.items()):
        work.done.dropped.append(f"{path}: {number:,} reports are too late, and in no result: {reason}")
    with work.state.begin() as connection:
        waiting = waiting_of(connection, campaign, epochs.campaigns, work.deployment.windows, work.now)
    work.done.waiting += [one.says for one in waiting]


def _note(work: _Work, faults: dict[str, str], failed: set[str]) -> None:
    """Report the faults of batches, by their names, and leave those as they are."""
    failed.update(faults)
    work.done.problems += faults.values()


def _advance_all(work: _Work, epochs: Epochs, failed: set[str]) -> None:
    """Take every batch as far as it goes, except those that failed before in this run."""
    finished = work.read(rows.hops_done, epochs.campaign)
    for batch in _batches(work, epochs):
        if batch.name in failed:
            continue
        failed.add(batch.name)
        with _contained(work, f"{batch.campaign}/{batch.name}"):
            _advance(work, epochs, batch, finished.get(batch.name, set()))
            failed.remove(batch.name)


def _aside(connection: Connection, campaign: str) -> dict[str, str]:
    """Return the fault of each segment that was put aside, by its path."""
    return {segment.path: reason for segment, reason in rows.quarantined(connection, campaign)}


def _export(work: _Work, epochs: Epochs, before: set[Batch]) -> None:
    """Write the estimates of new results into the data set, and those that it lacks."""
    if "analyzer" in work.deployment.file.parties:
        # It reads tables, which other parties need no package for.
        from pipelines.exports.store import keep_up

        work.done.problems += keep_up(work.state, work.deployment, epochs, before, work.say)


def _follow(work: _Work, epochs: Epochs) -> None:
    """Publish the campaign's next epoch if it is to be planned anew and anything changed."""
    part = work.deployment.file.next_epoch.get(epochs.campaign)
    if part is None or work.is_ahead:
        # An epoch begins by the clock, and ends the one before.
        return
    try:
        # It plans mechanisms and reads keys, which a party that only runs jobs may not have.
        from pipelines.epochs.items import waiting
        from pipelines.epochs.next_epoch import follow
    except ModuleNotFoundError as error:
        said = f"package {error.name} is not here: set next_epoch where the analyzer runs"
        work.done.problems.append(f"{epochs.campaign}: no next epoch: {said}")
        return
    prove(work.state)
    # It only looks, and may take long: planning, and waiting for who publishes by hand.
    with _contained(work, f"{epochs.campaign}: no next epoch"), snapshot(work.state) as connection:
        before = len(waiting(epochs))
        published = follow(connection, work.deployment, epochs, part, work.now)
        if published is not None:
            work.done.published.append(f"{epochs.campaign}/{published.epoch}")
        if part.review and (found := len(waiting(epochs)) - before) > 0:
            work.done.review.append(f"{epochs.campaign}: {found:,}")


def _delete(work: _Work, epochs: Epochs) -> None:
    """Delete what retention does not keep of the batches that all hops here have passed."""
    if work.deployment.file.retention == RetentionPart():
        return
    with _contained(work, f"{epochs.campaign}: not all that is old was deleted"):
        for what in delete_old(work.state, work.deployment, epochs, work.now):
            work.done.deleted.append(what)


def _batches(work: _Work, epochs: Epochs) -> list[Batch]:
    """Return the batches of a campaign: the shuffler's from its state, else those that the shuffler handed on."""
    if work.shuffles:
        return work.read(rows.made_batches, epochs.campaign)
    return [batch for batch, _ in outputs(work.deployment, "shuffled", epochs.campaign)]


def _advance(work: _Work, epochs: Epochs, batch: Batch, finished: set[str]) -> None:
    """Run the hops of a batch that have not run yet, one after another, as far as its input is there."""
    if batch.file not in epochs.files:
        raise HushcountError(f"its campaign file is not among those of {work.deployment.campaigns / epochs.campaign}")
    path, campaign = epochs.files[batch.file]
    if finished.issuperset(hop_names(campaign, work.deployment.file.parties)):
        return
    for hop, job in hops_of(work.state, work.deployment, campaign, path, batch, work.engine, work.console):
        if job is None:
            # As a hop that counted nothing: every reader then knows that the batch has passed it.
            with work.state.begin() as connection:
                rows.record(connection, batch, hop, HopCounts.of(hop, {}))
            continue
        prove(work.state)
        work.say(f"{batch.campaign}/{batch.name}: {hop}")
        began = time.monotonic()
        try:
            counted = _of_what_stays(work, batch, job)
        except RetiredKey as retired:
            # Counted to the last report, and not tried again.
            work.done.problems.append(f"{batch.campaign}/{batch.name}: {retired}")
            counted = retired.summary if isinstance(retired, CountedRetired) else None
        if counted is None:
            return
        _say_withheld(work, campaign, batch, hop, counted)
        with work.state.begin() as connection:
            rows.record(connection, batch, hop, counted)
        name = f"{batch.campaign}/{batch.name} {hop}"
        work.done.hops.append(name)
        work.done.seconds[name] = time.monotonic() - began


def _say_withheld(work: _Work, campaign: Campaign, batch: Batch, hop: str, counted: HopCounts) -> None:
    """Report a hop that accepted too few reports; not again the hop that reads its output."""
    if is_withheld(counted) and not (hop == "discover" and "aux-server" in work.deployment.file.parties):
        work.done.problems.append(f"{batch.campaign}/{batch.name}: {sentence(campaign, counted)}")


def _of_what_stays(work: _Work, batch: Batch, job: Job) -> HopCounts | None:
    """Return what a job counted; None: its input is not there, or none of its streams has enough reports to forward."""
    try:
        return job()
    except NotYet as few:
        prove(work.state)
        # Its file first: as long as that is there, the batch stands.
        storage.remove(batch_path(work.deployment, batch))
        with work.state.begin() as connection:
            rows.take_out(connection, batch, few.streams)
        return None
