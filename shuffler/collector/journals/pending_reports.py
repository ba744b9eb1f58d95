"""Counts acknowledged reports that are in no manifest yet.

Counting only reads files, so a collector may run meanwhile.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from hushcount.campaigns.campaign import Stream
from hushcount.collection.windows import Window, window_start
from service.window_folders import kept_windows
from service.window_notes import seconds_of
from shuffler.collector.journals.journal import FRAME_HEADER_BYTES, HEADER_BYTES, FrameHeader, JournalHeader
from shuffler.collector.windows.window_files import folders, journals, receipts


@dataclass(frozen=True)
class PendingReports:
    """Acknowledged reports of one stream of a campaign in one window, of all its epochs."""

    campaign: str
    window: Window
    stream: Stream
    reports: int


def pending_reports(root: Path) -> list[PendingReports]:
    """Count the reports in a collector's journals, and in segments that no manifest names yet.

    A segment that was uploaded after the journals were listed may be missing from the count.

    Raises:
        OSError: the directory cannot be read.
        HushcountError: a file in the directory was not written by a collector.
        ValueError: the note of a window's length is damaged.
    """
    pending = []
    for name in kept_windows(root):
        counts: Counter[tuple[str, Stream]] = Counter()
        try:
            start = window_start(name)
            window = Window(start, start + timedelta(seconds=seconds_of(root, name)))
            for journal in journals(root, name):
                counts[journal.folder.partition("/")[0], journal.stream] += _reports_in(journal.path)
            for folder in folders(root, name):
                for receipt in receipts(folder):
                    counts[folder.parent.name, receipt.stream] += receipt.records
        except FileNotFoundError:
            # The collector removed this window meanwhile, or is still creating it, so the window is skipped.
            continue
        for (campaign, stream), number in sorted(counts.items()):
            pending.append(PendingReports(campaign, window, stream, number))
    return pending


def _reports_in(path: Path) -> int:
    """Count a journal's envelopes by the headers of its frames, up to the first torn or damaged frame."""
    with path.open("rb") as stream:
        raw = stream.read(HEADER_BYTES)
        if len(raw) < HEADER_BYTES:
            return 0
        header = JournalHeader.decode(raw, path.name)
        size, position, reports = os.fstat(stream.fileno()).st_size, HEADER_BYTES, 0
        while True:
            frame = FrameHeader.decode(os.pread(stream.fileno(), FRAME_HEADER_BYTES, position))
            if frame is None or frame.mark != header.mark or not frame.length:
                return reports
            position += FRAME_HEADER_BYTES + frame.length
            if position <= size:
                reports = frame.before + frame.length // header.record_bytes
