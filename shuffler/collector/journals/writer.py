"""CommitGroup commit: reports wait in a bounded queue, and all that wait are written and synced at once.

An event loop puts reports in; one thread of the writer's own does what may wait for the disk. All journals and the
present window belong to that thread.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path

from hushcount.collection.windows import Window, window_at
from hushcount.errors import FormatError, HushcountError
from hushcount.formats.whole_files import sync
from hushcount.senders import WEAKEST, Authentication
from shuffler.collector.campaigns import Target
from shuffler.collector.journals.commit_group import CommitGroup, WaitingReports, envelopes
from shuffler.collector.journals.open_journals import OpenJournals, Uploadable, WindowEnd, milliseconds
from shuffler.collector.journals.watched_clock import ClockAhead, WatchedClock
from shuffler.collector.logs import error_name
from shuffler.collector.metrics import Metrics
from shuffler.collector.windows import damage, ended_windows, refusal_counts, window_files, window_notes

_LOG = logging.getLogger("hushcount.collector")
_PAUSE_SECONDS = 0.002


class Writer:
    """The queue, the journals and the present window.

    Args:
        root: directory of journals, locked by this process.
        length: of windows.
        segment_bytes: length at which a journal is closed.
        queue_reports: how many reports may wait.
        hand_over: called, in the writer's thread, with what can be uploaded.
        metrics: to count in.
        clock: by which windows begin and end; as long as a window may it go ahead of time.
        authentication: by which senders are told apart.
    """

    def __init__(
        self,
        root: Path,
        length: timedelta,
        segment_bytes: int,
        queue_reports: int,
        hand_over: Callable[[Uploadable], None],
        metrics: Metrics,
        clock: WatchedClock | None = None,
        authentication: Authentication = WEAKEST,
    ) -> None:
        self._root = root
        self._length = length
        self._queue_reports = queue_reports
        self._hand_over = hand_over
        self._authentication = authentication
        self._metrics = metrics
        self._clock = WatchedClock(length.total_seconds()) if clock is None else clock
        self._thread = ThreadPoolExecutor(1, "journal")
        self._open = CommitGroup()
        self._in_flight = 0
        self._filled = asyncio.Event()
        self._journals = OpenJournals(root, segment_bytes, hand_over)
        self._window: Window | None = None
        # Whether it ended, and no other could be entered yet.
        self._left = False
        self._key = b""
        metrics.waiting.set_function(lambda: self._waiting)
        self.failure: str | None = None
        """What the disk answered of late when it could not be written to; None: it could."""
        self._failed = False
        self.clock_ahead: float | None = None
        """By how many seconds the clock went ahead of time; no other window is entered meanwhile. None: it did not."""

    @property
    def window(self) -> Window | None:
        """The window that was entered last, also while the next one cannot be; None before the start."""
        return self._window

    def has_room(self, reports: int) -> bool:
        """Return whether so many more reports may wait."""
        return self._waiting == 0 or self._waiting + reports <= self._queue_reports

    @property
    def _waiting(self) -> int:
        """How many reports are not on the disk yet."""
        return self._in_flight + self._open.reports

    async def keep(self, target: Target, body: bytes, reports: int, client: bytes | None) -> bool:
        """Return whether these reports are on the disk; wait until that is known.

        Args:
            target: where they go.
            body: whole sealed reports, one after another.
            reports: how many.
            client: what the client showed, or None where nothing tells clients apart.
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
        """Commit group after group, until cancelled."""
        while True:
            await self._filled.wait()
            await self._commit_open()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _commit_open(self) -> None:
        self._filled.clear()
        group, self._open = self._open, CommitGroup()
        self._in_flight = group.reports
        began = time.perf_counter()
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._commit, group)
        except Exception as error:
            # What is not foreseen costs this group, whose senders are told so; the next one is tried.
            if self.failure is None:
                _LOG.exception("commit failed")
            self._fail(error_name(error))
        finally:
            # Whoever waits is told the truth whatever happened: only what is in `kept` is kept.
            self._in_flight = 0
            group.done.set()
        self._metrics.commit_seconds.observe(time.perf_counter() - began)
        for target in group.kept:
            labels = (target.campaign, str(target.epoch), target.stream)
            self._metrics.reports.labels(*labels).inc(group.waiting[target].reports)

    async def start(self) -> None:
        """Hand over what an earlier process left, and enter the present window.

        Raises:
            OSError: the disk is full or broken.
        """
        await asyncio.get_running_loop().run_in_executor(self._thread, self._start)

    async def turn(self, targets: Iterable[Target], refused: dict[Target, Counter[str]]) -> None:
        """Do what time brings: note what is accepted and what was refused, end a window that is over.

        Args:
            targets: what is accepted.
            refused: how many requests by reason; what is written is taken out, also where an error ends it.

        Raises:
            OSError: the disk is full or broken; the window stays as it is.
        """
        await asyncio.get_running_loop().run_in_executor(self._thread, self._turn, list(targets), refused)

    async def stop(self) -> None:
        """Commit all that waits and close the journals, which can be uploaded then. `run` must have ended."""
        await self._commit_open()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._journals.close_all)
        self._thread.shutdown()

    def _start(self) -> None:
        kept = window_files.kept_windows(self._root)
        now = self._clock.now()
        present = window_at(datetime.fromtimestamp(now, timezone.utc), self._length)
        ended_windows.note_ended(self._root, [name for name in kept if name != present.name])
        entered = self._enter_window(now)
        for name in kept:
            for journal in window_files.journals(self._root, name):
                self._hand_over(journal)
            if name != entered.name:
                self._hand_over(WindowEnd(name))

    def _turn(self, targets: list[Target], refused: dict[Target, Counter[str]]) -> None:
        try:
            window = self._enter_window(self._clock.now())
        except ClockAhead:
            return
        self._forget_failure()
        for target in list(refused):
            folder = self._add_refused(window, target, refused[target])
            # What stands in the file is counted, whatever the disk answers now.
            del refused[target]
            sync(folder)
        for target in targets:
            refusal_counts.note_target(self._root, window.name, target)

    def _add_refused(self, window: Window, target: Target, counts: Counter[str]) -> Path:
        folder = refusal_counts.note_target(self._root, window.name, target)
        try:
            refusal_counts.add_refused(folder, counts)
        except FormatError:
            damage.renew_refused(self._root, folder, target.fingerprint.hex(), self._metrics)
            refusal_counts.add_refused(folder, counts)
        return folder

    def _enter_window(self, now: float) -> Window:
        """Return the window of this moment; if another one was open, end that first.

        Raises:
            ClockAhead: the clock went too far ahead; the present window stays open, and nothing is written to it.
        """
        if self._window is None or self._left or now >= self._window.end.timestamp():
            self._require_believable(now)
            present = window_at(datetime.fromtimestamp(now, timezone.utc), self._length)
            if self._window is not None and not self._left:
                ended_windows.note_ended(self._root, [self._window.name])
                self._journals.close_all()
                self._hand_over(WindowEnd(self._window.name))
                self._left = True
            window = ended_windows.first_open_window(self._root, present, self._length)
            if window != present:
                _LOG.warning("clock went back", extra={"window": window.name})
            window_notes.set_seconds(self._root, window)
            window_notes.note_authentication(self._root, window.name, self._authentication)
            self._key = window_notes.window_key(self._root, window.name)
            self._window, self._left = window, False
            self._clock.believe(now)
        elif now >= self._window.start.timestamp():
            # It may have been behind at the start, and was set since.
            self._clock.believe(now)
        self.clock_ahead = None
        return self._window

    def _require_believable(self, now: float) -> None:
        try:
            self._clock.require_believable(now)
        except ClockAhead as error:
            if self.clock_ahead is None:
                _LOG.error("clock went ahead", extra={"seconds": round(error.seconds)})
            self.clock_ahead = error.seconds
            raise

    def _commit(self, group: CommitGroup) -> None:
        """Append a frame to the journal of each target; `group.kept` says which are on the disk."""
        for target, waiting in group.waiting.items():
            try:
                window = self._enter_window(self._clock.now())
                rows = envelopes(target, waiting, self._key, milliseconds(window))
                self._journals.append(target, window, rows)
                group.kept.add(target)
                self._journals.close_if_full(target)
            except ClockAhead:
                # Nothing failed: its senders are told so by the clock's state.
                continue
            except HushcountError as error:
                self._fail(str(error))
            except OSError as error:
                self._fail(error_name(error))
                # What was synced of it is handed over, whatever closing it answers.
                with suppress(OSError):
                    self._journals.abandon(target)

    def _fail(self, failure: str) -> None:
        self._metrics.journal_failures.inc()
        if self.failure is None:
            _LOG.error("storage failing", extra={"failure": failure})
        self.failure = failure
        self._failed = True

    def _forget_failure(self) -> None:
        """Take the disk for sound again once nothing failed from one turn to the next: a full disk comes and goes."""
        if self.failure is not None and not self._failed:
            _LOG.warning("storage recovered", extra={"failure": self.failure})
            self.failure = None
        self._failed = False
