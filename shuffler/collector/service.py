"""The whole collector: campaigns, limits, writer and upload queue, with housekeeping once a second."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hushcount.clock import MACHINE, Clock
from hushcount.collection.tilings import Tiling
from hushcount.errors import HushcountError, UsageError
from service.authentication import Authenticator, BearerToken
from service.client_limit import ClientLimit, Counted
from service.exchange import IncomingBytes
from service.logs import error_name, log_paths
from service.passes import PassTaker
from service.store import WriteWhole
from service.threads import to_its_end
from service.window_folders import remove_gone
from shuffler.collector import published
from shuffler.collector.campaigns import Campaigns, Target, accepted_targets, collected_epochs, read_campaigns
from shuffler.collector.journals.watched_clock import WatchedClock
from shuffler.collector.journals.writer import Writer
from shuffler.collector.metrics import Metrics
from shuffler.collector.refusals import TOO_MANY_REPORTS, TOO_MANY_REPORTS_AT_ONCE
from shuffler.collector.settings import CollectorPart
from shuffler.collector.uploads.upload_queue import UploadQueue
from shuffler.collector.uploads.uploader import Uploader

_LOG = logging.getLogger("hushcount.collector")
_TICK_SECONDS = 1.0
REPORTS = Counted("reports", "send", TOO_MANY_REPORTS, TOO_MANY_REPORTS_AT_ONCE)


@dataclass(frozen=True)
class CollectorSetup:
    """Settings, directories and services that a collector needs."""

    settings: CollectorPart
    journal: Path  # directory of journals, on a local disk
    campaigns: Path  # directory of campaigns, one folder each
    segments: str  # folder of segments in the store
    tiling: Tiling  # of windows
    authenticator: Authenticator
    write_whole: WriteWhole
    probe: Callable[[], None]  # raises if the store cannot be reached
    metrics_reader: BearerToken | None = None  # who may read the metrics
    clock: Clock = MACHINE


class Collector:
    """A collector in one event loop, between `start` and `stop`."""

    def __init__(self, setup: CollectorSetup) -> None:
        self.setup = setup
        self.metrics = Metrics()
        self.client_limit = ClientLimit(setup.settings.most_reports_a_client, REPORTS, clock=setup.clock)
        self.incoming = IncomingBytes(setup.settings.most_incoming_bytes)
        self.metrics.incoming.set_function(lambda: self.incoming.present)
        self.metrics.ready.set_function(lambda: 0 if self.faults() else 1)
        self.campaigns: Campaigns = read_campaigns(setup.campaigns, self._record, self._taker, {}, setup.clock)
        self.refusals: Counter[tuple[str, int, str]] = Counter()
        """Refusals that are not written to a file yet, by campaign, epoch and reason."""
        self.room = True
        """Whether the journal's disk has at least `least_free_bytes` free."""
        self.stopping = False
        self._campaigns_fault: str | None = None
        self._housekeeping_failure: str | None = None
        self._told = frozenset[str]()
        """The faults that were there at the last look."""
        self._tasks: list[asyncio.Task[None]] = []
        uploader = Uploader(
            setup.journal,
            setup.segments.rstrip("/"),
            setup.settings.name,
            setup.write_whole,
            setup.probe,
            self._fingerprint_of,
            self.metrics,
            setup.tiling,
        )
        self.uploads = UploadQueue(uploader, self.metrics)
        self.writer = Writer(
            setup.journal,
            setup.tiling,
            setup.settings.segment_bytes,
            setup.settings.queue_reports,
            self.uploads.hand_over,
            self.metrics,
            WatchedClock(setup.tiling.longest.total_seconds(), setup.clock),
            setup.authenticator.way,
        )

    async def start(self) -> None:
        """Recover the journals of an earlier process, and begin to collect. OSError: the journal cannot be written."""
        remove_gone(self.setup.journal)
        await self.writer.start()
        await self._turn()
        self._measure_room()
        work = (self.writer.run(), self.uploads.run(), self._keep_house())
        self._tasks = [asyncio.create_task(part) for part in work]
        for fault in self.faults():
            _LOG.error("not ready", extra={"fault": fault})
        self._told = frozenset(self.faults())

    async def stop(self) -> None:
        """Commit the waiting reports, and try each upload once."""
        self.stopping = True
        for task in self._tasks:
            task.cancel()
        for ended in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                _LOG.error("a part had failed", exc_info=ended)
        # If a step fails, the other steps must still run.
        for step in (self._turn, self.writer.stop, self.uploads.stop):
            try:
                await step()
            except Exception:
                _LOG.exception("stopping failed", extra={"step": step.__qualname__})

    @property
    def _taker(self) -> PassTaker:
        return PassTaker(self.setup.authenticator.way, "collector", self.setup.settings.name, self.setup.tiling)

    @property
    def _record(self) -> Path:
        return self.setup.journal / published.FOLDER

    def faults(self) -> list[str]:
        """Return why the collector is not ready, in sentences."""
        return list(self._faults())

    def _faults(self) -> Iterator[str]:
        for campaign in self.campaigns.values():
            if campaign.fault is not None:
                yield f"campaign {campaign.id}: {campaign.fault}"
        if self._campaigns_fault is not None:
            yield self._campaigns_fault
        if not self.campaigns:
            yield f"no campaign is collected: put a campaign into {self.setup.campaigns}"
        journal = self.writer.failure or self._housekeeping_failure
        if journal is not None:
            yield f"the journal cannot be written: {journal}"
        if self.uploads.failure is not None:
            yield f"the store cannot be written: {self.uploads.failure}"
        for name, failure in self.uploads.failures.items():
            if not failure.of_store:
                yield f"window {name} cannot be uploaded: {failure.name}; look at its folder in {self.setup.journal}"
        if self.writer.clock_ahead is not None:
            yield (
                f"the clock runs {self.writer.clock_ahead:,.0f} seconds ahead of time: "
                "correct the clock, or restart the collector if the clock is right"
            )
        if not self.room:
            yield f"the journal's disk has less than {self.setup.settings.least_free_bytes:,} bytes free"
        window = self.writer.window
        if window is not None and window.start.timestamp() > self.setup.clock.seconds():
            yield f"the clock went back: reports are counted in window {window.text}, which has not begun"
        if any(not task.cancelled() and task.done() for task in self._tasks):
            yield "a part of the collector has failed: restart the collector"

    async def _keep_house(self) -> None:
        """Once a second: read changed campaigns, end windows that are over, measure the disk."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            try:
                read = partial(read_campaigns, self.setup.campaigns, self._record, self._taker)
                self.campaigns = await loop.run_in_executor(None, read, self.campaigns, self.setup.clock)
                self._campaigns_fault = None
            except UsageError as error:
                self._campaigns_fault = str(error)
            except Exception as error:
                # Until the campaigns can be read again, the campaigns that were read last are collected.
                if self._campaigns_fault is None:
                    _LOG.exception("campaigns cannot be read")
                self._campaigns_fault = f"the campaigns in {self.setup.campaigns} cannot be read: {error_name(error)}"
            try:
                self._measure_room()
                await self._turn()
                self._housekeeping_failure = None
            except (OSError, HushcountError) as error:
                self._housekeeping_failure = getattr(error, "strerror", None) or str(error)
            except Exception as error:
                # An unforeseen error must not end this task, because windows must still be ended while reports arrive.
                if self._housekeeping_failure is None:
                    _LOG.exception("housekeeping failed")
                self._housekeeping_failure = error_name(error)
            self._told = log_paths(_LOG, self.faults(), self._told)

    async def _turn(self) -> None:
        targets = accepted_targets(self.campaigns, self.setup.clock.seconds())
        counted: dict[Target, Counter[str]] = {}
        taken, self.refusals = self.refusals, Counter()
        for (campaign, epoch, reason), number in taken.items():
            # A refusal counts for the epoch that the request names if its reports are accepted, or else for the newest
            # such epoch.
            of_campaign = [target for target in targets if target.campaign == campaign]
            if of_campaign:
                target = max(of_campaign, key=lambda target: (target.epoch == epoch, target.epoch))
                counted.setdefault(target, Counter())[reason] += number
        try:
            await to_its_end(self.writer.turn(targets, counted))
        finally:
            for target, counts in counted.items():
                for reason, number in counts.items():
                    self.refusals[target.campaign, target.epoch, reason] += number

    def _fingerprint_of(self, folder: str) -> str | None:
        targets = (target for epoch in collected_epochs(self.campaigns) for target in epoch.targets.values())
        return next((target.fingerprint.hex() for target in targets if target.folder == folder), None)

    def _measure_room(self) -> None:
        status = os.statvfs(self.setup.journal)
        free = status.f_bavail * status.f_frsize
        if not os.access(self.setup.journal, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "the directory is read-only")
        self.metrics.free_bytes.set(free)
        # A file system that reports a total of 0 files has no limit on files.
        nameable = status.f_favail > 0 or status.f_files == 0
        self.room = nameable and free >= self.setup.settings.least_free_bytes
