"""hushcount run: close the windows that are due, and take every batch as far as the parties that run here can.

Each decision is an entry of the log before anybody acts on it, so that a run may be killed anywhere, and any number of
runs may be at work at once: who finds that another was first reads on and decides anew (docs/adr/0043).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone

from rich.console import Console

from hushcount.errors import HushcountError, NotYet
from pipelines.deployment.campaigns import Epochs, read_epochs
from pipelines.deployment.settings import Deployment, Party, RetentionPart
from pipelines.engine.runner import Engine
from pipelines.files import storage
from pipelines.files.storage_errors import told
from pipelines.handover.names import Batch
from pipelines.log.closing import Listed
from pipelines.log.entries import Closed, Decision, Finished, GivenBack
from pipelines.log.fold import Fold
from pipelines.log.hops import CHAIN, CHARGING, HopName, hop_names
from pipelines.log.log import Log, Logs
from pipelines.log.waiting import unclaimed, waiting_of
from pipelines.outputs.minimum_batch import is_withheld, sentence
from pipelines.outputs.summary import HopSummary
from pipelines.schedule.charges import charge_lacking, follow_log, name_ledger, require_charged, require_named
from pipelines.schedule.clock import settled, told_time
from pipelines.schedule.handed import Stated, shuffled_elsewhere, stated_elsewhere
from pipelines.schedule.hops import Task, carry_out, earlier, next_step
from pipelines.schedule.intake import closed_next, fault_in, intake_of, rule_of, said_aside
from pipelines.schedule.lease import leased
from pipelines.schedule.publishing import new_attempt, publish, publish_missing, sweep, withdraw_deleted
from pipelines.schedule.report import Done
from pipelines.schedule.restoring import replace_log
from pipelines.schedule.retention import delete_old
from pipelines.schedule.stating import handed_on, overdue, receive, state
from pipelines.schedule.witnesses import There, missing_of, outputs_there

Say = Callable[[str], None]


@dataclass(frozen=True)
class Vouched:
    """What the operator vouches for, because no program can know it.

    Attributes:
        clock_is_right: that a clock that is far ahead of everything else is right.
        log_was_restored: that a log which lacks entries is lost, and a new one is to begin.
        ledger_was_lost: that the ledger which a log names is lost, and the one that is named now is in its place.
    """

    clock_is_right: bool = False
    log_was_restored: bool = False
    ledger_was_lost: bool = False


NOTHING = Vouched()


@dataclass(frozen=True)
class _Work:
    """What the steps of a run share.

    Attributes:
        now: the moment to work by: the clock's, unless that is far ahead.
        is_ahead: whether it is.
        listed: the manifests of a campaign that no closed window has taken in, by its id.
    """

    deployment: Deployment
    logs: Logs
    vouched: Vouched
    now: datetime
    is_ahead: bool
    listed: dict[str, tuple[Listed, ...]]
    done: Done
    engine: Engine
    console: Console | None
    say: Say

    @property
    def shuffles(self) -> bool:
        """Whether the shuffler runs here."""
        return "shuffler" in self.deployment.file.parties

    def of(self, hop: HopName, campaign: str) -> Log:
        """Return the log of the party that runs a hop."""
        return self.logs.of(CHAIN[hop].party, campaign)

    @contextmanager
    def contained(self, where: str) -> Iterator[None]:
        """Make a problem of whatever a block raises."""
        try:
            yield
        except Exception as error:
            self.done.problems.append(f"{where}: {told(error)}")


def run(
    deployment: Deployment,
    *,
    now: datetime | None = None,
    wait: bool = False,
    vouched: Vouched = NOTHING,
    console: Console | None = None,
    say: Say | None = None,
    logs: Logs | None = None,
) -> Done:
    """Do all that is due.

    Args:
        say: is told each step before it begins, and may raise what is no Exception to end the run there.
        wait: whether to wait for the end of another run.
        vouched: what the operator vouches for.
        logs: of the deployment, as an earlier look of this process has read them.

    Raises:
        AnotherRun: another run is at work.
        HushcountError: the store, the deployment or its campaigns cannot be used.
    """
    moment, done, logs = now or datetime.now(timezone.utc), Done(), logs or Logs(deployment)
    with leased(deployment, wait):
        campaigns, faults = read_epochs(deployment.campaigns)
        done.problems += [f"{campaign}: {fault}" for campaign, fault in faults.items()]
        engine = Engine(deployment.file.engine.runner, deployment.file.engine.options)
        through, listed = _looked(deployment, logs, campaigns, done)
        folds = [logs.read(epochs.campaign) for epochs in through]
        time_ = told_time(deployment, folds, [one for each in listed.values() for one in each], moment)
        there = _whole(deployment, logs, vouched, through, listed, time_.present, done)
        through = [epochs for epochs in through if epochs.campaign in there]
        folds = [logs.read(epochs.campaign) for epochs in through]
        time_ = settled(deployment, logs, folds, time_, confirmed=vouched.clock_is_right)
        done.problems += time_.problems
        is_ahead = time_.clock.is_far
        work = _Work(
            deployment, logs, vouched, time_.present, is_ahead, listed, done, engine, console, say or (lambda _: None)
        )  # fmt: skip
        if is_ahead and any(each for each in listed.values()) | any(fold.waiting for fold in folds):
            done.problems.append(time_.says)
        for epochs in through:
            with work.contained(epochs.campaign):
                _run_campaign(work, epochs, there[epochs.campaign])
        with work.contained("segments"):
            done.waiting += unclaimed(deployment, {epochs.campaign for epochs in campaigns} | faults.keys()).values()
    return done


def _looked(
    deployment: Deployment, logs: Logs, campaigns: Sequence[Epochs], done: Done
) -> tuple[list[Epochs], dict[str, tuple[Listed, ...]]]:
    """Read the log and list the manifests of each campaign; return the campaigns of which both could be done."""
    through: list[Epochs] = []
    listed: dict[str, tuple[Listed, ...]] = {}
    for epochs in campaigns:
        try:
            fold = logs.read(epochs.campaign)
            if "shuffler" in deployment.file.parties:
                intake = intake_of(deployment, fold)
                done.problems += intake.problems
                listed[epochs.campaign] = intake.listed
            through.append(epochs)
        except Exception as error:
            done.problems.append(f"{epochs.campaign}: {told(error)}")
    return through, listed


def _whole(
    deployment: Deployment,
    logs: Logs,
    vouched: Vouched,
    campaigns: Sequence[Epochs],
    listed: dict[str, tuple[Listed, ...]],
    present: datetime,
    done: Done,
) -> dict[str, dict[Party, There]]:
    """Return the outputs in the store, by party, of each campaign with logs that lack nothing of which anything speaks.

    Logs that lack something are replaced, if the operator says that they are lost.
    """
    found: dict[str, dict[Party, There]] = {}
    for campaign in (epochs.campaign for epochs in campaigns):
        try:
            parties = {}
            for log in [logs.of(party, campaign) for party in deployment.file.parties]:
                there = parties[log.party] = outputs_there(deployment, log)
                while missing := missing_of(deployment, log, there):
                    if not vouched.log_was_restored:
                        raise HushcountError(missing.says(log))
                    manifests = listed.get(campaign, ()) if log.party == "shuffler" else ()
                    if (said := replace_log(deployment, log, missing, manifests, present)) is not None:
                        done.dropped.append(said)
            found[campaign] = parties
        except Exception as error:
            done.problems.append(f"{campaign}: {told(error)}")
    return found


def _run_campaign(work: _Work, epochs: Epochs, there: dict[Party, There]) -> None:
    campaign, deployment = epochs.campaign, work.deployment
    before = work.logs.read(campaign)
    logs = [work.logs.of(party, campaign) for party in deployment.file.parties]
    for log in logs:
        fold = log.fold
        withdraw_deleted(deployment, log, there[log.party])
        work.done.problems += publish_missing(deployment, log, _unpublished(log, there[log.party]), work.now)
        sweep(deployment, log, fold)
        state(deployment, log)
    said = [log.head for log in logs]
    stated, problems = stated_elsewhere(deployment, epochs, before)
    work.done.problems += problems
    for log in logs:
        if work.vouched.ledger_was_lost and log.fold.ledger is not None:
            name_ledger(deployment, log, work.now, was_lost=True)
        require_named(deployment, log.fold)
    if deployment.ledger is not None:
        work.done.problems += charge_lacking(deployment, epochs, work.logs.read(campaign))
    failed: set[str] = set()
    # Before a window closes: what is left out of a batch can join the next one.
    _advance_all(work, epochs, stated, failed)
    while work.shuffles and _close(work, epochs):
        # Before the next one closes: what turns out to be too little for a batch must find a window that is open.
        _advance_all(work, epochs, stated, failed)
    with work.contained(f"{campaign}: not all estimates were written"):
        _export(work, epochs, before)
    _follow(work, epochs)
    for log, head in zip(logs, said, strict=True):
        if log.read().heads[log.party] != head:
            state(deployment, log)
        with work.contained(f"{campaign}: receipts were not read"):
            work.done.problems += receive(deployment, log, work.now)
    _delete(work, epochs)
    fold = work.logs.read(campaign)
    work.done.problems += overdue(deployment, fold, handed_on(deployment, fold), stated.values(), work.now)
    for path, one in sorted(fold.dropped.items()):
        if path not in before.dropped:
            what = "are too late, and in no result" if one.state == "too_late" else "are given up"
            work.done.dropped.append(f"{path}: {one.reports:,} reports {what}: {one.reason}")
    if work.shuffles:
        waiting = waiting_of(fold, epochs.campaigns, deployment.windows, work.now)
        work.done.waiting += [one.says for one in waiting]


def _unpublished(log: Log, there: There) -> set[str]:
    """Return the batches with a hop of a party that is done and has no summary in the store."""
    return {
        name
        for name, hops in log.fold.done.items()
        for hop, done in hops.items()
        if hop in there and name not in there[hop] and not (done.folder is None or done.gone)
        if not log.fold.is_deleting(CHAIN[hop].folder, name)
    }


def _close(work: _Work, epochs: Epochs) -> bool:
    """Close the next window that is due; return whether there was one."""
    campaign = epochs.campaign
    log, rule = work.of("shuffle", campaign), rule_of(work.deployment, epochs)
    chosen: list[tuple[Closed, list[str]]] = []

    def wanted(fold: Fold) -> Decision | None:
        files = fold.files
        listed = [one for one in work.listed[campaign] if files.isdisjoint(one.files)]
        closing = closed_next(work.deployment, fold, listed, rule, work.now)
        if closing is None:
            return None
        chosen[:] = [closing]
        work.say(f"{campaign}: closing {closing[0].window}")
        return closing[0]

    if log.decide(wanted, work.now) is None:
        return False
    ((entry, aside),) = chosen
    work.done.closed.append(f"{campaign}/{entry.window}")
    work.done.problems += aside
    return True


def _advance_all(work: _Work, epochs: Epochs, stated: Stated, failed: set[str]) -> None:
    """Take every batch as far as it goes, except those that failed before in this run."""
    for batch in _batches(work, epochs, stated):
        if batch.name not in failed:
            failed.add(batch.name)
            with work.contained(f"{batch.campaign}/{batch.name}"):
                while _advance(work, epochs, stated, batch):
                    pass
                failed.remove(batch.name)


def _batches(work: _Work, epochs: Epochs, stated: Stated) -> list[Batch]:
    """Return the batches of a campaign that a hop here has not passed, oldest first: made here, or stated elsewhere."""
    fold, parties = work.logs.read(epochs.campaign), work.deployment.file.parties
    batches = fold.made_batches if work.shuffles else shuffled_elsewhere(epochs.campaign, stated)
    campaigns = epochs.campaigns
    return [
        batch
        for batch in batches
        if batch.file not in campaigns
        or not fold.hops_of(batch.name).keys() >= set(hop_names(campaigns[batch.file], parties))
    ]


def _advance(work: _Work, epochs: Epochs, stated: Stated, batch: Batch) -> bool:
    """Run the next hop of a batch, if there is one and its input is there; return whether it is done now."""
    if batch.file not in epochs.files:
        raise HushcountError(f"its campaign file is not among those of {work.deployment.campaigns / epochs.campaign}")
    path, campaign = epochs.files[batch.file]
    fold = work.logs.read(epochs.campaign)
    if batch.name in fold.batches and fold.batches[batch.name].given_back:
        return False
    task = Task(work.deployment, campaign, path, batch, fold, work.engine, work.console, stated)
    step = next_step(task)
    if step is None:
        return False
    log = work.of(step.hop, batch.campaign)
    if step.passes:
        # Every reader then knows that the batch has passed the hop.
        log.decide(lambda fold: _finished(fold, Finished(batch=batch.name, hop=step.hop)), work.now)
        return True
    if step.hop == "shuffle" and (aside := _faults(task)):
        work.done.problems += said_aside(aside)
        log.decide(lambda fold: _given_back(fold, GivenBack(batch=batch.name, aside=aside)), work.now)
        return False
    if step.hop in CHARGING and work.deployment.ledger is not None:
        name_ledger(work.deployment, log, work.now)
        # The ledger may have been restored since the last release.
        said = charge_lacking(work.deployment, epochs, work.logs.read(epochs.campaign))
        work.done.problems += [one for one in said if one not in work.done.problems]
        follow_log(work.deployment, log)
    return _attempt(work, task, step.hop, log)


def _faults(task: Task) -> dict[str, str]:
    """Return what is wrong with each segment of a batch that is not as its manifest says any more."""
    segments = task.fold.batches[task.batch.name].all_segments
    found = {segment.path: fault_in(task.deployment, segment) for segment in segments}
    return {path: fault for path, fault in found.items() if fault is not None}


def _attempt(work: _Work, task: Task, hop: HopName, log: Log) -> bool:
    """Carry out a hop, and let the log say whether it is the output; return whether the hop is done."""
    batch, name = task.batch, f"{task.batch.campaign}/{task.batch.name} {hop}"
    work.say(f"{batch.campaign}/{batch.name}: {hop}")
    began, attempt = time.monotonic(), new_attempt(work.deployment, log.party, batch, hop)
    try:
        summary, problem = carry_out(task, hop, attempt)
    except NotYet:
        storage.remove_directory(attempt)
        log.decide(lambda fold: _given_back(fold, GivenBack(batch=batch.name)), work.now)
        return False
    except Exception:
        storage.remove_directory(attempt)
        if hop in log.read().hops_of(batch.name):
            # Another run was faster, and removed the other attempts.
            return True
        raise
    finished = Finished(batch=batch.name, hop=hop, folder=attempt.rpartition("/")[2], summary=summary.data())

    def wanted(fold: Fold) -> Finished | None:
        if hop in CHARGING:
            require_charged(work.deployment, fold, finished.summary or {})
        return _finished(fold, finished) if _still_compared(task, hop, fold) else None

    entry = log.decide(wanted, work.now)
    if entry is None:
        storage.remove_directory(attempt)
        # Another run was faster with this batch; or with one that it must be compared with: then once more.
        return hop in log.fold.hops_of(batch.name) or log.fold.is_undone(batch.name)
    if hop in CHARGING:
        follow_log(work.deployment, log)
    publish(work.deployment, log, batch, hop, work.now)
    _said(work, task, hop, summary, problem)
    work.done.hops.append(name)
    work.done.seconds[name] = time.monotonic() - began
    return True


def _said(work: _Work, task: Task, hop: HopName, summary: HopSummary, problem: str) -> None:
    """Report a hop without a result; not again the hop that reads its output."""
    where = f"{task.batch.campaign}/{task.batch.name}"
    work.done.problems += [f"{where}: {problem}"] if problem else []
    if is_withheld(summary) and not (hop == "discover" and "aux-server" in work.deployment.file.parties):
        work.done.problems.append(f"{where}: {sentence(task.campaign, summary)}")


def _finished(fold: Fold, finished: Finished) -> Finished | None:
    """Return the entry, if the log allows it: the hop is not done, and its batch stands."""
    made = fold.batches.get(finished.batch)
    stands = finished.hop != "shuffle" or (made is not None and not made.given_back)
    return finished if stands and finished.hop not in fold.hops_of(finished.batch) else None


def _still_compared(task: Task, hop: HopName, fold: Fold) -> bool:
    """Return whether a shuffle was compared with all that is shuffled by now and may have a copy of its reports."""
    if hop != "shuffle":
        return True
    made = task.fold.batches[task.batch.name]
    return {*earlier(task.deployment, task.fold, made)} >= {*earlier(task.deployment, fold, made)}


def _given_back(fold: Fold, back: GivenBack) -> GivenBack | None:
    return back if fold.is_undone(back.batch) else None


def _export(work: _Work, epochs: Epochs, before: Fold) -> None:
    """Write the estimates of new results into the data set, and those that it lacks."""
    if "analyzer" in work.deployment.file.parties:
        # It reads tables, which other parties need no package for.
        from pipelines.exports.store import keep_up

        fold = work.logs.read(epochs.campaign)
        work.done.problems += keep_up(fold, work.deployment, epochs, before.analyzed, work.say)


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
    with work.contained(f"{epochs.campaign}: no next epoch"):
        before = len(waiting(epochs))
        published = follow(work.logs.read(epochs.campaign), work.deployment, epochs, part, work.now)
        if published is not None:
            work.done.published.append(f"{epochs.campaign}/{published.epoch}")
        if part.review and (found := len(waiting(epochs)) - before) > 0:
            work.done.review.append(f"{epochs.campaign}: {found:,}")


def _delete(work: _Work, epochs: Epochs) -> None:
    """Delete what retention does not keep of the batches that all hops here have passed."""
    if work.deployment.file.retention == RetentionPart():
        return
    files = work.logs.read(epochs.campaign).files
    left = [one.window.start for one in work.listed.get(epochs.campaign, ()) if one.path not in files]
    with work.contained(f"{epochs.campaign}: not all that is old was deleted"):
        for what in delete_old(work.logs, work.deployment, epochs, min(left, default=None), work.now):
            work.done.deleted.append(what)
