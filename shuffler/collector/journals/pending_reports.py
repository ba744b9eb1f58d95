"""How many acknowledged reports are in no manifest yet, read beside a collector that runs, changing nothing."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from hushcount.campaigns.campaign import Stream
from hushcount.collection.windows import Window, window_start
from shuffler.collector.journals.journal import FRAME_HEADER_BYTES, HEADER_BYTES, FrameHeader, JournalHeader
from shuffler.collector.windows.window_files import folders, journals, kept_windows, receipts
from shuffler.collector.windows.window_notes import seconds_of


@dataclass(frozen=True)
class PendingReports:
    """The reports of one stream of a campaign in one window, of all its epochs.

    Attributes:
        campaign: id.
        window: which.
        stream: reports or discovery.
        reports: that were acknowledged; what was uploaded since the journals were listed may be missing.
    """

    campaign: str
    window: Window
    stream: Stream
    reports: int


def pending_reports(root: Path) -> list[PendingReports]:
    """Return what the journals under a directory hold, and what segments hold that no manifest names yet.

    Raises:
        OSError: they cannot be read.
        HushcountError: a file there is none of a collector's.
        ValueError: the length of a window is damaged.
    """
    found = []
    for name in kept_windows(root):
        counts: Counter[tuple[str, Stream]] = Counter()
        try:
            window = _window(root, name)
            for journal in journals(root, name):
                counts[journal.folder.partition("/")[0], journal.stream] += _reports_in(journal.path)
            for folder in folders(root, name):
                for receipt in receipts(folder):
                    counts[folder.parent.name, receipt.stream] += receipt.records
        except FileNotFoundError:
            # Stored and removed while we looked, or only begun.
            continue
        found += [
            PendingReports(campaign, window, stream, number) for (campaign, stream), number in sorted(counts.items())
        ]
    return found


def _window(root: Path, name: str) -> Window:
    start = window_start(name)
    return Window(start, start + timedelta(seconds=seconds_of(root, name)))


def _reports_in(path: Path) -> int:
    """Return how many envelopes a journal holds, by its frames' headers; up to the first that is torn or damaged."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size, position, reports = os.fstat(descriptor).st_size, HEADER_BYTES, 0
        if size < HEADER_BYTES:
            return 0
        header = JournalHeader.decode(os.pread(descriptor, HEADER_BYTES, 0), path.name)
        while position + FRAME_HEADER_BYTES <= size:
            frame = FrameHeader.decode(os.pread(descriptor, FRAME_HEADER_BYTES, position))
            if frame is None or frame.mark != header.mark or not frame.length:
                break
            position += FRAME_HEADER_BYTES + frame.length
            if position <= size:
                reports = frame.before + frame.length // header.record_bytes
        return reports
    finally:
        os.close(descriptor)
