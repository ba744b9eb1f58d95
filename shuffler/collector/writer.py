"""Group commit: reports wait in a bounded queue, and all that wait are written and synced at once.

An event loop puts reports in; one thread of the writer's own does what may wait for the disk. All journals and the
present window belong to that thread.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from hushcount.envelopes import ENVELOPES
from hushcount.windows import Window, window_at
from shuffler.collector import window_files
from shuffler.collector.epochs import Target
from shuffler.collector.groups import Group, Waiting, envelopes
from shuffler.collector.journal import HEADER_BYTES, MARK_BYTES, Journal, JournalHeader
from shuffler.collector.metrics import Metrics
from shuffler.collector.window_files import JournalFile, journal_file

_LOG = logging.getLogger("hushcount.collector")
_PAUSE_SECONDS = 0.002
Clock = Callable[[], float]


@dataclass(frozen=True)
class Ended:
    """Name of a window to which no journal is added any more."""

    window: str


Sealable = JournalFile | Ended
"""What the writer hands to the sealer, in this order: a window's journals, then its end."""


class Writer:
    """The queue, the journals and the present window.

    Args:
        root: directory of journals, locked by this process.
        length: of windows.
        segment_bytes: length at which a journal is closed.
        queue_reports: how many reports may wait.
        hand_over: called, in the writer's thread, with what can be sealed.
        metrics: to count in.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        root: Path,
        length: timedelta,
        segment_bytes: int,
        queue_reports: int,
        hand_over: Callable[[Sealable], None],
        metrics: Metrics,
        clock: Clock = time.time,
    ) -> None:
        self._root = root
        self._length = length
        self._segment_bytes = segment_bytes
        self._queue_reports = queue_reports
        self._hand_over = hand_over
        self._metrics = metrics
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "journal")
        self._open = Group()
        self._in_flight = 0
        self._filled = asyncio.Event()
        self._journals: dict[Target, Journal] = {}
        self._window: Window | None = None
        self._key = b""
        self.failure: str | None = None
        """What the disk answered of late when it could not be written to; None: it could."""
        self._failed = False

    @property
    def window(self) -> Window | None:
        """The window of the reports that are written now; None before the first turn."""
        return self._window

    def has_room(self, reports: int) -> bool:
        """Return whether so many more reports may wait."""
        waiting = self._in_flight + self._open.reports
        return waiting == 0 or waiting + reports <= self._queue_reports

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
            waiting = group.waiting[target] = Waiting()
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
        group, self._open = self._open, Group()
        self._in_flight = group.reports
        self._metrics.waiting.set(group.reports)
        began = time.perf_counter()
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._commit, group)
        except Exception as error:
            # What is not foreseen costs this group, whose senders are told so; the next one is tried.
            _LOG.exception("commit failed")
            self._fail(type(error).__name__)
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

    async def turn(self, targets: Iterable[Target], refused: Mapping[tuple[Target, str], int]) -> None:
        """Do what time brings: note what is accepted and what was refused, end a window that is over.

        Raises:
            OSError: the disk is full or broken; the window stays as it is.
        """
        await asyncio.get_running_loop().run_in_executor(self._thread, self._turn, list(targets), dict(refused))

    async def stop(self) -> None:
        """Commit all that waits and close the journals, which can be sealed then. `run` must have ended."""
        await self._commit_open()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close_all)
        self._thread.shutdown()

    def _start(self) -> None:
        kept = window_files.kept_windows(self._root)
        present = window_at(datetime.fromtimestamp(self._clock(), timezone.utc), self._length)
        window_files.set_ended(self._root, [name for name in kept if name != present.name])
        entered = window_files.first_open(self._root, present, self._length)
        for name in kept:
            for journal in window_files.journals(self._root, name):
                self._hand_over(journal)
            if name != entered.name:
                self._hand_over(Ended(name))
        self._enter_window()

    def _turn(self, targets: list[Target], refused: dict[tuple[Target, str], int]) -> None:
        window = self._enter_window()
        self._forget_failure()
        for (target, reason), number in refused.items():
            window_files.add_refused(self._root, window.name, target, {reason: number})
        for target in targets:
            window_files.note_target(self._root, window.name, target)

    def _enter_window(self) -> Window:
        """Return the window of this moment; if another one was open, end that first."""
        now = self._clock()
        if self._window is None or now >= self._window.end.timestamp():
            present = window_at(datetime.fromtimestamp(now, timezone.utc), self._length)
            if self._window is not None:
                window_files.set_ended(self._root, [self._window.name])
                self._close_all()
                self._hand_over(Ended(self._window.name))
                self._window = None
            entered = window_files.first_open(self._root, present, self._length)
            if entered != present:
                _LOG.warning("clock went back", extra={"window": entered.name})
            window_files.set_seconds(self._root, entered)
            self._key = window_files.window_key(self._root, entered.name)
            self._window = entered
        return self._window

    def _commit(self, group: Group) -> None:
        """Append a frame to the journal of each target; `group.kept` says which are on the disk."""
        for target, waiting in group.waiting.items():
            try:
                window = self._enter_window()
                journal = self._journals.get(target)
                if journal is None:
                    journal = self._journals[target] = self._new_journal(target, window)
                journal.append(envelopes(target, waiting, self._key, journal.header.window_ms))
            except OSError as error:
                self._fail(errno.errorcode.get(error.errno or 0, type(error).__name__))
                self._abandon(target)
                continue
            group.kept.add(target)
            if journal.synced >= self._segment_bytes:
                self._close(target)

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

    def _abandon(self, target: Target) -> None:
        """Give up the journal of a target, as far as it has one."""
        journal = self._journals.pop(target, None)
        if journal is not None:
            journal.abandon()
            self._hand_over_or_remove(journal)

    def _new_journal(self, target: Target, window: Window) -> Journal:
        header = JournalHeader(
            ENVELOPES[target.stream],
            target.record_bytes,
            target.epoch,
            int(window.start.timestamp()) * 1000,
            target.fingerprint,
            target.campaign,
            secrets.token_bytes(MARK_BYTES),
        )
        return Journal.create(window_files.new_journal(self._root, window.name, target), header)

    def _close_all(self) -> None:
        for target in list(self._journals):
            self._close(target)

    def _close(self, target: Target) -> None:
        journal = self._journals.pop(target)
        journal.close()
        self._hand_over_or_remove(journal)

    def _hand_over_or_remove(self, journal: Journal) -> None:
        if journal.synced > HEADER_BYTES:
            self._hand_over(journal_file(journal.path))
        else:
            # Nothing in it was ever acknowledged.
            try:
                os.unlink(journal.path)
            except OSError:
                _LOG.warning("empty journal stays", extra={"stream": journal.header.kind.name})
