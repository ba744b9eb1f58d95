"""What becomes of a window of a stream when it closes: released as a whole, once, or not yet."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.transforms.window import IntervalWindow

from hushcount.arrays import UInt64Array
from hushcount.collection.windows import Window
from hushcount.errors import HushcountError
from hushcount.oracles.estimates import Levels
from hushcount.oracles.groups import Groups
from pipelines.files import permissions, storage
from pipelines.files.block_files import BlockFile
from pipelines.handover.parties import hand_on
from pipelines.handover.upstream import senders_of
from pipelines.jobs.analyze import gather_tally, write_analysis
from pipelines.jobs.dead_letters import kept_of
from pipelines.jobs.results import Wanted
from pipelines.outputs.counting import require_undamaged
from pipelines.outputs.counts import counts_of, opening_of
from pipelines.outputs.minimum_batch import Withheld, require_minimum
from pipelines.outputs.received_summary import read_summary
from pipelines.outputs.staging import SUMMARY, Output
from pipelines.outputs.summary import make_summary
from pipelines.streaming.segments import Fact, StepOfStream, released_reports
from pipelines.streaming.windows import RECORD, Held, StreamFolders, StreamJob, WindowRecord
from shuffler.minimum_batch import may_leave

logger = logging.getLogger(__name__)


class Release(StepOfStream):
    """All facts of a window in; the window is settled; the files of frequency reports that were released out.

    A window is settled when its record is there, in the directory of its result, which appears as a whole. A settled
    window, because an engine runs the step again or because a job before did it, is left as it is: what was drawn for
    it this time is thrown away, and what was released goes on. A window with a fault waits: `Held` says what is wrong,
    nothing of it is released, and the next job looks again. The job fails if counts disagree.
    """

    def process(
        self, element: tuple[int, Iterable[Fact]], closed: IntervalWindow = beam.DoFn.WindowParam
    ) -> Iterator[BlockFile]:
        window = self._folders.windows.of_engine(closed)
        facts, work = list(element[1]), self._folders.being_made(window)
        record = self._folders.record(window)
        if record is None:
            if faults := sorted(fact.name for fact in facts if fact.kind == "fault"):
                for fault in faults:
                    logger.error("window %s waits: %s", window.name, fault)
                held = Held(window=window.name, faults=tuple(faults))
                storage.write_json(self._folders.held(window), held.model_dump(mode="json"))
            elif {"segment", "without"} & {fact.kind for fact in facts}:
                record = self._settle(window, facts, work)
        storage.remove_directory(work)
        if record is not None and "reports" in record.released:
            yield from released_reports(self._folders, window)

    def _settle(self, window: Window, facts: list[Fact], work: str) -> WindowRecord:
        streams, floor = self._campaign.streams, self._campaign.shuffle.minimum_batch
        segments = summed(facts, "segment")
        counts = counts_of(summed(facts, "count"), streams)
        written = summed(facts, "written")
        for stream, counted in counts.items():
            there = sum(number for name, number in segments.items() if f"/{stream}/" in name)
            if (counted.received, counted.accepted) != (there, written.get(stream, 0)):
                raise HushcountError(
                    f"window {window.name}: of {there} {stream} {counted.received} were read, {counted.accepted} "
                    f"accepted and {written.get(stream, 0)} written: nothing of it was released, report this bug"
                )
        # No stream waits for another: what is too little is of no use to one that is enough.
        enough = {stream: counted for stream, counted in counts.items() if may_leave(counted.accepted, floor)}
        shuffled = storage.join(work, *self._folders.handed_on(window))
        for stream in counts.keys() - enough.keys():
            storage.remove_directory(storage.join(shuffled, stream))
            logger.warning(
                "window %s: %d %s are below the minimum batch, %d, and in no result",
                window.name, counts[stream].accepted, stream, floor,
            )  # fmt: skip
        if enough:
            senders = senders_of(
                storage.join(self._folders.segments, window.name), [name.partition("/")[2] for name in segments]
            )
            summary = make_summary("shuffle", self._campaign, enough, None, senders=senders)
            summary = replace(summary, dead_letters=kept_of(shuffled, enough))
            to = Output(self._folders.shuffled(window), signer=self._job.signer)
            hand_on(shuffled, to, tuple(enough), summary)
        else:
            storage.remove_directory(storage.join(work, "shuffled"))
        record = WindowRecord(
            window=window.name,
            ends=window.end.isoformat(),
            released=tuple(sorted(enough)),
            campaign=self._campaign.id,
            epoch=self._campaign.epoch,
            fingerprint=self._campaign.fingerprint.hex(),
            minimum_batch=floor,
            streams=counts,
            manifests=dict(sorted((fact.name, fact.digest) for fact in facts if fact.kind == "manifest")),
            segments=dict(sorted(segments.items())),
            without=dict(sorted(summed(facts, "without").items())),
        )
        put(self._folders, work, self._folders.settled(window), RECORD, record.model_dump(mode="json"))
        if storage.exists(held := self._folders.held(window)):
            storage.remove(held)
            storage.remove_empty(held.rpartition("/")[0])
        # Another worker may have been first.
        return self._folders.record(window) or record


class WindowResults(StepOfStream):
    """All facts of the analysis of a window in; `results/` appears beside what was released.

    If fewer reports than the minimum batch were accepted, it holds a summary that counts them, and nothing else.
    """

    def __init__(self, job: StreamJob, wanted: Wanted | None, columns: UInt64Array, groups: Groups) -> None:
        super().__init__(job)
        self._wanted, self._columns, self._groups = wanted, columns, groups

    def process(self, element: tuple[int, Iterable[Fact]], closed: IntervalWindow = beam.DoFn.WindowParam) -> None:
        window = self._folders.windows.of_engine(closed)
        done = storage.join(self._folders.settled(window), "results")
        work = storage.join(self._folders.being_made(window), "results")
        if not storage.exists(storage.join(done, SUMMARY)):
            self._estimate(window, list(element[1]), work, done)
        storage.remove_directory(work)

    def _estimate(self, window: Window, facts: list[Fact], work: str, done: str) -> None:
        shuffled = self._folders.shuffled(window)
        sums, released = summed(facts, "count"), read_summary(storage.join(shuffled, SUMMARY))
        counts = counts_of(sums, ("reports",))
        require_undamaged(shuffled, counts["reports"].rejected)
        opening = opening_of(sums, counts["reports"])
        try:
            require_minimum("analyze", self._campaign, "reports", counts["reports"], released, opening)
            parts, mechanism = storage.join(work, ".tally"), self._campaign.require_frequency()
            tally = gather_tally(mechanism, self._columns, parts, self._groups)
            summary = write_analysis(work, self._campaign, counts, opening, released, tally, self._wanted, Levels())
        except Withheld as too_few:
            storage.remove_directory(work)
            summary = too_few.summary
        summary = replace(summary, ledger="no ledger", batch=released.batch, window=released.window)
        put(self._folders, work, done, SUMMARY, summary.data())


def summed(facts: Iterable[Fact], kind: str) -> dict[str, int]:
    """Return the sums of the facts of a kind, by name."""
    sums: dict[str, int] = {}
    for fact in facts:
        if fact.kind == kind:
            sums[fact.name] = sums.get(fact.name, 0) + fact.number
    return sums


def put(folders: StreamFolders, work: str, target: str, mark: str, data: dict[str, Any]) -> None:
    """Make a finished directory appear at `target`, where nothing is marked as complete.

    A local directory appears in one step. In a store its objects come one by one, and the mark, which says that all are
    there, comes last; objects that were left there without a mark are removed first.

    Raises:
        HushcountError: another stream has begun to write to the output, and may have removed some of it.
    """
    if not storage.is_remote(target):
        storage.write_json(storage.join(work, mark), data)
        # As what other jobs put out.
        permissions.share_as_parent(Path(work))
        try:
            os.rename(work, target)
        except OSError:
            # Unless another worker was first, something is there that is not ours.
            if not storage.exists(storage.join(target, mark)):
                folders.require_ours()
                raise
        return
    storage.remove_directory(target)
    if paths := storage.list_objects(work):
        FileSystems.rename(paths, [target.rstrip("/") + path[len(work.rstrip("/")) :] for path in paths])
    folders.require_ours()
    storage.write_json(storage.join(target, mark), data)
