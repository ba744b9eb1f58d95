"""Many batches through one graph: each in the engine's window of its order's number, with a directory of its own.

An engine takes seconds to begin a job, and minutes where it starts machines. So batches that wait go through one.
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
"""Streams, and numbers of earlier batches of a graph."""


@dataclass(frozen=True)
class Where:
    """What the steps of a graph are told beside their job.

    Attributes:
        orders: the order of each batch.
        records: how many each input has, of all batches together, by its name; none: that is not known.
        spill: local directory for blocks between steps; None: they go through the engine.
        meets: windows in which batches meet; None: there is one batch, in the global window.
        open: whether others may see what is written before it is complete; then it waits for the minimum batch.
        places: over how many a batch is spread if its records are not known.
    """

    orders: Orders
    records: Mapping[str, int] = field(default_factory=dict)
    spill: str | None = None
    meets: WindowFn | None = None
    open: bool = False
    places: int | None = None

    def places_of(self, each: int, *inputs: str) -> int:
        """Return over how many places these inputs are spread, `each` records or fewer in one."""
        known = sum(self.records.get(name, 0) for name in inputs)
        return self.places or places(known, each, self.spill)

    def read(self, campaign: Campaign, record_bytes: int, strip: int = 0) -> ReadFiles:
        """Return the step that reads an input. A graph that never ends must not fail for a file of one batch."""
        return ReadFiles(campaign.fingerprint, record_bytes, strip, leaves_out=self.places is not None)

    def counted(self, counts: PCollection, of: str) -> PCollection:
        """(name, number) to (number of the order, (name with what it is of, number)), where batches meet."""
        named = (
            counts
            | f"label {of}" >> beam.Map(label, of).with_output_types(tuple[str, int])
            | f"order of {of}" >> beam.ParDo(OfOrder())
        )
        return named if self.meets is None else named | f"{of} of all" >> beam.WindowInto(self.meets)

    def labelled(self, counts: PCollection, of: str) -> PCollection:
        """(number of the order, (name, number)) to the same with what it is of."""
        return counts | f"label numbered {of}" >> beam.Map(_label, of).with_output_types(Counted)

    def written(self, records: PCollection, what: str) -> PCollection:
        """(number of the order, records that were written) to counts of them, where batches meet."""
        named = records | f"written {what}" >> beam.Map(_written, what).with_output_types(Counted)
        return named if self.meets is None else named | f"written {what} of all" >> beam.WindowInto(self.meets)

    def folder(self, *names: str) -> FolderOf:
        """Return a folder in the directory of each order."""
        return FolderOf(self.orders, names)


Counted = tuple[int, tuple[str, int]]
"""The number of the order, and a count by its name."""


def _label(element: tuple[int, tuple[str, int]], of: str) -> tuple[int, tuple[str, int]]:
    return element[0], label(element[1], of)


def _written(element: tuple[int, int], what: str) -> tuple[int, tuple[str, int]]:
    return element[0], label((what, element[1]), WRITTEN)


@dataclass(frozen=True, kw_only=True)
class Steps(ABC):
    """What a graph does to the files of a batch: it follows from the campaign file, and from no batch."""

    campaign: Campaign

    @property
    @abstractmethod
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs; a batch may lack some."""

    @property
    @abstractmethod
    def follows_from(self) -> tuple[bytes, ...]:
        """All that the steps follow from, beside the campaign file and the code."""

    @property
    def digest(self) -> str:
        """The same for equal steps, in every process."""
        digest = hashlib.blake2b(digest_size=32)
        for part in (type(self).__name__.encode(), __version__.encode(), self.campaign.fingerprint, *self.follows_from):
            digest.update(len(part).to_bytes(8, "little") + part)
        return digest.hexdigest()

    @abstractmethod
    def add(self, files: Mapping[str, PCollection], where: Where) -> PCollection:
        """Add the steps to the files of each input; return (number of the order, (name, number)), all that it counts.

        No side effect.
        """


@dataclass(frozen=True, kw_only=True)
class BatchJob(Job):
    """A job on the files of a batch, so that many of them can go through one graph.

    Attributes:
        steps: of its graph.
    """

    steps: Steps

    @property
    @abstractmethod
    def inputs(self) -> Mapping[str, list[BlockFile]]:
        """The files that it reads, by name."""

    @property
    def alike(self) -> str:
        """Digest of its steps: jobs with an equal one may share a graph."""
        return self.steps.digest

    def order(self, directory: str) -> Order:
        """Return what the graph is told of this batch."""
        return Order(directory)

    def after(self, jobs: Sequence[BatchJob]) -> BatchJob:
        """Return the job as it is in a graph after these."""
        return self

    @property
    def most(self) -> int:
        """How many jobs that are alike one graph takes."""
        return MOST_TOGETHER

    def lost(self, sums: Mapping[str, int]) -> Lost:
        """Return to which streams of earlier batches of the graph this one lost copies of a report."""
        return frozenset()

    @property
    def records(self) -> int:
        return sum(total_records(files) for files in self.inputs.values())

    def graph(self, pipeline: beam.Pipeline, place: Place) -> None:
        # A local directory appears by its renaming, but in a store each object is visible once it is written.
        seen = storage.is_remote(place.directory) and not self.to.writer.private
        add_graph([self], [place.directory], pipeline, place, seen)


def add_graph(
    jobs: Sequence[BatchJob], directories: Sequence[str], pipeline: beam.Pipeline, place: Place, seen: bool = False
) -> None:
    """Add the graph of one job, or of several that are alike, to an empty pipeline.

    Args:
        directories: of each.
        place: for what they share.
        seen: whether others see what is in the directory.
    """
    orders = Listed(tuple(job.order(directory) for job, directory in zip(jobs, directories, strict=True)))
    several, files, records = len(jobs) > 1, dict[str, PCollection](), dict[str, int]()
    for name in sorted({name for job in jobs for name in job.inputs}):
        listed = [(number, file) for number, job in enumerate(jobs) for file in job.inputs.get(name, ())]
        records[name] = total_records([file for _, file in listed])
        # Their spans are spread, so the files need not be.
        found = pipeline | f"files of {name}" >> beam.Create(
            listed if several else [file for _, file in listed], reshuffle=False
        )
        files[name] = found | f"orders of {name}" >> EachInItsWindow() if several else found
    where = Where(orders, records, place.spill, together() if several else None, seen)
    jobs[0].steps.add(files, where) | "counts" >> WriteCounts(where.folder())


@dataclass(frozen=True)
class Outcome:
    """What became of a job in a graph.

    Attributes:
        summary: as written; or why there is none.
        lost: to which batches before it, in the same graph, it lost copies of a report.
        problem: a sentence if nobody can open the batch.
    """

    summary: HopSummary | Exception
    lost: Lost = frozenset()
    problem: str = ""

    @property
    def failure(self) -> Exception | None:
        """Why it failed; None: it did not, also if too few reports can be forwarded."""
        return self.summary if isinstance(self.summary, Exception) and not isinstance(self.summary, NotYet) else None


RunGraph: TypeAlias = Callable[[Sequence[BatchJob]], None]
"""Runs the graph of jobs that are alike; their counts are in their outputs then."""


def on_engine(engine: Engine, console: Console | None = None) -> RunGraph:
    """Return what runs a graph on an engine."""
    return partial(_run_graph, engine=engine, console=console)


def run_together(jobs: Sequence[BatchJob], run_graph: RunGraph) -> Generator[Outcome, None, None]:
    """Run jobs with private outputs in one graph, and yield what becomes of each, in their order and as it is done.

    A release that exceeds a limit is not in the graph. Whoever closes it in between leaves the rest uncharged. Where a
    graph takes fewer of them, one follows the other.

    Args:
        jobs: alike, at most MOST_TOGETHER.

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
