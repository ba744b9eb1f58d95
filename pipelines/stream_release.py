"""What becomes of a window of a stream when it closes: released as a whole, once, or not yet."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.transforms.window import IntervalWindow

from hushcount.campaign import Campaign
from hushcount.errors import HushcountError
from hushcount.estimates import Levels
from hushcount.randomness import UInt64Array
from hushcount.senders import told_in
from hushcount.tally import Tally
from hushcount.windows import Window
from pipelines import modes, results, storage
from pipelines.analyze import gather_tally
from pipelines.block_io import BlockFile, find_files
from pipelines.dead_letters import kept_of
from pipelines.results import Wanted
from pipelines.staging import SUMMARY
from pipelines.stream_windows import RECORD, StreamFolders
from pipelines.streams import SEALED, counts_of
from pipelines.summary import Summary, make_summary
from pipelines.summary_file import read_summary
from pipelines.upstream import senders_of
from pipelines.withheld import withheld_summary

Fact = tuple[str, str, int]
"""What a step says of a window: kind, name and number."""
UNREADABLE = -1
"""Instead of the number of records of a segment whose header is damaged."""
_SKEW_SECONDS = 60
logger = logging.getLogger(__name__)


def fact(named: tuple[str, int], kind: str) -> tuple[int, Fact]:
    """Make a name and a number a fact of their window, to be grouped with all others."""
    return 0, (kind, *named)


def number_fact(number: int, kind: str, name: str) -> tuple[int, Fact]:
    """Name a number and make it a fact of its window."""
    return fact((name, number), kind)


class Release(beam.DoFn):
    """All facts of a window in; the window is settled; the files of frequency reports that were released out.

    A window is settled when its record is there, in the directory of its result, which appears as a whole. One that
    is settled already, because an engine runs the step again or because a job before did it, is left as it is: what was
    drawn for it this time is thrown away, and what was released goes on.

    Raises:
        HushcountError: the counts do not agree, or the window is still open: the engine was told to drain.

    Args:
        folders: where the files are.
        campaign: whose.
    """

    def __init__(self, folders: StreamFolders, campaign: Campaign) -> None:
        self._folders = folders
        self._campaign = campaign

    def process(
        self, element: tuple[int, Iterable[Fact]], closed: IntervalWindow = beam.DoFn.WindowParam
    ) -> Iterator[BlockFile]:
        window = self._folders.windows.of_engine(closed)
        _await(self._folders.windows.closes(window).micros / 1e6, window)
        record, work = self._folders.record(window), self._folders.being_made(window)
        if not storage.exists(record):
            self._settle(window, list(element[1]), work)
        storage.remove_directory(work)
        if "reports" in storage.read_json(record)["released"]:
            yield from find_files(storage.join(self._folders.settled(window), "shuffled", "reports"), SEALED["reports"])

    def _settle(self, window: Window, facts: list[Fact], work: str) -> None:
        streams, floor = self._campaign.streams, self._campaign.shuffle.minimum_batch
        segments = {name: number for kind, name, number in facts if kind == "segment"}
        counts = counts_of(summed(facts, "count"), streams)
        written = summed(facts, "written")
        for stream, counted in counts.items():
            there = sum(number for name, number in segments.items() if f"/{stream}/" in name and number != UNREADABLE)
            if (counted.received, counted.accepted) != (there, written.get(stream, 0)):
                raise HushcountError(
                    f"window {window.name}: of {there} {stream} {counted.received} were read, {counted.accepted} "
                    f"accepted and {written.get(stream, 0)} written: nothing of it was released, report this bug"
                )
        # No stream waits for another: what is too little is of no use to one that is enough.
        enough = {stream: counted for stream, counted in counts.items() if counted.accepted >= floor}
        shuffled = storage.join(work, "shuffled")
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
            summary["dead_letters"] = kept_of(shuffled, enough)
            storage.write_json(storage.join(shuffled, SUMMARY), summary)
        else:
            storage.remove_directory(shuffled)
        record = {
            "window": window.name,
            "ends": window.end.isoformat(),
            "released": sorted(enough),
            "campaign": self._campaign.id,
            "epoch": self._campaign.epoch,
            "fingerprint": self._campaign.fingerprint.hex(),
            "minimum_batch": floor,
            "streams": {stream: counted.data() for stream, counted in counts.items()},
            "segments": {name: number for name, number in sorted(segments.items()) if number != UNREADABLE},
            "unreadable": sorted(name for name, number in segments.items() if number == UNREADABLE),
        }
        put(work, self._folders.settled(window), RECORD, record)


class WindowResults(beam.DoFn):
    """All facts of the analysis of a window in; `results/` appears beside what was released.

    Where fewer reports than the minimum batch were accepted it holds a summary that counts them, and nothing else.

    Args:
        folders: where the files are.
        campaign: whose.
        wanted: what is estimated; None: nothing, the tally can be asked later.
        columns: what the tally has columns for.
    """

    def __init__(self, folders: StreamFolders, campaign: Campaign, wanted: Wanted | None, columns: UInt64Array) -> None:
        self._folders = folders
        self._campaign = campaign
        self._wanted = wanted
        self._columns = columns

    def process(self, element: tuple[int, Iterable[Fact]], closed: IntervalWindow = beam.DoFn.WindowParam) -> None:
        window = self._folders.windows.of_engine(closed)
        done = storage.join(self._folders.settled(window), "results")
        work = storage.join(self._folders.being_made(window), "results")
        if not storage.exists(storage.join(done, SUMMARY)):
            self._estimate(window, list(element[1]), work, done)
        storage.remove_directory(work)

    def _estimate(self, window: Window, facts: list[Fact], work: str, done: str) -> None:
        campaign, upstream = self._campaign, storage.join(self._folders.settled(window), "shuffled", SUMMARY)
        counts = counts_of(summed(facts, "count"), ("reports",))
        accepted = counts["reports"].accepted
        tally: Tally = gather_tally(campaign.require_frequency(), self._columns, storage.join(work, ".tally"))
        if tally.reports != accepted:
            raise HushcountError(
                f"window {window.name}: the tally holds {tally.reports} reports, {accepted} were accepted: "
                "report this bug"
            )
        released = read_summary(upstream)
        enough = accepted >= campaign.shuffle.minimum_batch
        summary: Summary = (
            make_summary("analyze", campaign, counts, accepted, released)
            if enough
            else withheld_summary("analyze", campaign, "reports", counts["reports"], released)
        )
        summary["ledger"] = None
        if not enough:
            storage.remove_directory(work)
        else:
            summary["dead_letters"] = kept_of(work, counts)
            results.write_tally(work, replace(tally, senders=told_in(released)), campaign)
            results.write_results(work, campaign, tally, self._wanted, Levels(), summary, None)
        put(work, done, SUMMARY, summary)


def summed(facts: Iterable[Fact], kind: str) -> dict[str, int]:
    """Return the sums of the facts of a kind, by name."""
    sums: dict[str, int] = {}
    for of, name, number in facts:
        if of == kind:
            sums[name] = sums.get(name, 0) + number
    return sums


def put(work: str, target: str, mark: str, data: dict[str, Any]) -> None:
    """Make a finished directory appear at `target`, where nothing is that is marked as complete.

    A local one appears in one step. In a store its objects come one by one, and the mark, which says that all are
    there, as the last; what was left there without a mark is removed first.
    """
    if not storage.is_remote(target):
        storage.write_json(storage.join(work, mark), data)
        # As what other jobs put out.
        modes.share_as_parent(Path(work))
        try:
            os.rename(work, target)
        except OSError:
            # Unless another worker was first, something is there that is not ours.
            if not storage.exists(storage.join(target, mark)):
                raise
        return
    storage.remove_directory(target)
    if paths := storage.list_objects(work):
        FileSystems.rename(paths, [target.rstrip("/") + path[len(work.rstrip("/")) :] for path in paths])
    storage.write_json(storage.join(target, mark), data)


def _await(closes: float, window: Window) -> None:
    """Wait until a window has closed by this machine's clock too; it may be a little behind the watcher's."""
    ahead = closes - time.time()
    if ahead > _SKEW_SECONDS:
        raise HushcountError(
            f"window {window.name} is open for {ahead:.0f} s more: an engine must be cancelled, not drained; nothing "
            "of it was released and the next run has it"
        )
    time.sleep(max(0.0, ahead))
