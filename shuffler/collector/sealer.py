"""From journals to the store: segments, and a manifest when a window has ended and all its segments are there.

Every step can be done again with the same result, so that it may be killed anywhere; a store that cannot be reached is
tried again, and meanwhile the journals stay.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hushcount.blocks import Header, encode_blocks
from hushcount.campaign import Stream
from hushcount.errors import FormatError
from hushcount.manifests import SUFFIX, Manifest, SegmentPart
from shuffler.collector import damage, window_files
from shuffler.collector.journal import JournalHeader
from shuffler.collector.metrics import Metrics
from shuffler.collector.open_journals import Ended, Sealable
from shuffler.collector.recovery import recover
from shuffler.collector.window_files import JournalFile, Noted, Receipt

_LOG = logging.getLogger("hushcount.collector")
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 60.0
_PROBE_SECONDS = 10.0
WriteWhole = Callable[[str, Iterable[bytes]], None]
"""Writes a file of the store; it is whole and durable when this returns."""


class Sealer:
    """Carries what is handed to it to the store, one after another.

    Args:
        root: directory of journals.
        segments: folder of segments in the store.
        collector: name of this collector.
        write_whole: writes to the store.
        probe: raises if the store cannot be reached.
        fingerprint_of: the fingerprint of the campaign file of a folder CAMPAIGN/EPOCH-FINGERPRINT, hexadecimal, or
            None where that is not collected any more.
        metrics: to count in.
    """

    def __init__(
        self,
        root: Path,
        segments: str,
        collector: str,
        write_whole: WriteWhole,
        probe: Callable[[], None],
        fingerprint_of: Callable[[str], str | None],
        metrics: Metrics,
    ) -> None:
        self._root = root
        self._segments = segments.rstrip("/")
        self._collector = collector
        self._write_whole = write_whole
        self._probe = probe
        self._fingerprint_of = fingerprint_of
        self._metrics = metrics
        self._thread = ThreadPoolExecutor(1, "store")
        self._pending: deque[Sealable] = deque()
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.failure: str | None = None
        """What the store answered when it was last used; None: nothing."""

    def hand_over(self, item: Sealable) -> None:
        """Take something to seal; may be called in any thread."""
        self._pending.append(item)
        self._loop.call_soon_threadsafe(self._wake.set)

    async def run(self) -> None:
        """Seal what there is, until cancelled; between times see whether the store is there."""
        pause = _FIRST_PAUSE
        while True:
            self._metrics.unsealed.set(len(self._pending))
            if not self._pending:
                self._wake.clear()
                await _wait(self._wake, _PROBE_SECONDS)
            if await self._step():
                pause = _FIRST_PAUSE
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def stop(self) -> None:
        """Seal what there is, once; what the store does not take stays for the next start. `run` must have ended."""
        while self._pending and await self._step():
            pass
        if self._pending:
            _LOG.error("journals stay", extra={"unsealed": len(self._pending), "failure": self.failure})
        self._thread.shutdown()

    async def _step(self) -> bool:
        """Seal the oldest of what is pending, or probe the store; return whether it could be done."""
        item = self._pending[0] if self._pending else None
        try:
            await self._loop.run_in_executor(self._thread, self._do, item)
        except Exception as error:
            # Whatever a client of a store raises: it is tried again, and nothing is lost meanwhile.
            self._metrics.store_failures.inc()
            name = type(error).__name__
            if self.failure is None:
                _LOG.error("store failing", extra={"failure": name})
            self.failure = name
            return False
        if self.failure is not None:
            _LOG.warning("store recovered", extra={"failure": self.failure})
            self.failure = None
        if item is not None:
            self._pending.popleft()
        return True

    def _do(self, item: Sealable | None) -> None:
        if item is None:
            self._probe()
        elif isinstance(item, Ended):
            self._close(item.window)
        elif item.path.exists():
            self._seal(item)

    def _seal(self, journal: JournalFile) -> None:
        try:
            recovered = recover(journal.path.read_bytes(), journal.path.name)
        except FormatError:
            # Not even whose reports these are is certain.
            self._put_aside(journal, damaged=1, reports=0)
            return
        if recovered.torn_bytes:
            _LOG.info("journal ends in a part of a frame", extra={"window": journal.window, "stream": journal.stream})
        receipt = None
        if recovered.header is not None and recovered.records:
            receipt = self._write_segment(journal, recovered.header, recovered.records)
        if recovered.damaged:
            self._put_aside(journal, recovered.damaged, recovered.damaged_records, receipt)
        elif receipt is not None:
            window_files.to_receipt(journal, receipt)
        else:
            journal.path.unlink()

    def _write_segment(self, journal: JournalFile, of: JournalHeader, records: bytes) -> Receipt:
        header = Header(of.kind, of.record_bytes, len(records) // of.record_bytes, of.campaign, of.campaign_id)
        digest = hashlib.blake2b(digest_size=32)
        name = segment_name(self._collector, journal.segment)
        path = f"{self._segments}/{journal.folder}/{journal.window}/{journal.stream}/{name}"
        self._write_whole(path, _digested(encode_blocks(header, records), digest.update))
        self._metrics.segments.inc()
        _LOG.info("segment written", extra={"window": journal.window, "segment": name, "reports": header.records})
        return Receipt(journal.stream, journal.segment, header.records, header.file_bytes, digest.hexdigest())

    def _put_aside(self, journal: JournalFile, damaged: int, reports: int, receipt: Receipt | None = None) -> None:
        """Note how much of a journal is damaged, for the manifest, and keep the journal for people to look at."""
        damage.note_damage(journal, damaged)
        if receipt is not None:
            window_files.write_receipt(journal, receipt)
        damage.put_aside(self._root, journal)
        self._metrics.damaged_frames.inc(damaged)
        self._metrics.damaged.inc(reports)
        facts = {"window": journal.window, "stream": journal.stream, "frames": damaged, "reports": reports}
        _LOG.error("journal damaged", extra=facts)

    def _close(self, window: str) -> None:
        if not (self._root / window).exists():
            return
        for folder in window_files.folders(self._root, window):
            noted = self._noted(window, folder)
            campaign = folder.parent.name
            segments: dict[Stream, tuple[SegmentPart, ...]] = {}
            for receipt in window_files.receipts(folder):
                part = SegmentPart(
                    name=segment_name(self._collector, receipt.segment),
                    records=receipt.records,
                    bytes=receipt.bytes,
                    digest=receipt.digest,
                )
                segments[receipt.stream] = (*segments.get(receipt.stream, ()), part)
            manifest = Manifest(
                collector=self._collector,
                campaign=campaign,
                epoch=int(folder.name.partition("-")[0]),
                fingerprint=noted.fingerprint,
                window=window,
                seconds=window_files.seconds_of(self._root, window),
                segments=segments,
                refused=noted.refused,
                damaged=damage.damage_noted(folder),
            )
            path = f"{self._segments}/{campaign}/{folder.name}/{window}/{self._collector}{SUFFIX}"
            self._write_whole(path, [manifest.model_dump_json(indent=2).encode() + b"\n"])
            self._metrics.manifests.inc()
        window_files.remove_window(self._root, window)
        _LOG.info("window sealed", extra={"window": window})

    def _noted(self, window: str, folder: Path) -> Noted:
        try:
            return window_files.read_noted(folder)
        except FormatError:
            fingerprint = self._fingerprint_of(f"{folder.parent.name}/{folder.name}")
            if fingerprint is None:
                raise
            damage.renew_refused(self._root, folder, fingerprint)
            self._metrics.damaged_counts.inc()
            _LOG.error("counts of refusals damaged", extra={"window": window, "campaign": folder.parent.name})
            return Noted(fingerprint=fingerprint)


def segment_name(collector: str, segment: str) -> str:
    """Return the name of a segment's file."""
    return f"{collector}-{segment}.blocks"


def _digested(parts: Iterable[bytes], update: Callable[[bytes], None]) -> Iterator[bytes]:
    for part in parts:
        update(part)
        yield part


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, but no longer than so many seconds."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except asyncio.TimeoutError:
        return
