"""Run the next hops of each batch: a hop is carried out as an attempt, and is done once the log says so.

Batches that wait for the same hop share one graph, because an engine takes long to start each graph. The attempts of a
graph are entered into the log one after the other, in the order of their windows. If two batches hold copies of one
report, the shuffle of the later batch drops its copy. So a later shuffle becomes an output only if the earlier shuffle
has become an output.
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
"""The number of reports in one graph: once its batches hold this many, further batches wait for the next graph."""


def advance_all(work: Work, epochs: Epochs, stated: Stated, failed: set[str]) -> None:
    """Run the next hops of every batch, hop by hop, except batches that failed before in this run.

    Batches that wait for the same hop share one graph. If the graph fails, each of its batches is tried again in a
    graph of its own.
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
    """Return a campaign's batches that have not passed every hop here, oldest first, also those shuffled elsewhere."""
    # If the log as last read leaves no hop to run, it is not read again. Otherwise the log is read again, because
    # another run may have done the hops meanwhile.
    return _undone(work, epochs, stated, work.logs.known(epochs.campaign)) and _undone(
        work, epochs, stated, work.logs.read(epochs.campaign)
    )


def _undone(work: Work, epochs: Epochs, stated: Stated, fold: Fold) -> list[Batch]:
    parties = work.deployment.file.parties
    batches = fold.made_batches if work.deployment.shuffles else shuffled_elsewhere(epochs.campaign, stated)
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
    """Plan a hop of the oldest batches that wait for this hop, for as many batches as one graph takes.

    Args:
        alone: names of batches that must not share a graph.
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
    """Plan a hop of a batch if this hop is next and has its input; log each hop that has nothing to do as passed."""
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
        # The log entry tells every reader that the batch has passed the hop.
        passed = Finished(batch=batch.name, hop=step.hop)
        work.of(step.hop, batch.campaign).decide(partial(_finished, passed), work.now)
    if step is None or step.hop != hop:
        return None
    log = work.of(hop, batch.campaign)
    if hop == "shuffle" and (aside := _faults(task)):
        if log.decide(partial(_given_back, GivenBack(batch=batch.name, aside=aside)), work.now) is not None:
            work.done.problems += said_aside(aside)
            if campaign.noise is not None:
                work.done.problems.append(
                    f"{batch.campaign}/{batch.name}: reports of its whole segments name this window, so the later "
                    "batch that they join counts them as other_window, and they are lost"
                )
        return None
    if hop == "shuffle":
        # Another run may have stopped after the log entry of an earlier batch and before publishing its files, which
        # this shuffle reads.
        others = {*earlier(work.deployment, fold, fold.batches[batch.name])}
        work.done.problems += publish_missing(work.deployment, log, others, work.now)
    return attempt(task, hop, new_attempt(work.deployment, log.party, batch, hop))


def _faults(task: Task) -> dict[str, str]:
    """Return the fault of each segment of a batch that no longer matches its manifest."""
    segments = task.fold.batches[task.batch.name].all_segments
    found = {segment.path: fault_in(task.deployment, segment) for segment in segments}
    return {path: fault for path, fault in found.items() if fault is not None}


def _carry_out(work: Work, epochs: Epochs, failed: set[str], attempts: Sequence[Attempt]) -> Collection[str]:
    """Carry out attempts that share a graph, and enter the attempts that become outputs into the log, in order.

    Returns:
        Names of batches to try again, each in a graph of its own.
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
                    # One batch may have caused the failure, and trying each batch alone shows which one.
                    work.say(f"{epochs.campaign}: {hop} failed, and is tried for each batch alone: {told(error)}")
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
                # If `_is_output` raised an exception, the log may already name the attempt as the output, so its files
                # are kept.
                storage.remove_directory(one.directory)
            if hop == "shuffle" and outcome.failure is not None:
                # Later attempts dropped their copies of reports that the failed batch holds, so the later batches must
                # be shuffled again.
                alone = names
                break
    for one in attempts[tried:]:
        storage.remove_directory(one.directory)
    return alone


def _charge_lacking(work: Work, epochs: Epochs, hop: HopName) -> None:
    """Enter missing charges into the ledger before each release: the ledger may have been restored meanwhile."""
    if hop in CHARGING and work.deployment.ledger is not None:
        log = work.of(hop, epochs.campaign)
        name_ledger(work.deployment, log, work.now)
        said = charge_lacking(work.deployment, epochs, work.logs.read(epochs.campaign), work.clock)
        work.done.problems += [one for one in said if one not in work.done.problems]
        follow_logs(work.deployment, work.logs, epochs.campaign)


def _is_output(work: Work, one: Attempt, made: Outcome, before: Mapping[int, Attempt]) -> bool:
    """Enter an attempt into the log as the output of its hop, and publish it; return whether it became the output.

    Args:
        before: the earlier attempts of the graph that became outputs, by their number in the graph.
    """
    batch, hop = one.task.batch, one.hop
    log = work.of(hop, batch.campaign)
    if made.failure is not None:
        if hop in log.read().hops_of(batch.name):
            # Another run finished this hop first, and removed the files of this attempt.
            return False
        raise made.failure
    if any(number not in before or stream not in _forwarded(log, before[number]) for stream, number in made.lost):
        # The attempt dropped copies of reports that the earlier batch then did not forward, so its batch is shuffled
        # again.
        return False
    if isinstance(made.summary, Exception):
        # Too few reports of the batch can be forwarded.
        log.decide(partial(_given_back, GivenBack(batch=batch.name)), work.now)
        return False
    finished = Finished(batch=batch.name, hop=hop, folder=one.directory.rpartition("/")[2], summary=made.summary.data())
    compared = {each.task.batch.name for each in before.values()}

    def wanted(fold: Fold) -> Finished | None:
        if hop in CHARGING:
            require_charged(work.deployment, fold, finished.summary or {})
        return _finished(finished, fold) if hop != "shuffle" or _is_compared(one.task, compared, fold) else None

    if log.decide(wanted, work.now) is None:
        # Another run finished this batch first, or finished a batch that must be compared with this batch, which is
        # then tried again.
        return False
    if hop in CHARGING:
        follow_logs(work.deployment, work.logs, batch.campaign)
    publish(work.deployment, log, batch, hop, work.now)
    _said(work, one.task, hop, made.summary, made.problem)
    work.done.hops.append(f"{batch.campaign}/{batch.name} {hop}")
    return True


def _forwarded(log: Log, one: Attempt) -> Collection[Stream]:
    """Return the streams that a batch forwarded whole; it leaves reports of small public strata out."""
    streams = log.fold.hops_of(one.task.batch.name)[one.hop].counts.streams
    return [stream for stream, counts in streams.items() if not counts.rejected.get("small_atom")]


def _said(work: Work, task: Task, hop: HopName, summary: HopSummary, problem: str) -> None:
    """Report a new result, or a hop that gave none, but do not report again the later hop that reads its output."""
    where = f"{task.batch.campaign}/{task.batch.name}"
    work.done.problems += [f"{where}: {problem}"] if problem else []
    if hop == "analyze" and not problem and not is_withheld(summary):
        work.done.results.append(f"{task.batch.campaign}/{task.batch.window}")
    if is_withheld(summary) and not (hop == "discover" and "aux-server" in work.deployment.file.parties):
        work.done.problems.append(f"{where}: {sentence(task.campaign, summary)}")


def _finished(finished: Finished, fold: Fold) -> Finished | None:
    """Return the entry if the log allows it: the hop is not done yet, and the batch was not given back."""
    made = fold.batches.get(finished.batch)
    stands = finished.hop != "shuffle" or (made is not None and not made.given_back)
    return finished if stands and finished.hop not in fold.hops_of(finished.batch) else None


def _is_compared(task: Task, others: set[str], fold: Fold) -> bool:
    """Return whether a shuffle was compared with every shuffled batch that may have copies of its reports.

    Args:
        others: the batches of the shuffle's graph that are done.
    """
    made = task.fold.batches[task.batch.name]
    return {*earlier(task.deployment, task.fold, made)} | others >= {*earlier(task.deployment, fold, made)}


def _given_back(back: GivenBack, fold: Fold) -> GivenBack | None:
    return back if fold.is_undone(back.batch) else None
