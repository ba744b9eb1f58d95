"""The journals that are appended to, one for each stream of a campaign file, all of the present window."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.windows import Window
from shuffler.collector.campaigns import Target
from shuffler.collector.journals.journal import HEADER_BYTES, MARK_BYTES, Journal, JournalHeader
from shuffler.collector.windows import window_files
from shuffler.collector.windows.window_files import JournalFile, journal_file
from shuffler.collector.windows.window_notes import segments_mark

_LOG = logging.getLogger("hushcount.collector")


@dataclass(frozen=True)
class WindowEnd:
    """Name of a window to which no journal is added any more."""

    window: str


Uploadable = JournalFile | WindowEnd
"""What the writer hands to the upload queue, in this order: a window's journals, then its end."""


class OpenJournals:
    """Journals, made when the first report of their target comes.

    Args:
        root: directory of journals.
        segment_bytes: length at which a journal is closed.
        hand_over: called with what can be uploaded.
    """

    def __init__(self, root: Path, segment_bytes: int, hand_over: Callable[[Uploadable], None]) -> None:
        self._root = root
        self._segment_bytes = segment_bytes
        self._hand_over = hand_over
        self._journals: dict[Target, Journal] = {}

    def append(self, target: Target, window: Window, records: bytes) -> None:
        """Write envelopes to the journal of a target; they are on the disk when this returns.

        Raises:
            OSError: the disk is full or broken; `abandon` the journal.
        """
        journal = self._journals.get(target)
        if journal is None:
            header = JournalHeader(
                ENVELOPES[target.stream],
                target.record_bytes,
                target.epoch,
                milliseconds(window),
                target.fingerprint,
                target.campaign,
                secrets.token_bytes(MARK_BYTES),
            )
            path = window_files.new_journal(self._root, window.name, target, segments_mark(self._root, window.name))
            journal = self._journals[target] = Journal.create(path, header)
        journal.append(records)

    def abandon(self, target: Target) -> None:
        """Give up the journal of a target, as far as it has one."""
        journal = self._journals.pop(target, None)
        if journal is not None:
            try:
                journal.abandon()
            finally:
                self._hand_over_or_remove(journal)

    def close_if_full(self, target: Target) -> None:
        """Close the journal of a target if it is as long as a segment."""
        if self._journals[target].synced >= self._segment_bytes:
            self._close(target)

    def close_all(self) -> None:
        """Close all journals."""
        for target in list(self._journals):
            self._close(target)

    def _close(self, target: Target) -> None:
        journal = self._journals.pop(target)
        try:
            journal.close()
        finally:
            # All that was acknowledged is on the disk, whatever closing answers.
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


def milliseconds(window: Window) -> int:
    """Return when a window begins, milliseconds since 1970."""
    return int(window.start.timestamp()) * 1000
