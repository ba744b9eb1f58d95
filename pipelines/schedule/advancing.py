"""Take each batch as far as it goes: a hop is an attempt, and done once the log says so."""

from __future__ import annotations

import time

from hushcount.errors import HushcountError, NotYet
from pipelines.deployment.campaigns import Epochs
from pipelines.files import storage
from pipelines.handover.names import Batch
from pipelines.log.entries import Finished, GivenBack
from pipelines.log.fold import Fold
from pipelines.log.hops import CHARGING, HopName, hop_names
from pipelines.log.log import Log
from pipelines.outputs.minimum_batch import is_withheld, sentence
from pipelines.outputs.summary import HopSummary
from pipelines.schedule.charges import charge_lacking, follow_log, name_ledger, require_charged
from pipelines.schedule.handed import Stated, shuffled_elsewhere
from pipelines.schedule.hops import Task, carry_out, next_step
from pipelines.schedule.inputs import earlier
from pipelines.schedule.intake import fault_in, said_aside
from pipelines.schedule.publishing import new_attempt, publish
from pipelines.schedule.work import Work


def advance_all(work: Work, epochs: Epochs, stated: Stated, failed: set[str]) -> None:
    """Take every batch as far as it goes, except those that failed before in this run."""
    for batch in _batches(work, epochs, stated):
        if batch.name not in failed:
            failed.add(batch.name)
            with work.contained(f"{batch.campaign}/{batch.name}"):
                while _advance(work, epochs, stated, batch):
                    pass
                failed.remove(batch.name)


def _batches(work: Work, epochs: Epochs, stated: Stated) -> list[Batch]:
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


def _advance(work: Work, epochs: Epochs, stated: Stated, batch: Batch) -> bool:
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


def _attempt(work: Work, task: Task, hop: HopName, log: Log) -> bool:
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


def _said(work: Work, task: Task, hop: HopName, summary: HopSummary, problem: str) -> None:
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
