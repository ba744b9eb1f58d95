"""The journals open for appending: one for each target, all of the present window."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.windows import Window
from shuffler.collector.campaigns import Target
from shuffler.collector.journals.journal import HEADER_BYTES, MARK_BYTES, Journal, JournalHeader
from shuffler.collector.windows.manifest_counts import note_target
from shuffler.collector.windows.window_files import JournalFile, journal_file, new_journal
from shuffler.collector.windows.window_notes import segments_mark

_LOG = logging.getLogger("hushcount.collector")


@dataclass(frozen=True)
class WindowEnd:
    """Name of a window that gets no further journal."""

    window: str


Uploadable = JournalFile | WindowEnd
"""What the writer hands to the upload queue, in this order: a window's journals, then its end."""


class OpenJournals:
    """Journals, each made when the first report of its target comes, closed and handed over at `segment_bytes`."""

    def __init__(self, root: Path, segment_bytes: int, hand_over: Callable[[Uploadable], None]) -> None:
        self._root = root
        self._segment_bytes = segment_bytes
        self._hand_over = hand_over
        self._journals: dict[Target, Journal] = {}

    def append(self, target: Target, window: Window, records: bytes) -> None:
        """Write envelopes to a target's journal, on the disk when this returns; after an OSError `abandon` it."""
        if target not in self._journals:
            header = JournalHeader(
                ENVELOPES[target.stream],
                target.record_bytes,
                target.epoch,
                milliseconds(window),
                target.fingerprint,
                target.campaign,
                secrets.token_bytes(MARK_BYTES),
            )
            folder = note_target(self._root, window.name, target)
            path = new_journal(folder, target.stream, segments_mark(self._root, window.name))
            self._journals[target] = Journal.create(path, header)
        self._journals[target].append(records)

    def abandon(self, target: Target) -> None:
        """Give up the journal of a target, if it has one; what is synced of it is handed over."""
        if target in self._journals:
            self._end(target, Journal.abandon)

    def close_if_full(self, target: Target) -> None:
        """Close the journal of a target if it is as long as a segment."""
        if self._journals[target].synced >= self._segment_bytes:
            self._end(target, Journal.close)

    def close_all(self) -> None:
        """Close all journals."""
        for target in list(self._journals):
            self._end(target, Journal.close)

    def _end(self, target: Target, end: Callable[[Journal], None]) -> None:
        journal = self._journals.pop(target)
        try:
            end(journal)
        finally:
            # All acknowledged reports are on the disk, even if closing fails.
            if journal.synced > HEADER_BYTES:
                self._hand_over(journal_file(journal.path))
            else:
                self._remove_empty(journal)

    def _remove_empty(self, journal: Journal) -> None:
        try:
            journal.path.unlink()
        except OSError:
            _LOG.warning("empty journal stays", extra={"stream": journal.header.kind.name})


def milliseconds(window: Window) -> int:
    """Return when a window begins, milliseconds since 1970."""
    return int(window.start.timestamp()) * 1000
