"""Attempts at hops: each attempt writes to its own directory, and the log says which attempt is the output."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from pipelines.files import storage
from pipelines.handover.hops import CHAIN, HopName, input_of
from pipelines.handover.parties import hand_on, signer_of
from pipelines.handover.retired import CountedRetired, RetiredBatch, account_retired
from pipelines.jobs.together import BatchJob, Outcome, on_engine, run_together
from pipelines.outputs.staging import Output, Writer, staged
from pipelines.outputs.summary import HopSummary
from pipelines.outputs.withheld import Withheld
from pipelines.schedule.handed import require_stated
from pipelines.schedule.tasks import PLANS, Task, left, require_keys
from pipelines.streaming.ordering import by_stream


@dataclass(frozen=True)
class Attempt:
    """An attempt to carry out a hop of a batch.

    Attributes:
        to: the directory of the attempt.
        planned: the job to run, or the outcome if there is no job to run.
    """

    task: Task
    hop: HopName
    to: Output
    planned: BatchJob | Outcome

    @property
    def directory(self) -> str:
        return self.to.out

    @property
    def alike(self) -> Any:
        """A value that is equal for all attempts that may share a graph."""
        return self.task.batch.file, self.planned.alike if isinstance(self.planned, BatchJob) else self.directory


def attempt(task: Task, hop: HopName, directory: str) -> Attempt:
    """Plan a hop that writes to the directory of an attempt.

    Raises:
        HushcountError: the hop's input cannot be read, or a key that this hop or a later hop needs is missing.
    """
    retired = require_keys(task, left(task, hop))
    role = CHAIN[hop].signer
    signer = None if role is None else signer_of(task.deployment.sign_with, role)
    to = Output(directory, writer=Writer(private=True, batch=task.batch.name), signer=signer)
    try:
        planned = PLANS[hop](task, to, retired)
        return Attempt(task, hop, to, _counted(planned) if isinstance(planned, RetiredBatch) else planned)
    except Withheld as few:
        return Attempt(task, hop, to, Outcome(_withheld(to, few)))


def carry_out(attempts: Sequence[Attempt]) -> Generator[Outcome, None, None]:
    """Carry out attempts that share a graph, and yield the outcome of each attempt, in their order.

    Raises:
        HushcountError: the graph failed.
    """
    jobs = [one.planned for one in attempts if isinstance(one.planned, BatchJob)]
    task = attempts[0].task
    itself = on_engine(task.engine, _console(attempts))
    with closing(run_together(jobs, by_stream(task.deployment, attempts[0].hop, itself))) as outcomes:
        for one in attempts:
            # An exception from the graph is a failure of all its attempts.
            yield _checked(one, one.planned if isinstance(one.planned, Outcome) else next(outcomes))


def _checked(one: Attempt, outcome: Outcome) -> Outcome:
    try:
        summary = outcome.summary
        if isinstance(summary, Withheld):
            summary = _withheld(one.to, summary)
        task = one.task
        source = input_of(one.hop, task.campaign.noise is not None)
        if isinstance(summary, HopSummary) and source is not None:
            # The input may have been exchanged since it was first checked, so the input is checked again.
            require_stated(task.stated, source, task.batch, summary.made_from, task.output(source))
    except Exception as error:
        return Outcome(error)
    return replace(outcome, summary=summary)


def _console(attempts: Sequence[Attempt]) -> Console | None:
    return None if attempts[0].hop == "discover" else attempts[0].task.console


def _withheld(to: Output, few: Withheld) -> HopSummary:
    # If a release or a mix is withheld, the files that the job had already written are not used.
    storage.remove_directory(to.out)
    with staged(to.out, False, to.writer) as directory:
        return hand_on(directory, to, ("reports" if few.summary.hop == "mix" else "bins",), few.summary)


def _counted(batch: RetiredBatch) -> Outcome:
    try:
        account_retired(batch)
    except CountedRetired as counted:
        said = f"{batch.retired}: {counted.reports:,} reports are counted as retired_key"
        return Outcome(counted.summary, problem=said)
