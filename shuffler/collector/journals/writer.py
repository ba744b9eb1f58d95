"""Group commit: reports wait in a bounded queue; one write with a sync commits all waiting reports of a target.

The event loop adds reports to the queue. The writer's own thread does all work that waits for the disk, and no other
thread uses the journals and the present window.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from hushcount.clock import MACHINE
from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import Window
from hushcount.errors import HushcountError
from hushcount.formats.whole_files import sync
from hushcount.senders import WEAKEST, Authentication
from service import window_folders, window_notes
from service.logs import error_name
from shuffler.collector.campaigns import Target
from shuffler.collector.journals.open_journals import CommitGroup, OpenJournals, Uploadable, WaitingReports, WindowEnd
from shuffler.collector.journals.watched_clock import ClockAhead, WatchedClock
from shuffler.collector.metrics import Metrics
from shuffler.collector.windows import window_files
from shuffler.collector.windows.manifest_counts import add_refused, note_target

_LOG = logging.getLogger("hushcount.collector")
_PAUSE_SECONDS = 0.002


class Writer:
    """The queue, the journals and the present window."""

    def __init__(  # noqa: PLR0913  # the collector makes one
        self,
        root: Path,  # directory of journals, locked by this process
        tiling: Tiling,  # of windows
        segment_bytes: int,  # length at which a journal is closed
        queue_reports: int,  # the largest number of reports that may wait
        hand_over: Callable[[Uploadable], None],  # called in the writer's thread with items to upload
        metrics: Metrics,
        clock: WatchedClock,
        authentication: Authentication = WEAKEST,
    ) -> None:
        self._root = root
        self._tiling = tiling
        self._queue_reports = queue_reports
        self._hand_over = hand_over
        self._authentication = authentication
        self._metrics = metrics
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "journal")
        self._open = CommitGroup()
        self._in_flight = 0
        self._filled = asyncio.Event()
        self._journals = OpenJournals(root, segment_bytes, hand_over)
        self._key = b""
        self.window: Window | None = None
        """The window that was entered last, even while the next window cannot be entered; None before the start."""
        # Whether `window` has ended, and the next window is not entered yet.
        self._left = False
        self.failure: str | None = None
        """Why a recent write to the disk failed, or None."""
        self._failed = False
        self.clock_ahead: float | None = None
        """Seconds by which the clock runs ahead of time, or None. While the clock runs ahead, no other window is
        entered."""
        metrics.waiting.set_function(lambda: self._waiting)

    def has_room(self, reports: int) -> bool:
        """Return whether the queue can take this number of further reports."""
        return self._waiting == 0 or self._waiting + reports <= self._queue_reports

    @property
    def _waiting(self) -> int:
        return self._in_flight + self._open.reports

    async def keep(self, target: Target, body: bytes, reports: int, client: bytes | None) -> bool:
        """Wait for the commit of a body of whole sealed reports, and return whether these reports are on the disk.

        `client` is the client's token, or None if clients are not told apart.
        """
        group = self._open
        waiting = group.waiting.get(target)
        if waiting is None:
            waiting = group.waiting[target] = WaitingReports()
        waiting.bodies.append(body)
        waiting.clients.append((reports, client))
        waiting.reports += reports
        group.reports += reports
        self._filled.set()
        await group.done.wait()
        return target in group.kept

    async def run(self) -> None:
        """Commit one group after another, until cancelled."""
        while True:
            await self._filled.wait()
            await self._commit_open()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _commit_open(self) -> None:
        self._filled.clear()
        group, self._open = self._open, CommitGroup()
        self._in_flight = group.reports
        began = MACHINE.steady()
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._commit, group)
        except Exception as error:
            # After an unforeseen error only this group is lost: its senders get an error, and the next group is tried.
            if self.failure is None:
                _LOG.exception("commit failed")
            self._fail(error_name(error))
        finally:
            # After every outcome, senders get the right answer, because `kept` has only targets with reports on the
            # disk.
            self._in_flight = 0
            group.done.set()
        self._metrics.commit_seconds.observe(MACHINE.steady() - began)
        for target in group.kept:
            labels = (target.campaign, str(target.epoch), target.stream)
            self._metrics.reports.labels(*labels).inc(group.waiting[target].reports)

    async def start(self) -> None:
        """Hand over journals of an earlier process, and enter the present window. OSError: the disk cannot be used."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._start)

    async def turn(self, targets: Iterable[Target], refused: dict[Target, Counter[str]]) -> None:
        """End a window that is over, and note accepted targets and refusals. After an OSError the window is still open.

        Written refusals are removed from `refused`, even if a later step raises an error.
        """
        await asyncio.get_running_loop().run_in_executor(self._thread, self._turn, list(targets), refused)

    async def stop(self) -> None:
        """Commit all waiting reports, and close the journals for upload. `run` must have ended."""
        await self._commit_open()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._journals.close_all)
        self._thread.shutdown()

    def _start(self) -> None:
        kept = window_folders.kept_windows(self._root)
        entered = self._enter_window(self._clock.seconds())
        for name in kept:
            for journal in window_files.journals(self._root, name):
                self._hand_over(journal)
            if name != entered.name:
                self._hand_over(WindowEnd(name))

    def _turn(self, targets: list[Target], refused: dict[Target, Counter[str]]) -> None:
        try:
            window = self._enter_window(self._clock.seconds())
        except ClockAhead:
            return
        self._forget_failure()
        for target in list(refused):
            folder = note_target(self._root, window.name, target)
            add_refused(self._root, folder, target, refused[target], self._metrics)
            # The counts are removed even if the sync fails, because the file holds them now.
            del refused[target]
            sync(folder)
        for target in targets:
            note_target(self._root, window.name, target)

    def _enter_window(self, now: float) -> Window:
        """End the present window if it is over, and return the window of this moment.

        ClockAhead: the clock cannot be right, so the present window is not ended, and nothing may be written.
        """
        if self.window is None or self._left or now >= self.window.end.timestamp():
            self._require_believable(now)
            if self.window is not None and not self._left:
                window_notes.note_over(self._root, self.window.end)
                self._journals.close_all()
                self._hand_over(WindowEnd(self.window.name))
                self._left = True
            moment = datetime.fromtimestamp(now, timezone.utc)
            window = window_notes.open_window(self._root, moment, self._tiling)
            if moment < window.start:
                _LOG.warning("clock went back", extra={"window": window.name})
            window_notes.set_seconds(self._root, window)
            window_notes.note_authentication(self._root, window.name, self._authentication)
            self._key = window_notes.window_key(self._root, window.name)
            self.window, self._left = window, False
            self._clock.believe(now)
        elif now >= self.window.start.timestamp():
            # Each time within the window is accepted, because a clock that was slow at the start may have been
            # corrected.
            self._clock.believe(now)
        self.clock_ahead = None
        return self.window

    def _require_believable(self, now: float) -> None:
        try:
            self._clock.require_believable(now)
        except ClockAhead as error:
            if self.clock_ahead is None:
                _LOG.error("clock went ahead", extra={"seconds": round(error.seconds)})
            self.clock_ahead = error.seconds
            raise

    def _commit(self, group: CommitGroup) -> None:
        """Append a frame to the journal of each target; `group.kept` gets each target whose frame is on the disk."""
        for target, waiting in group.waiting.items():
            try:
                window = self._enter_window(self._clock.seconds())
                self._journals.append(target, window, waiting, self._key)
                group.kept.add(target)
                self._journals.close_if_full(target)
            except ClockAhead:
                # A clock that is ahead is not a failure of the disk: senders are refused with the reason `clock_ahead`.
                continue
            except HushcountError as error:
                self._fail(str(error))
            except OSError as error:
                self._fail(error_name(error))
                with suppress(OSError):
                    self._journals.abandon(target)

    def _fail(self, failure: str) -> None:
        self._metrics.journal_failures.inc()
        if self.failure is None:
            _LOG.error("storage failing", extra={"failure": failure})
        self.failure = failure
        self._failed = True

    def _forget_failure(self) -> None:
        """Forget a failure if no write has failed since the last turn, because a full disk may have space again."""
        if self.failure is not None and not self._failed:
            _LOG.warning("storage recovered", extra={"failure": self.failure})
            self.failure = None
        self._failed = False
