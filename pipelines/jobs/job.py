"""The parts of every job: a plan, the plan's graph, and the step `finish`. `run` runs a plan (docs/adr/0028)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import ClassVar

import apache_beam as beam
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from hushcount.campaigns.campaign import Campaign
from pipelines.engine.runner import Engine
from pipelines.handover.parties import hand_on
from pipelines.handover.retired import RetiredBatch, account_retired
from pipelines.ledger.charging import Charging, cost_of
from pipelines.outputs.account import Hop
from pipelines.outputs.counting import take_counts
from pipelines.outputs.staging import Output, staged, write_summary
from pipelines.outputs.summary import HopSummary


@dataclass(frozen=True)
class Place:
    """Where a graph writes.

    Attributes:
        directory: the directory that becomes the output.
        spill: local directory for blocks between steps; None: blocks go through the engine.
    """

    directory: str
    spill: str | None = None


@dataclass(frozen=True)
class Finished:
    """What a job's `finish` returns.

    Attributes:
        summary: the summary of the output.
        folders: folders that the next party reads; None: no party reads this output.
        then: the job that continues in the same directory; None: the output is complete.
    """

    summary: HopSummary
    folders: tuple[str, ...] | None = ()
    then: Job | None = None


@dataclass(frozen=True, kw_only=True)
class Job(ABC):
    """A planned job, whose input was read and checked, but which has written nothing.

    Attributes:
        name: name of the job, for messages.
        charges: the kind of release that the ledger charges; None: this job releases nothing.
        campaign: the campaign of the reports.
        to: where the result goes.
    """

    name: ClassVar[str]
    charges: ClassVar[Hop | None] = None
    campaign: Campaign
    to: Output

    @property
    @abstractmethod
    def records(self) -> int:
        """Number of records that the graph reads."""

    def reserve(self) -> AbstractContextManager[Charging]:
        """Reserve the job's release in the ledger while a block runs."""
        return nullcontext(Charging())

    @abstractmethod
    def graph(self, pipeline: beam.Pipeline, place: Place) -> None:
        """Add the job's steps to an empty pipeline. No side effect."""

    @abstractmethod
    def finish(self, place: Place, sums: Mapping[str, int], charge: Charging) -> Finished:
        """Check the counts and files of the graph, and complete the output, except for its summary.

        Args:
            place: where the graph wrote.
            sums: counts of the graph, by name.
            charge: the reservation of the release.
        """


def run(job: Job | RetiredBatch, engine: Engine | None = None, console: Console | None = None) -> HopSummary:
    """Run a planned job: reserve its release, run its graph, finish, charge, and publish the output.

    Args:
        job: the plan.
        engine: the engine that runs the graph; Beam's embedded engine by default. Make the engine before the plan,
            because an engine sets the options of stores.
        console: where to show which job is at work.

    Returns:
        The summary as written.

    Raises:
        CountedRetired: the key of the batch was destroyed; the output counts its reports.
        HushcountError: the release exceeds the limit, the graph failed, or its results are not complete; the output is
            then not changed.
    """
    if isinstance(job, RetiredBatch):
        account_retired(job)
    engine, to = engine or Engine(), job.to
    with job.reserve() as charge, staged(to.out, to.overwrite, to.writer) as directory:
        finished = _run_graph(job, directory, charge, engine, console)
        while finished.then is not None:
            finished = _run_graph(finished.then, directory, charge, engine, console)
        return published(job, directory, finished, charge)


def published(job: Job, directory: str, finished: Finished, charge: Charging) -> HopSummary:
    """Charge the release of a finished job, and write its summary, which marks the output as complete."""
    summary = finished.summary
    if job.charges is not None:
        cost = cost_of(summary.stated, job.charges)
        summary = replace(summary, ledger=charge.commit(cost, summary.accepted))
    if finished.folders is None:
        return write_summary(directory, summary)
    return hand_on(directory, job.to, finished.folders, summary)


def _run_graph(job: Job, directory: str, charge: Charging, engine: Engine, console: Console | None) -> Finished:
    with engine.spill(directory) as spill:
        place = Place(directory, spill)
        with at_work(console, job.name, job.records), engine.pipeline(job.name) as pipeline:
            job.graph(pipeline, place)
        return job.finish(place, take_counts(directory), charge)


def at_work(console: Console | None, name: str, records: int) -> AbstractContextManager[object]:
    """Show on a terminal which job is at work, on how many records and for how long, while a block runs."""
    if console is None or not console.is_terminal:
        return nullcontext()
    progress = Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console)
    progress.add_task(f"{name}: {records:,} records", total=None)
    return progress
