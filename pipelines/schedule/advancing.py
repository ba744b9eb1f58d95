"""Take each batch as far as it goes: a hop is an attempt, and done once the log says so.

Batches that wait for the same hop go through one graph, because an engine takes long to begin one. Of a graph the log
takes in one attempt after the other, in the order of their windows: a shuffle is an output only if those before it are
to which it lost copies of a report.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from hushcount.campaigns.campaign import Stream
from hushcount.clock import MACHINE
from hushcount.errors import HushcountError
from pipelines.deployment.campaigns import Epochs
from pipelines.files import storage
from pipelines.files.orders import MOST_TOGETHER
from pipelines.files.storage_errors import told
from pipelines.handover.hops import CHAIN, CHARGING, HopName, hop_names
from pipelines.handover.paths import Batch
from pipelines.jobs.together import BatchJob, Outcome
from pipelines.log.entries import Finished, GivenBack
from pipelines.log.fold import Fold
from pipelines.log.ledger_check import charge_lacking, follow_logs, name_ledger, require_charged
from pipelines.log.log import Log
from pipelines.outputs.summary import HopSummary
from pipelines.outputs.withheld import is_withheld, sentence
from pipelines.schedule.attempts import Attempt, attempt, carry_out
from pipelines.schedule.handed import Stated, shuffled_elsewhere
from pipelines.schedule.inputs import earlier
from pipelines.schedule.publishing import new_attempt, publish, publish_missing
from pipelines.schedule.tasks import Task, next_step
from pipelines.schedule.work import Work
from pipelines.windows.intake import fault_in, said_aside

_MOST_REPORTS = 1 << 22
"""Of the batches in one graph: a batch after so many waits for the next."""


def advance_all(work: Work, epochs: Epochs, stated: Stated, failed: set[str]) -> None:
    """Take every batch as far as it goes, except those that failed before in this run; hop by hop.

    Batches that wait for the same hop share its graph. If that fails, each is tried by itself.
    """
    for hop in CHAIN:
        alone: set[str] = set()
        while attempts := _attempts(work, epochs, stated, failed, hop, alone):
            alike: dict[Any, list[Attempt]] = {}
            for one in attempts:
                alike.setdefault(one.alike, []).append(one)
            for group in alike.values():
                alone.update(_carry_out(work, epochs, failed, group))


def _batches(work: Work, epochs: Epochs, stated: Stated) -> list[Batch]:
    """Return the batches of a campaign that a hop here has not passed, oldest first: made here, or stated elsewhere."""
    # A look with nothing to do reads nothing again; else another run may have done it since.
    return _undone(work, epochs, stated, work.logs.known(epochs.campaign)) and _undone(
        work, epochs, stated, work.logs.read(epochs.campaign)
    )


def _undone(work: Work, epochs: Epochs, stated: Stated, fold: Fold) -> list[Batch]:
    parties = work.deployment.file.parties
    batches = fold.made_batches if work.shuffles else shuffled_elsewhere(epochs.campaign, stated)
    campaigns = epochs.campaigns
    return [
        batch
        for batch in batches
        if batch.file not in campaigns
        or not fold.hops_of(batch.name).keys() >= set(hop_names(campaigns[batch.file], parties))
    ]


def _attempts(
    work: Work, epochs: Epochs, stated: Stated, failed: set[str], hop: HopName, alone: set[str]
) -> list[Attempt]:
    """Plan a hop of the oldest batches that wait for it, as many as one graph takes.

    Args:
        alone: names of batches that share no graph.
    """
    found, reports = list[Attempt](), 0
    for batch in _batches(work, epochs, stated):
        if batch.name in failed:
            continue
        if found and {batch.name, found[-1].task.batch.name} & alone:
            break
        failed.add(batch.name)
        with work.contained(f"{batch.campaign}/{batch.name}"):
            if (planned := _attempt(work, epochs, stated, batch, hop)) is not None:
                found.append(planned)
                reports += planned.planned.records if isinstance(planned.planned, BatchJob) else 0
            failed.remove(batch.name)
        if len(found) == MOST_TOGETHER or reports >= _MOST_REPORTS:
            break
    return found


def _attempt(work: Work, epochs: Epochs, stated: Stated, batch: Batch, hop: HopName) -> Attempt | None:
    """Plan a hop of a batch if it is next, and its input is there; a hop that has nothing to do is passed."""
    if batch.file not in epochs.files:
        raise HushcountError(f"its campaign file is not among those of {work.deployment.campaigns / epochs.campaign}")
    path, campaign = epochs.files[batch.file]
    while True:
        fold = work.logs.known(epochs.campaign)
        task = Task(work.deployment, campaign, path, batch, fold, work.engine, work.console, work.clock, stated)
        if (made := fold.batches.get(batch.name)) is not None and made.given_back:
            return None
        step = next_step(task)
        if step is None or not step.passes:
            break
        # Every reader then knows that the batch has passed the hop.
        passed = Finished(batch=batch.name, hop=step.hop)
        work.of(step.hop, batch.campaign).decide(partial(_finished, passed), work.now)
    if step is None or step.hop != hop:
        return None
    log = work.of(hop, batch.campaign)
    if hop == "shuffle" and (aside := _faults(task)):
        if log.decide(partial(_given_back, GivenBack(batch=batch.name, aside=aside)), work.now) is not None:
            work.done.problems += said_aside(aside)
        return None
    if hop == "shuffle":
        # Another run may have died, or sleep, between the entry of an earlier batch and its files.
        others = {*earlier(work.deployment, fold, fold.batches[batch.name])}
        work.done.problems += publish_missing(work.deployment, log, others, work.now)
    return attempt(task, hop, new_attempt(work.deployment, log.party, batch, hop))


def _faults(task: Task) -> dict[str, str]:
    """Return what is wrong with each segment of a batch that is not as its manifest says any more."""
    segments = task.fold.batches[task.batch.name].all_segments
    found = {segment.path: fault_in(task.deployment, segment) for segment in segments}
    return {path: fault for path, fault in found.items() if fault is not None}


def _carry_out(work: Work, epochs: Epochs, failed: set[str], attempts: Sequence[Attempt]) -> Collection[str]:
    """Carry out attempts that share a graph, and let the log say of each whether it is the output, in their order.

    Returns:
        Names of batches that are to be tried by themselves.
    """
    hop, names = attempts[0].hop, [one.task.batch.name for one in attempts]
    began, outputs, alone, tried = MACHINE.steady(), dict[int, Attempt](), list[str](), 0
    for name in names:
        work.say(f"{epochs.campaign}/{name}: {hop}")
    with closing(carry_out(attempts)) as made:
        for number, one in enumerate(attempts):
            try:
                _charge_lacking(work, epochs, hop)
                outcome = next(made)
            except Exception as error:
                if len(attempts) > 1:
                    # One of them may be at fault: each by itself will show which.
                    work.say(f"{epochs.campaign}: {hop} failed, and is tried for each batch: {told(error)}")
                    alone = names
                    break
                outcome = Outcome(error)
            tried, is_output = number + 1, None
            failed.add(names[number])
            with work.contained(f"{epochs.campaign}/{names[number]}"):
                is_output = _is_output(work, one, outcome, outputs)
                failed.remove(names[number])
            if is_output:
                outputs[number] = one
                work.done.seconds[f"{epochs.campaign}/{names[number]} {hop}"] = MACHINE.steady() - began
            elif is_output is False or outcome.failure is not None:
                # Of another that failed the log may say that it is the output.
                storage.remove_directory(one.directory)
            if hop == "shuffle" and outcome.failure is not None:
                # Those after it were compared with what it read, and lost copies to it.
                alone = names
                break
    for one in attempts[tried:]:
        storage.remove_directory(one.directory)
    return alone


def _charge_lacking(work: Work, epochs: Epochs, hop: HopName) -> None:
    """Charge what the ledger lacks, before each release: it may have been restored since the last one."""
    if hop in CHARGING and work.deployment.ledger is not None:
        log = work.of(hop, epochs.campaign)
        name_ledger(work.deployment, log, work.now)
        said = charge_lacking(work.deployment, epochs, work.logs.read(epochs.campaign), work.clock)
        work.done.problems += [one for one in said if one not in work.done.problems]
        follow_logs(work.deployment, work.logs, epochs.campaign)


def _is_output(work: Work, one: Attempt, made: Outcome, before: Mapping[int, Attempt]) -> bool:
    """Let the log say that an attempt is the output of its hop, and publish it; return whether it is.

    Args:
        before: attempts of the same graph that are outputs, by their number.
    """
    batch, hop = one.task.batch, one.hop
    log = work.of(hop, batch.campaign)
    if made.failure is not None:
        if hop in log.read().hops_of(batch.name):
            # Another run was faster, and removed the other attempts.
            return False
        raise made.failure
    if any(number not in before or stream not in _forwarded(log, before[number]) for stream, number in made.lost):
        # It lost copies of reports that nobody forwards: it is shuffled anew.
        return False
    if isinstance(made.summary, Exception):
        # Too few of its reports can be forwarded.
        log.decide(partial(_given_back, GivenBack(batch=batch.name)), work.now)
        return False
    finished = Finished(batch=batch.name, hop=hop, folder=one.directory.rpartition("/")[2], summary=made.summary.data())
    compared = {each.task.batch.name for each in before.values()}

    def wanted(fold: Fold) -> Finished | None:
        if hop in CHARGING:
            require_charged(work.deployment, fold, finished.summary or {})
        return _finished(finished, fold) if hop != "shuffle" or _is_compared(one.task, compared, fold) else None

    if log.decide(wanted, work.now) is None:
        # Another run was faster with this batch; or with one that it must be compared with: then once more.
        return False
    if hop in CHARGING:
        follow_logs(work.deployment, work.logs, batch.campaign)
    publish(work.deployment, log, batch, hop, work.now)
    _said(work, one.task, hop, made.summary, made.problem)
    work.done.hops.append(f"{batch.campaign}/{batch.name} {hop}")
    return True


def _forwarded(log: Log, one: Attempt) -> Collection[Stream]:
    return log.fold.hops_of(one.task.batch.name)[one.hop].counts.streams


def _said(work: Work, task: Task, hop: HopName, summary: HopSummary, problem: str) -> None:
    """Report a hop without a result; not again the hop that reads its output."""
    where = f"{task.batch.campaign}/{task.batch.name}"
    work.done.problems += [f"{where}: {problem}"] if problem else []
    if is_withheld(summary) and not (hop == "discover" and "aux-server" in work.deployment.file.parties):
        work.done.problems.append(f"{where}: {sentence(task.campaign, summary)}")


def _finished(finished: Finished, fold: Fold) -> Finished | None:
    """Return the entry, if the log allows it: the hop is not done, and its batch stands."""
    made = fold.batches.get(finished.batch)
    stands = finished.hop != "shuffle" or (made is not None and not made.given_back)
    return finished if stands and finished.hop not in fold.hops_of(finished.batch) else None


def _is_compared(task: Task, others: set[str], fold: Fold) -> bool:
    """Return whether a shuffle was compared with all that is shuffled by now and may have a copy of its reports.

    Args:
        others: the batches of its graph that are done.
    """
    made = task.fold.batches[task.batch.name]
    return {*earlier(task.deployment, task.fold, made)} | others >= {*earlier(task.deployment, fold, made)}


def _given_back(back: GivenBack, fold: Fold) -> GivenBack | None:
    return back if fold.is_undone(back.batch) else None
