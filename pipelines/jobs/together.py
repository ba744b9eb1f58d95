"""Run many batches through one graph.

A batch's records are in the Beam window with the number of the batch's order, and each batch has its own directory. An
engine takes seconds to start a job, or minutes if it starts machines. Because an engine starts slowly, batches that
wait at the same time share one graph.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import apache_beam as beam
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import WindowFn
from rich.console import Console

from hushcount import __version__
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.errors import NotYet
from pipelines.engine.group_through_files import places
from pipelines.engine.runner import Engine
from pipelines.files import storage
from pipelines.files.block_files import BlockFile, total_records
from pipelines.files.blocks import ReadFiles
from pipelines.files.orders import MOST_TOGETHER, EachInItsWindow, FolderOf, Listed, OfOrder, Order, Orders, together
from pipelines.jobs.job import Job, Place, at_work, published
from pipelines.ledger.charging import Charging
from pipelines.outputs.counting import WriteCounts, take_counts
from pipelines.outputs.counts import WRITTEN, label
from pipelines.outputs.summary import HopSummary

Lost = frozenset[tuple[Stream, int]]
"""Pairs of a stream and the number of an earlier batch in the same graph."""


@dataclass(frozen=True)
class Where:
    """What the steps of a graph need to know about the graph.

    Attributes:
        orders: the order of each batch.
        records: number of records of each input, by its name, for all batches together; empty: not known.
        spill: local directory for blocks between steps; None: blocks go through the engine.
        meets: windows that bring batches together; None: the graph has one batch, in the global window.
        open: whether others can see files before the output is complete. If others can see files, no file is written
            before the minimum batch is reached.
        places: number of places to spread a batch over, if the batch's number of records is not known.
    """

    orders: Orders
    records: Mapping[str, int] = field(default_factory=dict)
    spill: str | None = None
    meets: WindowFn | None = None
    open: bool = False
    places: int | None = None

    def places_of(self, each: int, *inputs: str) -> int:
        """Return the number of places to spread these inputs over, for at most `each` records in a place on average."""
        known = sum(self.records.get(name, 0) for name in inputs)
        return self.places or places(known, each, self.spill)

    def read(self, campaign: Campaign, record_bytes: int, strip: int = 0) -> ReadFiles:
        """Return the step that reads an input.

        If `places` is set, the graph never ends, so it must not fail if the file of one batch cannot be read.
        """
        return ReadFiles(campaign.fingerprint, record_bytes, strip, leaves_out=self.places is not None)

    def counted(self, counts: PCollection, of: str) -> PCollection:
        """(name, number) in, (number of the order, (`of`:name, number)) out, in the windows of `meets`."""
        named = (
            counts
            | f"label {of}" >> beam.Map(label, of).with_output_types(tuple[str, int])
            | f"order of {of}" >> beam.ParDo(OfOrder())
        )
        return named if self.meets is None else named | f"{of} of all" >> beam.WindowInto(self.meets)

    def labelled(self, counts: PCollection, of: str) -> PCollection:
        """(number of the order, (name, number)) in, (number of the order, (`of`:name, number)) out."""
        return counts | f"label numbered {of}" >> beam.Map(_label, of).with_output_types(Counted)

    def written(self, records: PCollection, what: str) -> PCollection:
        """(number of the order, number of records) in, counts of written `what` out, in the windows of `meets`."""
        named = records | f"written {what}" >> beam.Map(_written, what).with_output_types(Counted)
        return named if self.meets is None else named | f"written {what} of all" >> beam.WindowInto(self.meets)

    def folder(self, *names: str) -> FolderOf:
        """Return a function that returns the folder with these names in the directory of an order."""
        return FolderOf(self.orders, names)


Counted = tuple[int, tuple[str, int]]
"""The number of an order, and a count of this order as (name, number)."""


def _label(element: tuple[int, tuple[str, int]], of: str) -> tuple[int, tuple[str, int]]:
    return element[0], label(element[1], of)


def _written(element: tuple[int, int], what: str) -> tuple[int, tuple[str, int]]:
    return element[0], label((what, element[1]), WRITTEN)


@dataclass(frozen=True, kw_only=True)
class Steps(ABC):
    """What a graph does to the files of a batch. The steps depend on the campaign file, but not on the batch."""

    campaign: Campaign

    @property
    @abstractmethod
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs; a batch may lack some."""

    @property
    @abstractmethod
    def follows_from(self) -> tuple[bytes, ...]:
        """Everything that the steps depend on, besides the campaign file and the code."""

    @property
    def digest(self) -> str:
        """Digest of the steps; equal steps have the same digest in every process."""
        digest = hashlib.blake2b(digest_size=32)
        for part in (type(self).__name__.encode(), __version__.encode(), self.campaign.fingerprint, *self.follows_from):
            digest.update(len(part).to_bytes(8, "little") + part)
        return digest.hexdigest()

    @abstractmethod
    def add(self, files: Mapping[str, PCollection], where: Where) -> PCollection:
        """Add the steps to the files of each input; return all counts, as (number of the order, (name, number)).

        No side effect.
        """


@dataclass(frozen=True, kw_only=True)
class BatchJob(Job):
    """A job on the files of a batch, which can share one graph with many other jobs.

    Attributes:
        steps: the steps of the job's graph.
    """

    steps: Steps

    @property
    @abstractmethod
    def inputs(self) -> Mapping[str, list[BlockFile]]:
        """The files that the job reads, by the name of their input."""

    @property
    def alike(self) -> str:
        """Digest of the job's steps; jobs with equal digests may share a graph."""
        return self.steps.digest

    def order(self, directory: str) -> Order:
        """Return the order of this batch."""
        return Order(directory)

    def after(self, jobs: Sequence[BatchJob]) -> BatchJob:
        """Return this job without the input files that `jobs`, the jobs before it in the same graph, already read."""
        return self

    @property
    def most(self) -> int:
        """The most jobs with equal steps that one graph takes."""
        return MOST_TOGETHER

    def lost(self, sums: Mapping[str, int]) -> Lost:
        """Return which streams of earlier batches in the graph forward reports that this batch drops as copies."""
        return frozenset()

    @property
    def records(self) -> int:
        return sum(total_records(files) for files in self.inputs.values())

    def graph(self, pipeline: beam.Pipeline, place: Place) -> None:
        # A local directory becomes visible by a rename, but each object in a store is visible once it is written.
        seen = storage.is_remote(place.directory) and not self.to.writer.private
        add_graph([self], [place.directory], pipeline, place, seen)


def add_graph(
    jobs: Sequence[BatchJob], directories: Sequence[str], pipeline: beam.Pipeline, place: Place, seen: bool = False
) -> None:
    """Add the graph of one job, or of several with equal steps, to an empty pipeline.

    Args:
        directories: the directory of each job.
        place: where the files that the jobs share are written.
        seen: whether others can see files in the directories.
    """
    orders = Listed(tuple(job.order(directory) for job, directory in zip(jobs, directories, strict=True)))
    several, files, records = len(jobs) > 1, dict[str, PCollection](), dict[str, int]()
    for name in sorted({name for job in jobs for name in job.inputs}):
        listed = [(number, file) for number, job in enumerate(jobs) for file in job.inputs.get(name, ())]
        records[name] = total_records([file for _, file in listed])
        # A later step spreads the spans of files over the workers, so the list of files need not be spread.
        found = pipeline | f"files of {name}" >> beam.Create(
            listed if several else [file for _, file in listed], reshuffle=False
        )
        files[name] = found | f"orders of {name}" >> EachInItsWindow() if several else found
    where = Where(orders, records, place.spill, together() if several else None, seen)
    jobs[0].steps.add(files, where) | "counts" >> WriteCounts(where.folder())


@dataclass(frozen=True)
class Outcome:
    """The outcome of a job in a graph.

    Attributes:
        summary: the summary as written; or the exception that says why there is no summary.
        lost: result of `BatchJob.lost`: earlier batches of the graph that forward reports which this job dropped as
            copies.
        problem: a sentence about a batch that nobody can open; empty for other batches.
    """

    summary: HopSummary | Exception
    lost: Lost = frozenset()
    problem: str = ""

    @property
    def failure(self) -> Exception | None:
        """Why the job failed; None: it did not fail. A job that has too few reports to forward did not fail."""
        return self.summary if isinstance(self.summary, Exception) and not isinstance(self.summary, NotYet) else None


RunGraph: TypeAlias = Callable[[Sequence[BatchJob]], None]
"""A function that runs the graph of jobs with equal steps, and writes each job's counts into the job's output."""


def on_engine(engine: Engine, console: Console | None = None) -> RunGraph:
    """Return a function that runs a graph on an engine."""
    return partial(_run_graph, engine=engine, console=console)


def run_together(jobs: Sequence[BatchJob], run_graph: RunGraph) -> Generator[Outcome, None, None]:
    """Run jobs with private outputs in one graph, and yield the outcome of each job, in order, once it is finished.

    A job whose release exceeds a limit is left out of the graph. If the caller closes the generator early, the
    remaining jobs are not charged. If the jobs are too many for one graph, several graphs are run one after another.

    Args:
        jobs: jobs with equal steps, at most MOST_TOGETHER.

    Raises:
        HushcountError: the graph failed.
    """
    most = jobs[0].most
    for begin in range(0, len(jobs), most):
        yield from _in_one_graph(jobs[begin : begin + most], run_graph)


def _in_one_graph(jobs: Sequence[BatchJob], run_graph: RunGraph) -> Generator[Outcome, None, None]:
    with ExitStack() as held:
        places: list[Charging | Exception] = []
        for job in jobs:
            try:
                places.append(held.enter_context(job.reserve()))
            except Exception as error:
                places.append(error)
        ran = [job for job, charge in zip(jobs, places, strict=True) if isinstance(charge, Charging)]
        shared = [job.after(ran[:number]) for number, job in enumerate(ran)]
        if shared:
            run_graph(shared)
        left = iter(shared)
        for charge in places:
            yield _finished(next(left), charge) if isinstance(charge, Charging) else Outcome(charge)


def _run_graph(jobs: Sequence[BatchJob], engine: Engine, console: Console | None) -> None:
    directories = [job.to.out for job in jobs]
    for directory in directories:
        storage.make_directory(directory)
    first, total = directories[0], sum(job.records for job in jobs)
    with (
        engine.spill(first) as spill,
        at_work(console, jobs[0].name, total),
        engine.pipeline(jobs[0].name) as pipeline,
    ):
        add_graph(jobs, directories, pipeline, Place(first, spill))


def _finished(job: BatchJob, charge: Charging) -> Outcome:
    lost: Lost = frozenset()
    try:
        sums = take_counts(job.to.out)
        lost = job.lost(sums)
        return Outcome(published(job, job.to.out, job.finish(Place(job.to.out), sums, charge), charge), lost)
    except Exception as error:
        return Outcome(error, lost)
