"""hushcount run: close the windows that are due, and take every batch as far as the parties that run here can.

Each step is done again without harm: what is in which batch stands in the state, outputs appear whole, and a hop whose
output is complete is not run a second time. So a run may be killed anywhere, and started twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from rich.console import Console
from sqlalchemy import Engine as Database
from sqlalchemy.exc import OperationalError

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import HushcountError, LostLock, NotYet, RetiredKey
from pipelines.batches import rows
from pipelines.batches.hops import hop_names
from pipelines.batches.intake import close_due, register_new, take_back_restored
from pipelines.batches.lock import alone, prove
from pipelines.batches.rebuild import take_up_batches
from pipelines.batches.retention import delete_old
from pipelines.batches.state import opened, snapshot
from pipelines.batches.tombstones import enter_deleted
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
from pipelines.outputs.staging import SUMMARY
from pipelines.schedule.hops import Job, hops_of
from pipelines.schedule.report import Done
from pipelines.schedule.telemetry import Telemetry, telemetry
from pipelines.schedule.witnesses import told_time, trust

Say = Callable[[str], None]


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
    metrics: Telemetry


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
        deployment: what to work on.
        now: the present; the clock's by default.
        wait: whether to wait for another run on the same state to end.
        clock_is_right: whether the operator says so, though it may be far ahead of all else that tells the time.
        console: for progress bars.
        say: told each step as it begins.

    Raises:
        HushcountError: another run is at work, or the state cannot be used.
        UsageError: the deployment or its campaigns are invalid.
    """
    moment, done = now or datetime.now(timezone.utc), Done()
    with opened(deployment.state) as database, alone(database, deployment.state, wait) as state, telemetry() as metrics:
        engine = Engine(deployment.file.engine.runner, deployment.file.engine.options)
        work = _Work(deployment, state, moment, False, done, engine, console, say or (lambda _: None), metrics)
        campaigns, faults = read_epochs(deployment.campaigns)
        for campaign, fault in faults.items():
            done.problems.append(f"{campaign}: {fault}")
            metrics.add_problems(campaign, 1)
        # All manifests are registered before anything is done by the clock: they tell the time.
        registered = _each(work, campaigns, _register)
        _each(_timed(work, clock_is_right), registered, _run_campaign)
        with _contained(work, "segments"):
            done.waiting += unclaimed(deployment, {epochs.campaign for epochs in campaigns} | faults.keys()).values()
    return done


def _each(work: _Work, campaigns: Iterable[Epochs], step: Callable[[_Work, Epochs], None]) -> list[Epochs]:
    """Take a step for each campaign, and return those for which it came to its end."""
    through = []
    for epochs in campaigns:
        before = len(work.done.problems)
        with _contained(work, epochs.campaign):
            step(work, epochs)
            through.append(epochs)
        work.metrics.add_problems(epochs.campaign, len(work.done.problems) - before)
    return through


def _timed(work: _Work, confirmed: bool) -> _Work:
    """Return the work with the moment to work by: what is final is not done by a clock that is far ahead."""
    told = told_time(work.state, work.deployment, work.now)
    work.done.problems += told.problems
    if confirmed or not told.clock.is_far:
        trust(work.state, told.clock, confirmed=confirmed)
        return work
    work.done.problems.append(told.says)
    return replace(work, now=told.present, is_ahead=True)


def _register(work: _Work, epochs: Epochs) -> None:
    if "shuffler" in work.deployment.file.parties:
        work.done.problems += register_new(work.state, work.deployment, epochs.campaign)


@contextmanager
def _contained(work: _Work, where: str) -> Iterator[None]:
    """Make a problem of whatever a block raises, and go on; but for a database that is away or lost."""
    try:
        yield
    except (OperationalError, LostLock):
        raise
    except Exception as error:
        work.done.problems.append(f"{where}: {told(error)}")


def _run_campaign(work: _Work, epochs: Epochs) -> None:
    aside, gone = _aside(work, epochs), _dropped(work, epochs)
    failed: set[str] = set()
    if "shuffler" in work.deployment.file.parties:
        work.done.problems += take_back_restored(work.state, work.deployment, epochs.campaign, work.now)
        _note(work, take_up_batches(work.state, work.deployment, epochs, work.now), failed)
    _note(work, enter_deleted(work.state, work.deployment, epochs.campaign), failed)
    # Before a window closes: what is left out of a batch can join the next one.
    _advance_all(work, epochs, failed)
    if "shuffler" in work.deployment.file.parties:
        for window in close_due(work.state, work.deployment, epochs, work.now, work.say):
            work.done.closed.append(f"{epochs.campaign}/{window}")
            # Before the next one closes: what turns out to be too little for a batch must find a window that is open.
            _advance_all(work, epochs, failed)
    for path, reason in sorted(_aside(work, epochs).items() - aside.items()):
        work.done.problems.append(f"{path} {reason}: it was put aside, the rest went on; restore it")
    _follow(work, epochs)
    _delete(work, epochs)
    for path, (number, reason) in sorted(_dropped(work, epochs).items() - gone.items()):
        work.done.dropped.append(f"{path}: {number:,} reports are too late, and in no result: {reason}")
    with work.state.begin() as connection:
        waiting = waiting_of(connection, epochs.campaign, epochs.campaigns, work.deployment.windows, work.now)
        work.done.waiting += [one.says for one in waiting]
        work.metrics.collected(epochs.campaign, rows.records_by_state(connection, epochs.campaign))


def _note(work: _Work, faults: dict[str, str], failed: set[str]) -> None:
    """Say what is wrong with batches, by their names, and leave them as they are."""
    failed.update(faults)
    work.done.problems += faults.values()


def _advance_all(work: _Work, epochs: Epochs, failed: set[str]) -> None:
    """Take every batch as far as it goes, but for those that failed before in this run."""
    with work.state.begin() as connection:
        finished = rows.hops_done(connection, epochs.campaign)
    for batch in _batches(work, epochs):
        if batch.name in failed:
            continue
        failed.add(batch.name)
        with _contained(work, f"{batch.campaign}/{batch.name}"):
            _advance(work, epochs, batch, finished.get(batch.name, set()))
            failed.remove(batch.name)


def _aside(work: _Work, epochs: Epochs) -> dict[str, str]:
    """Return what is wrong with the segments that were put aside, by their path."""
    with work.state.begin() as connection:
        return {segment.path: reason for segment, reason in rows.quarantined(connection, epochs.campaign)}


def _dropped(work: _Work, epochs: Epochs) -> dict[str, tuple[int, str]]:
    """Return how many reports of each segment are too late, and why, by its path."""
    with work.state.begin() as connection:
        return rows.dropped(connection, epochs.campaign)


def _follow(work: _Work, epochs: Epochs) -> None:
    """Publish the campaign's next epoch if it is to be planned anew and anything changed."""
    part = work.deployment.file.next_epoch.get(epochs.campaign)
    if part is None or work.is_ahead:
        # An epoch begins by the clock, and ends the one before.
        return
    try:
        # It plans mechanisms and reads keys, which a party that only runs jobs may not have.
        from pipelines.epochs.next_epoch import follow
        from pipelines.epochs.review import waiting
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
        found = len(waiting(epochs)) - before
        if part.review and found > 0:
            work.done.review.append(f"{epochs.campaign}: {found:,}")


def _delete(work: _Work, epochs: Epochs) -> None:
    """Delete what the deployment's retention does not keep, of the batches that all hops here have passed over."""
    if work.deployment.file.retention == RetentionPart():
        return
    with _contained(work, f"{epochs.campaign}: not all that is old was deleted"):
        for what in delete_old(work.state, work.deployment, epochs, work.now):
            work.done.deleted.append(what)


def _batches(work: _Work, epochs: Epochs) -> list[Batch]:
    """Return the batches of a campaign: the shuffler's from its state, else those that the shuffler handed on."""
    if "shuffler" in work.deployment.file.parties:
        with work.state.begin() as connection:
            return rows.made_batches(connection, epochs.campaign)
    shuffled = storage.list_tree(work.deployment.folder("shuffled", epochs.campaign), f"*/{SUMMARY}")
    found = (Batch.named(epochs.campaign, path.split("/")[-2]) for path, _ in shuffled)
    return [batch for batch in found if batch is not None]


def _advance(work: _Work, epochs: Epochs, batch: Batch, finished: set[str]) -> None:
    """Run the hops of a batch that have not run yet, one after another, as far as its input is there."""
    if (batch.epoch, batch.fingerprint) not in epochs.files:
        raise HushcountError(f"its campaign file is not among those of {work.deployment.campaigns / epochs.campaign}")
    path, campaign = epochs.files[batch.epoch, batch.fingerprint]
    if finished.issuperset(hop_names(campaign, work.deployment.file.parties)):
        return
    for hop, job in hops_of(work.state, work.deployment, campaign, path, batch, work.engine, work.console):
        if job is None:
            # As one that counted nothing: so every reader knows that the batch was through here.
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
        work.metrics.hop(batch.campaign, counted, time.monotonic() - began)
        work.done.hops.append(f"{batch.campaign}/{batch.name} {hop}")


def _say_withheld(work: _Work, campaign: Campaign, batch: Batch, hop: str, counted: HopCounts) -> None:
    """Say of a hop that it accepted too few reports; not again of the one that reads what it handed on."""
    if is_withheld(counted) and not (hop == "discover" and "aux-server" in work.deployment.file.parties):
        work.done.problems.append(f"{batch.campaign}/{batch.name}: {sentence(campaign, counted)}")


def _of_what_stays(work: _Work, batch: Batch, job: Job) -> HopCounts | None:
    """Return what a job says; None: its input is not there, or of none of its streams enough can be forwarded."""
    try:
        return job()
    except NotYet as few:
        prove(work.state)
        # Its file first: as long as that is there, the batch stands.
        storage.remove(batch_path(work.deployment, batch))
        with work.state.begin() as connection:
            rows.take_out(connection, batch, few.streams)
        return None
