"""Orders uploads, and repeats failed uploads. Journals stay on the disk while the store cannot be reached.

A window that cannot be uploaded does not delay other windows.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from hushcount.errors import HushcountError
from service.logs import error_name
from shuffler.collector.journals.open_journals import Uploadable, WindowEnd
from shuffler.collector.metrics import Metrics
from shuffler.collector.uploads.uploader import StoreFailed, Uploader

_LOG = logging.getLogger("hushcount.collector")
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 60.0
_PROBE_SECONDS = 10.0
_PROBE = ""
"""Used instead of a window's name when no item is pending and the store is probed."""


@dataclass(frozen=True)
class Failure:
    """Why an upload failed: because of the store or of the journal's disk; and the error's name for operators."""

    of_store: bool
    name: str


class UploadQueue:
    """Uploads one item after another, in its own thread; a window that failed waits until other windows were tried."""

    def __init__(self, uploader: Uploader, metrics: Metrics) -> None:
        self._uploader = uploader
        self._metrics = metrics
        self._thread = ThreadPoolExecutor(1, "store")
        self._pending: deque[Uploadable] = deque()
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        metrics.pending_uploads.set_function(lambda: len(self._pending))
        self.failures: dict[str, Failure] = {}
        """By window, why the last try failed; a window is removed when a try succeeds."""

    @property
    def failure(self) -> str | None:
        """The error of the store at the last try or probe, or None."""
        return next((failure.name for failure in self.failures.values() if failure.of_store), None)

    def hand_over(self, item: Uploadable) -> None:
        """Queue an item, from any thread."""
        self._loop.call_soon_threadsafe(self._take, item)

    async def run(self) -> None:
        """Upload pending items, until cancelled; while no item is pending, probe the store."""
        pause = _FIRST_PAUSE
        failed: set[str] = set()
        while True:
            if not self._pending:
                await self._sleep(_PROBE_SECONDS)
            window = self._first
            if window in failed:
                # All other windows were tried since this window failed.
                failed.clear()
                await self._sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            elif not await self._step():
                # A failed probe needs no further pause, because probes are seconds apart.
                failed |= {window} - {_PROBE}
            elif not failed:
                pause = _FIRST_PAUSE

    async def stop(self) -> None:
        """Try each upload once; the next start tries failed uploads again. `run` must have ended."""
        failed: set[str] = set()
        while self._pending and self._first not in failed:
            window = self._first
            if not await self._step():
                failed.add(window)
                if self.failures[window].of_store:
                    break
        if self._pending:
            names = sorted({failure.name for failure in self.failures.values()})
            _LOG.error("journals stay", extra={"pending_uploads": len(self._pending), "failure": ", ".join(names)})
        self._thread.shutdown()

    @property
    def _first(self) -> str:
        """The window of the oldest pending item."""
        return self._pending[0].window if self._pending else _PROBE

    def _take(self, item: Uploadable) -> None:
        self._pending.append(item)
        self._wake.set()

    async def _sleep(self, seconds: float) -> None:
        """Sleep until an item is queued, but at most this number of seconds."""
        self._wake.clear()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)

    async def _step(self) -> bool:
        """Upload the oldest pending item, or probe the store; return whether the upload or the probe succeeded."""
        item, window = self._pending[0] if self._pending else None, self._first
        if await self._try(item, window):
            if item is not None:
                self._pending.popleft()
            return True
        if item is not None and not self.failures[window].of_store:
            await self._try(None, _PROBE)
        # Items of the failed window are moved to the end: only the order within a window matters.
        self._pending = deque(sorted(self._pending, key=lambda waiting: waiting.window == window))
        return False

    async def _try(self, item: Uploadable | None, window: str) -> bool:
        before = self.failure
        try:
            await self._loop.run_in_executor(self._thread, self._do, item)
        except StoreFailed as error:
            # After any error of the store's client the upload is tried again, and the journal is kept on the disk
            # meanwhile.
            self._metrics.store_failures.inc()
            self.failures[window] = Failure(True, error_name(error.__cause__))
            if before is None:
                _LOG.error("store failing", extra={"failure": self.failure}, exc_info=error.__cause__)
            return False
        except Exception as error:
            # After any other error the upload is tried again too, because an operator may repair an unreadable file.
            self._metrics.local_upload_failures.inc()
            ours = isinstance(error, HushcountError)
            # Hushcount's own messages may be logged, because they name files and numbers, but never quote the contents
            # of files.
            failure = Failure(False, str(error) if ours else error_name(error))
            if self.failures.get(window) != failure:
                # For an unforeseen error, the log also says where it was raised.
                place = None if ours or isinstance(error, OSError) else error
                _LOG.error(
                    "window cannot be uploaded", extra={"window": window, "failure": failure.name}, exc_info=place
                )
            self.failures[window] = failure
            return False
        for name in (window, _PROBE):
            self.failures.pop(name, None)
        if before is not None and self.failure is None:
            _LOG.warning("store recovered", extra={"failure": before})
        return True

    def _do(self, item: Uploadable | None) -> None:
        if item is None:
            self._uploader.check_store()
        elif isinstance(item, WindowEnd):
            self._uploader.upload_manifests(item.window)
        elif item.path.exists():
            self._uploader.upload_segment(item)
