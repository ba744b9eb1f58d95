"""hushcount run: close the windows that are due, and run the hops of every batch that belong to the parties here.

Each decision becomes an entry of the log before any run acts on it. So a run may be killed at any point, and any number
of runs may be at work at once: if another run's entry came first, a run reads that entry and decides again
(docs/adr/0043). Two runs at once would be safe, but would do all work twice. So a run holds a lease, and if the lease
is no longer renewed, another run takes it over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from rich.console import Console

from hushcount.clock import MACHINE, Clock
from hushcount.collection.windows import window_text
from hushcount.errors import HushcountError
from pipelines.deployment.campaigns import Epochs, read_epochs
from pipelines.deployment.listed_windows import listed_until
from pipelines.deployment.settings import Deployment, Party, RetentionPart
from pipelines.engine.runner import Engine
from pipelines.files.leases import Patience, held
from pipelines.files.orders import MOST_TOGETHER
from pipelines.handover.hops import CHAIN
from pipelines.log.entries import Closed, Decision
from pipelines.log.facts import Batched
from pipelines.log.fold import Fold
from pipelines.log.ledger_check import charge_lacking, name_ledger, require_named
from pipelines.log.log import Log, Logs
from pipelines.log.witnesses import Beside, There
from pipelines.schedule.advancing import advance_all
from pipelines.schedule.clock_check import settled, told_time
from pipelines.schedule.done import Done
from pipelines.schedule.handed import stated_elsewhere
from pipelines.schedule.last_look import beside, write_look
from pipelines.schedule.looking import looked, whole
from pipelines.schedule.publishing import attempts_of, publish_missing, sweep, withdraw_deleted
from pipelines.schedule.retention import delete_old
from pipelines.schedule.stating import handed_on, overdue, receive, state
from pipelines.schedule.work import NOTHING, Say, Vouched, Work
from pipelines.windows.closing import Listed, next_window
from pipelines.windows.intake import closed_next
from pipelines.windows.rules import announced, calendar_of, changed, rule_of, strangers
from pipelines.windows.waiting import unclaimed, waiting_of


class AnotherRun(HushcountError):
    """Another run is at work, so this run did nothing."""


@contextmanager
def leased(deployment: Deployment, wait: bool, patience: Patience | None = None) -> Iterator[None]:
    """Hold the lease of the parties here while a block runs.

    Raises:
        AnotherRun: another run holds the lease, and `wait` is false.
        StorageError, OSError: the store cannot be used.
    """
    with held(beside(deployment, "lease"), _busy, wait=wait, patience=patience):
        yield


def _busy(path: str) -> AnotherRun:
    return AnotherRun(
        f"another run is at work, by its lease {path}: nothing was done; wait for its end with --wait, or delete the "
        "file if you know that no run is at work"
    )


def run(
    deployment: Deployment,
    *,
    clock: Clock = MACHINE,
    wait: bool = False,
    vouched: Vouched = NOTHING,
    console: Console | None = None,
    say: Say | None = None,
    logs: Logs | None = None,
) -> Done:
    """Close the windows that are due, run the hops that are due, and do all other work of a run.

    Args:
        clock: this machine's.
        say: a function that is called before each step with the step's name. To end the run before a step, `say` may
            raise a BaseException that is not an Exception.
        wait: whether to wait for the end of another run.
        vouched: the facts that the operator vouches for.
        logs: the logs of the deployment, if this process has read them before.

    Raises:
        AnotherRun: another run is at work.
        HushcountError: the store, the deployment or its campaigns cannot be used.
    """
    done, logs = Done(), logs or Logs(deployment)
    with leased(deployment, wait):
        campaigns, faults = read_epochs(deployment.campaigns)
        done.problems += [f"{campaign}: {fault}" for campaign, fault in faults.items()]
        engine = Engine(deployment.file.engine.runner, deployment.file.engine.options)
        through, listed, stored = looked(deployment, logs, campaigns, done)
        folds = [logs.known(epochs.campaign) for epochs in through]
        time_ = told_time(deployment, folds, [one for each in listed.values() for one in each], clock.now())
        there = whole(deployment, logs, vouched, through, listed, time_.present, done)
        through = [epochs for epochs in through if epochs.campaign in there]
        folds = [logs.known(epochs.campaign) for epochs in through]
        time_ = settled(deployment, logs, folds, time_, clock, confirmed=vouched.clock_is_right)
        done.problems += time_.problems
        ahead = time_.says if time_.clock.is_far else ""
        work = Work(
            deployment, logs, vouched, clock, time_.present, time_.reached, ahead, listed, done, engine, console,
            say or (lambda _: None),
        )  # fmt: skip
        attempts = {party: attempts_of(deployment, party) for party in deployment.file.parties}
        for epochs in through:
            campaign = epochs.campaign
            swept = {party: folders.get(campaign, set()) for party, folders in attempts.items()}
            with work.contained(campaign):
                _run_campaign(work, epochs, there[campaign], swept)
        with work.contained("segments"):
            done.waiting += unclaimed(
                deployment, stored, {epochs.campaign for epochs in campaigns} | faults.keys()
            ).values()
        with work.contained("this look is not recorded"):
            write_look(deployment, work.now)
    return done


def _run_campaign(work: Work, epochs: Epochs, there: dict[Party, Beside], attempts: dict[Party, set[str]]) -> None:
    campaign, deployment = epochs.campaign, work.deployment
    before = work.logs.known(campaign)
    logs = [work.logs.of(party, campaign) for party in deployment.file.parties]
    for log in logs:
        fold, beside = log.fold, there[log.party]
        withdraw_deleted(deployment, log, beside.outputs)
        work.done.problems += publish_missing(deployment, log, _unpublished(log, beside.outputs), work.now)
        sweep(deployment, log, fold, attempts[log.party])
        state(deployment, epochs, log, beside.said)
    said = [log.head for log in logs]
    stated, problems = stated_elsewhere(deployment, epochs, before)
    work.done.problems += problems
    for log in logs:
        if work.vouched.ledger_was_lost and log.fold.ledger is not None:
            name_ledger(deployment, log, work.now, was_lost=True)
    work.done.problems += _charged(work, epochs, logs, work.logs.known(campaign))
    if work.ahead:
        waits = stated or before.waiting or work.listed.get(campaign)
        if waits or any(one.missing for one in handed_on(deployment, before)):
            work.done.problems += {work.ahead} - {*work.done.problems}
    elif work.deployment.shuffles:
        _follow_settings(work, campaign)
    failed = set[str]()
    # The hops run before a window closes, so that segments left out of a batch can join the window's batch.
    advance_all(work, epochs, stated, failed)
    while work.deployment.shuffles and _close_some(work, epochs):
        # Segments that turn out to be too few for a batch can join the batch of the next window that closes.
        advance_all(work, epochs, stated, failed)
    _follow(work, epochs)
    _require_listed(work, epochs)
    for log, head in zip(logs, said, strict=True):
        if log.head != head:
            state(deployment, epochs, log)
        with work.contained(f"{campaign}: receipts were not read"):
            work.done.problems += receive(deployment, log, work.now)
    _delete(work, epochs)
    fold = work.logs.known(campaign)
    work.done.problems += overdue(deployment, fold, handed_on(deployment, fold), stated.values(), work.now)
    for path, one in sorted(fold.dropped.items()):
        if path not in before.dropped:
            what = "are too late, and in no result" if one.state == "too_late" else "are given up"
            work.done.dropped.append(f"{path}: {one.reports:,} reports {what}: {one.reason}")
    if work.deployment.shuffles:
        waiting = waiting_of(fold, rule_of(deployment, epochs, fold), work.now)
        work.done.waiting += [one.says for one in waiting]


def _charged(work: Work, epochs: Epochs, logs: Sequence[Log], fold: Fold) -> list[str]:
    """Enter missing charges into the ledger that the logs name; return sentences that the operator should read."""
    for named in {log.fold.ledger: log.fold for log in logs}.values():
        require_named(work.deployment, named)
    return [] if work.deployment.ledger is None else charge_lacking(work.deployment, epochs, fold, work.clock)


def _unpublished(log: Log, there: There) -> set[str]:
    """Return the batches with a hop that the log's party has done, but whose summary is not in the store."""
    return {
        name
        for name, hops in log.fold.done.items()
        for hop, done in hops.items()
        if hop in there and name not in there[hop] and not (done.folder is None or done.gone)
        if not log.fold.is_deleting(CHAIN[hop].folder, name)
    }


def _follow_settings(work: Work, campaign: str) -> None:
    """Apply the deployment file's length and grace from the next window on; report collectors with other windows."""
    log, listed = work.of("shuffle", campaign), work.listed[campaign]

    def wanted(fold: Fold) -> Decision | None:
        return changed(work.deployment, fold, work.reached) if fold.times or listed else None

    with work.contained(campaign):
        # If the settings need no new entry, the log is not read again.
        is_new = wanted(log.fold) is not None and log.decide(wanted, work.now) is not None
        if is_new and (says := announced(log.fold, work.reached)):
            work.done.announced.append(f"{campaign}: {says}")
    work.done.problems += strangers(calendar_of(work.deployment, log.fold), listed)


def _close_some(work: Work, epochs: Epochs) -> bool:
    """Close the windows that are due, as many as one graph takes; return whether a window was closed.

    If segments turn out to be too few for a batch, the segments wait again, and need a later window that ends within
    their grace. So a window that ends after the grace of a batch's segments is not closed before this batch is
    shuffled.
    """
    fold = work.logs.known(epochs.campaign)
    rule, closed = rule_of(work.deployment, epochs, fold), 0
    if next_window(fold.closed, fold.waiting.values(), _left(work, fold), rule, work.now) is None:
        # Another run's decision can make a window due later; the next run closes this window.
        return False
    before: datetime | None = None
    while closed < MOST_TOGETHER and (made := _close(work, epochs, before)) is not None:
        closed += 1
        ends = [rule.calendar.grace_ends(one.window) for batch in made for one in batch.all_segments]
        before = min([*ends, *([] if before is None else [before])], default=None)
    return closed > 0


def _left(work: Work, fold: Fold) -> list[Listed]:
    """Return those listed manifests that no window has taken since they were listed."""
    files = fold.files
    return [one for one in work.listed[fold.campaign] if files.isdisjoint(one.files)]


def _close(work: Work, epochs: Epochs, before: datetime | None) -> list[Batched] | None:
    """Close the next due window, if it ends before a moment; return its batches, or None if no window closed."""
    campaign = epochs.campaign
    log = work.of("shuffle", campaign)
    chosen: list[tuple[Closed, list[str]]] = []

    def wanted(fold: Fold) -> Decision | None:
        rule = rule_of(work.deployment, epochs, fold)
        closing = closed_next(work.deployment, fold, _left(work, fold), rule, work.now, before)
        if closing is None:
            return None
        chosen[:] = [closing]
        work.say(f"{campaign}: closing {window_text(closing[0].window)}")
        return closing[0]

    if log.decide(wanted, work.now) is None:
        return None
    ((entry, aside),) = chosen
    work.done.closed.append(f"{campaign}/{entry.window}")
    work.done.problems += aside
    return [log.fold.batches[f"{entry.window}-{file}"] for file in entry.batches]


def _follow(work: Work, epochs: Epochs) -> None:
    """Publish the campaign's next epoch if the deployment file plans epochs and anything has changed."""
    part = work.deployment.file.next_epoch.get(epochs.campaign)
    if part is None or work.ahead:
        # A wrong clock must not begin an epoch, because a new epoch ends the epoch before.
        return
    try:
        # The imported modules plan mechanisms and read keys, and a party that only runs jobs may lack packages for
        # that.
        from pipelines.epochs.next_epoch import follow
        from pipelines.epochs.tracked_items import waiting
    except ModuleNotFoundError as error:
        said = f"package {error.name} is not installed here: set next_epoch where the analyzer runs"
        work.done.problems.append(f"{epochs.campaign}: no next epoch: {said}")
        return
    with work.contained(f"{epochs.campaign}: no next epoch"):
        before = len(waiting(epochs))
        fold = work.logs.known(epochs.campaign)
        published = follow(fold, work.deployment, epochs, part, work.now, work.clock, work.say)
        if published is not None:
            work.done.published.append(f"{epochs.campaign}/{published.epoch}")
        if part.review and (found := len(waiting(epochs)) - before) > 0:
            work.done.review.append(f"{epochs.campaign}: {found:,}")


def _require_listed(work: Work, epochs: Epochs) -> None:
    """Report a campaign whose clients do not count the windows in force, because its newest file lists others."""
    campaign, part = epochs.newest[1], epochs.collection.epochs[-1]
    if not work.deployment.shuffles or f"{campaign.id}/{campaign.epoch + 1}" in work.done.published:
        return
    begun = max(work.reached, part.begins)
    with work.contained(campaign.id):
        listed_until(campaign, calendar_of(work.deployment, work.logs.known(campaign.id)).at(begun).tiling, begun)


def _delete(work: Work, epochs: Epochs) -> None:
    """Delete the files of batches that have passed all hops here, if retention does not keep them."""
    if work.deployment.file.retention == RetentionPart():
        return
    files = work.logs.known(epochs.campaign).files
    left = [one.window.start for one in work.listed.get(epochs.campaign, ()) if one.path not in files]
    with work.contained(f"{epochs.campaign}: some old files were not deleted"):
        for what in delete_old(work.logs, work.deployment, epochs, min(left, default=None), work.now):
            work.done.deleted.append(what)
