"""The steps of an upload: write a segment of each journal to the store, and then the manifests of the window.

Each step has the same result if it runs again, so the process may be killed at any point.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hushcount.campaigns.campaign import Stream
from hushcount.collection.manifests import Manifest, SegmentPart, divided, manifest_name
from hushcount.collection.tilings import Tiling
from hushcount.errors import FormatError
from hushcount.wire.blocks import Header, encode_blocks
from service import window_folders, window_notes
from service.store import WriteWhole
from shuffler.collector.journals.journal import JournalHeader, recover
from shuffler.collector.metrics import Metrics
from shuffler.collector.windows import manifest_counts, window_files
from shuffler.collector.windows.window_files import JournalFile, Receipt

_LOG = logging.getLogger("hushcount.collector")


class StoreFailed(Exception):
    """The store failed; `__cause__` is the store client's error."""


@dataclass
class Uploader:
    """Uploads from one journal directory to one store. All errors except StoreFailed come from the local disk."""

    root: Path  # directory of journals
    segments: str  # folder in the store
    collector: str  # name of the collector
    write_whole: WriteWhole
    probe: Callable[[], None]  # raises if the store cannot be reached
    fingerprint_of: Callable[[str], str | None]  # takes CAMPAIGN/EPOCH-FINGERPRINT; None: not collected
    metrics: Metrics
    tiling: Tiling  # tells the length of a window that has no note of its length
    # Paths of manifests that were written already, of windows with a manifest that was not written yet.
    _manifests: set[str] = field(default_factory=set)

    def check_store(self) -> None:
        """Raise StoreFailed if the store cannot be reached."""
        _in_store(self.probe)

    def upload_segment(self, journal: JournalFile) -> None:
        """Write the segment of a journal to the store, and turn the journal into the segment's receipt."""
        try:
            recovered = recover(journal.path.read_bytes(), journal.path.name)
        except FormatError:
            # Without the header, not even the campaign of the journal's reports is known, so no segment is written.
            self._put_aside(journal, damaged=1, reports=0)
            return
        if recovered.torn_bytes:
            _LOG.info("journal ends in a part of a frame", extra={"window": journal.window, "stream": journal.stream})
        receipt = None
        if recovered.header is not None and recovered.records:
            receipt = self._write_segment(journal, recovered.header, recovered.records)
        if recovered.damaged:
            self._put_aside(journal, recovered.damaged, recovered.damaged_records, receipt)
            return
        manifest_counts.note_damage(journal, 0)
        if receipt is not None:
            window_files.to_receipt(journal, receipt)
        else:
            journal.path.unlink()

    def _write_segment(self, journal: JournalFile, of: JournalHeader, records: bytes) -> Receipt:
        header = Header(of.kind, of.record_bytes, len(records) // of.record_bytes, of.campaign, of.campaign_id)
        digest = hashlib.blake2b(digest_size=32)
        name = self._segment_name(journal.segment)
        path = f"{self.segments}/{journal.folder}/{journal.window}/{journal.stream}/{name}"
        _in_store(lambda: self.write_whole(path, _digested(encode_blocks(header, records), digest.update)))
        self.metrics.segments.inc()
        _LOG.info("segment written", extra={"window": journal.window, "segment": name, "reports": header.records})
        return Receipt(journal.stream, journal.segment, header.records, header.file_bytes, digest.hexdigest())

    def _put_aside(self, journal: JournalFile, damaged: int, reports: int, receipt: Receipt | None = None) -> None:
        """Count the damage for the manifest, and move the damaged journal aside for an operator."""
        manifest_counts.note_damage(journal, damaged)
        if receipt is not None:
            window_files.write_receipt(journal, receipt)
        manifest_counts.put_aside(self.root, journal)
        self.metrics.damaged_frames.inc(damaged)
        self.metrics.damaged.inc(reports)
        facts = {"window": journal.window, "stream": journal.stream, "frames": damaged, "reports": reports}
        _LOG.error("journal damaged", extra=facts)

    def upload_manifests(self, window: str) -> None:
        """Write the manifests of a window that ended, and remove the window from the disk."""
        if not (self.root / window).exists():
            # An earlier try may have been stopped while it removed the window, so the remaining files, with the
            # window's key, are deleted now.
            window_folders.remove_gone(self.root)
            return
        for journal in window_files.journals(self.root, window):
            # The queue has a window's journals before the window's end. A journal that is still here is uploaded now,
            # because its reports would be lost with the window.
            self.upload_segment(journal)
        blocked: Exception | None = None
        id = window_notes.manifest_id(self.root, window)
        for folder in window_files.folders(self.root, window):
            try:
                manifests = self._manifests_of(window, folder, id)
            except Exception as error:
                # The window is kept on the disk, but the manifests of other campaign files are still written.
                blocked = error
                continue
            for name, manifest in manifests.items():
                path = f"{self.segments}/{folder.parent.name}/{folder.name}/{window}/{name}"
                if path not in self._manifests:
                    data = manifest.model_dump_json(indent=2).encode() + b"\n"
                    _in_store(partial(self.write_whole, path, [data]))
                    self.metrics.manifests.inc()
                    self._manifests.add(path)
        if blocked is not None:
            raise blocked
        window_folders.remove_window(self.root, window)
        self._manifests = {path for path in self._manifests if path.split("/")[-2] != window}
        _LOG.info("window uploaded", extra={"window": window})

    def _manifests_of(self, window: str, folder: Path, id: str) -> dict[str, Manifest]:
        """Return a campaign file's manifests of a window, by name; one manifest if it can list all segments."""
        fingerprint = self.fingerprint_of(f"{folder.parent.name}/{folder.name}")
        counts = manifest_counts.read_counts(self.root, folder, fingerprint, self.metrics)
        segments: dict[Stream, list[SegmentPart]] = {}
        for receipt in window_files.receipts(folder):
            part = SegmentPart(
                name=self._segment_name(receipt.segment),
                records=receipt.records,
                bytes=receipt.bytes,
                digest=receipt.digest,
            )
            segments.setdefault(receipt.stream, []).append(part)
        seconds = window_notes.seconds_or(self.root, window, self.tiling)
        return {
            manifest_name(self.collector, of_part): Manifest(
                collector=self.collector,
                campaign=folder.parent.name,
                epoch=int(folder.name.partition("-")[0]),
                fingerprint=counts.fingerprint,
                window=window,
                seconds=seconds,
                authentication=window_notes.authentication_of(self.root, window),
                segments=listed,
                # Readers add up the counts of all manifests, so only one manifest has them.
                refused=counts.refused if of_part == id else {},
                damaged=manifest_counts.damage_in(folder) if of_part == id else 0,
            )
            for of_part, listed in divided(segments, id)
        }

    def _segment_name(self, segment: str) -> str:
        return f"{self.collector}-{segment}.blocks"


def _in_store(work: Callable[[], None]) -> None:
    try:
        work()
    except Exception as error:
        raise StoreFailed from error


def _digested(parts: Iterable[bytes], update: Callable[[bytes], None]) -> Iterator[bytes]:
    for part in parts:
        update(part)
        yield part
