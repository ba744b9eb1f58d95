"""The run's side: let a streaming job carry out a graph, if a job with the graph's steps is at work, or run it here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hushcount.clock import MACHINE
from pipelines.deployment.settings import Deployment
from pipelines.files import leases, storage
from pipelines.files.leases import Patience, Seen
from pipelines.files.moving import move_directory
from pipelines.handover.hops import CHAIN, HopName
from pipelines.jobs.together import BatchJob, RunGraph
from pipelines.outputs.counting import COUNTS
from pipelines.outputs.staging import new_folder
from pipelines.streaming.order_book import BatchPart, OrderBook, OrderFile

PATIENCE = Patience()


def by_stream(deployment: Deployment, hop: HopName, itself: RunGraph) -> RunGraph:
    """Return a function that lets a streaming job carry out a hop's graph or, without such a job, calls `itself`."""
    return partial(_run, OrderBook.of(deployment, CHAIN[hop].party), hop, itself)


def _run(book: OrderBook, hop: HopName, itself: RunGraph, jobs: Sequence[BatchJob]) -> None:
    seen, put = Seen(book.lease, PATIENCE), None
    if (stream := seen.lease) is not None and seen.is_held and jobs[0].alike in stream.carries:
        put = book.put(partial(_order, book, hop, stream.owner, jobs))
    if put is None or stream is None:
        itself(jobs)
        return
    number, order = put
    directories = [storage.join(book.attempts, batch.directory) for batch in order.batches]
    try:
        is_carried_out = _await(seen, stream.owner, directories)
    finally:
        book.close(number)
    if not is_carried_out:
        # The graph runs here, and whatever the streaming job still writes goes to a folder that nobody reads.
        leases.remove(book.lease, stream.owner)
        itself(jobs)
        return
    for job, directory in zip(jobs, directories, strict=True):
        # The files are moved, because an engine may repeat a finished step, and then it writes to a folder that nobody
        # reads.
        move_directory(directory, job.to.out, COUNTS)


def _order(book: OrderBook, hop: HopName, stream: str, jobs: Sequence[BatchJob]) -> OrderFile:
    campaign, batches = jobs[0].campaign, tuple(_batch(book, job) for job in jobs)
    return OrderFile(
        format=1, stream=stream, hop=hop, campaign=campaign.id, fingerprint=campaign.fingerprint.hex(),
        steps=jobs[0].alike, batches=batches,
    )  # fmt: skip


def _batch(book: OrderBook, job: BatchJob) -> BatchPart:
    attempts = storage.relative(job.to.out, book.attempts).rpartition("/")[0]
    order = job.order(f"{attempts}/{new_folder()}")
    files = {name: [(file.path, file.whole_blocks) for file in found] for name, found in job.inputs.items()}
    told = {"directory": order.directory, "draw": order.draw.hex(), "reports": order.reports, "files": files}
    return BatchPart.model_validate(told)


def _await(seen: Seen, stream: str, directories: Sequence[str]) -> bool:
    """Wait until all batches have counts; False: the streaming job ended, made no progress or took too long."""
    left, began = list(directories), MACHINE.steady()
    while left:
        # The lease is read before the counts, because the job may write counts and end between the two.
        at_work = seen.is_held and seen.lease is not None and seen.lease.owner == stream
        while left and storage.exists(storage.join(left[-1], COUNTS)):
            left.pop()
        if left and (not at_work or MACHINE.steady() - began >= PATIENCE.asked):
            return False
        if left:
            seen.look()
    return True
