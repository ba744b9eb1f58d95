"""What is to be uploaded, in which order, and what becomes of it when that fails.

A store that cannot be reached is tried again, and meanwhile the journals stay. A window that cannot be uploaded holds
up no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hushcount.errors import HushcountError
from shuffler.collector.journals.open_journals import Uploadable, WindowEnd
from shuffler.collector.logs import error_name
from shuffler.collector.metrics import Metrics
from shuffler.collector.uploads.uploader import StoreFailed, Uploader

_LOG = logging.getLogger("hushcount.collector")
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 60.0
_PROBE_SECONDS = 10.0
_PROBE = ""


@dataclass(frozen=True)
class Failure:
    """Why something could not be uploaded.

    Attributes:
        of_store: whether the store failed; else what lies on the journal's disk did.
        name: what an operator is told of the error.
    """

    of_store: bool
    name: str


class UploadQueue:
    """Does the steps for what is handed to it, one after another; windows that fail wait behind the others."""

    def __init__(self, uploader: Uploader, metrics: Metrics) -> None:
        self._uploader = uploader
        self._metrics = metrics
        self._thread = ThreadPoolExecutor(1, "store")
        self._pending: deque[Uploadable] = deque()
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        metrics.pending_uploads.set_function(lambda: len(self._pending))
        self.failures: dict[str, Failure] = {}
        """What failed when it was last tried, by window."""

    @property
    def failure(self) -> str | None:
        """How the store failed when it was last tried for some window, or looked at; None: it did not."""
        return next((failure.name for failure in self.failures.values() if failure.of_store), None)

    def hand_over(self, item: Uploadable) -> None:
        """Take something to upload; may be called in any thread."""
        self._loop.call_soon_threadsafe(self._take, item)

    async def run(self) -> None:
        """Upload what there is, until cancelled; between times see whether the store is there."""
        pause = _FIRST_PAUSE
        failed: set[str] = set()
        while True:
            if not self._pending:
                self._wake.clear()
                await _wait(self._wake, _PROBE_SECONDS)
            window = self._first
            if window in failed:
                # All others had their turn.
                failed.clear()
                self._wake.clear()
                await _wait(self._wake, pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            elif not await self._step():
                # The time between two looks at the store is pause enough.
                failed |= {window} - {_PROBE}
            elif not failed:
                pause = _FIRST_PAUSE

    async def stop(self) -> None:
        """Upload what there is, once; what the store does not take stays for the next start. `run` must have ended."""
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
        """The window of what is pending longest."""
        return self._pending[0].window if self._pending else _PROBE

    def _take(self, item: Uploadable) -> None:
        self._pending.append(item)
        self._wake.set()

    async def _step(self) -> bool:
        """Upload the oldest of what is pending, or probe the store; return whether it could be done."""
        item, window = self._pending[0] if self._pending else None, self._first
        if await self._try(item, window):
            if item is not None:
                self._pending.popleft()
            return True
        if item is not None and not self.failures[window].of_store:
            await self._try(None, _PROBE)
        # Order matters only within a window.
        self._pending = deque(sorted(self._pending, key=lambda waiting: waiting.window == window))
        return False

    async def _try(self, item: Uploadable | None, window: str) -> bool:
        try:
            await self._loop.run_in_executor(self._thread, self._do, item)
        except StoreFailed as error:
            # Whatever a client of a store raises: it is tried again, and nothing is lost meanwhile.
            self._metrics.store_failures.inc()
            name = error_name(error.__cause__)
            if self.failure is None:
                _LOG.error("store failing", extra={"failure": name}, exc_info=error.__cause__)
            self.failures[window] = Failure(True, name)
            return False
        except Exception as error:
            # What cannot be read may be put right by people: it is tried again as well.
            self._metrics.local_upload_failures.inc()
            failure = Failure(False, _name(error))
            if self.failures.get(window) != failure:
                # Where it was raised is told of what nobody foresaw.
                place = None if isinstance(error, OSError | HushcountError) else error
                _LOG.error(
                    "window cannot be uploaded", extra={"window": window, "failure": failure.name}, exc_info=place
                )
            self.failures[window] = failure
            return False
        before = self.failure
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


def _name(error: Exception) -> str:
    # Our own sentences, which say what to do, name files and numbers and nothing of what they hold.
    return str(error) if isinstance(error, HushcountError) else error_name(error)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, but no longer than so many seconds."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except asyncio.TimeoutError:
        return
