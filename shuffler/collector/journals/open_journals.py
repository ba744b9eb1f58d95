"""Groups of reports that are synced together, and the open journals, one for each target."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hushcount.collection.envelopes import ENVELOPES, TOKEN_BYTES
from hushcount.collection.windows import Window
from shuffler.collector.campaigns import Target
from shuffler.collector.journals.journal import HEADER_BYTES, MARK_BYTES, Journal, JournalHeader
from shuffler.collector.windows.manifest_counts import note_target
from shuffler.collector.windows.window_files import JournalFile, journal_file, new_journal, segments_mark

_LOG = logging.getLogger("hushcount.collector")
_MILLISECONDS = struct.Struct("<Q")


@dataclass
class WaitingReports:
    """Reports of one target in a group: bodies, and for each body its number of reports and client token."""

    bodies: list[bytes] = field(default_factory=list)
    clients: list[tuple[int, bytes | None]] = field(default_factory=list)
    reports: int = 0


@dataclass
class CommitGroup:
    """Reports that are synced together."""

    waiting: dict[Target, WaitingReports] = field(default_factory=dict)
    reports: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)  # set after the commit, even if the commit failed
    kept: set[Target] = field(default_factory=set)  # targets whose reports in this group are all on the disk


@dataclass(frozen=True)
class WindowEnd:
    """Name of a window that gets no further journal."""

    window: str


Uploadable = JournalFile | WindowEnd
"""The items that the writer hands to the upload queue: first a window's journals, then its end."""


class OpenJournals:
    """Journals, each created with the first report of its target, and closed and uploaded at `segment_bytes`."""

    def __init__(self, root: Path, segment_bytes: int, hand_over: Callable[[Uploadable], None]) -> None:
        self._root = root
        self._segment_bytes = segment_bytes
        self._hand_over = hand_over
        self._journals: dict[Target, Journal] = {}

    def append(self, target: Target, window: Window, waiting: WaitingReports, key: bytes) -> None:
        """Write a target's reports to its journal, and wait for the disk; after an OSError call `abandon`."""
        window_ms = int(window.start.timestamp()) * 1000
        rows = envelopes(target, waiting, key, window_ms)
        if target not in self._journals:
            header = JournalHeader(
                ENVELOPES[target.stream],
                target.record_bytes,
                target.epoch,
                window_ms,
                target.fingerprint,
                target.campaign,
                secrets.token_bytes(MARK_BYTES),
            )
            folder = note_target(self._root, window.name, target)
            path = new_journal(folder, target.stream, segments_mark(self._root, window.name))
            self._journals[target] = Journal.create(path, header)
        self._journals[target].append(rows)

    def abandon(self, target: Target) -> None:
        """Close a target's journal, if there is one, after a failed write; the synced part is uploaded."""
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
            # The journal is uploaded even if closing it fails, because all its acknowledged reports are on the disk.
            if journal.synced > HEADER_BYTES:
                self._hand_over(journal_file(journal.path))
            else:
                self._remove_empty(journal)

    def _remove_empty(self, journal: Journal) -> None:
        try:
            journal.path.unlink()
        except OSError:
            _LOG.warning("empty journal stays", extra={"stream": journal.header.kind.name})


def envelopes(target: Target, waiting: WaitingReports, key: bytes, window_ms: int) -> bytes:
    """Return the waiting reports' envelopes: hashed token, window's start in ms, no address, sealed report.

    Privacy: the hashed token is BLAKE2b of the client's token under the window's key. Without a client token, each
        report gets a fresh random token.
    Randomness: the operating system's cryptographic generator.
    """
    rows = np.zeros((waiting.reports, target.record_bytes), np.uint8)
    tokens = b"".join(_token(reports, client, key) for reports, client in waiting.clients)
    rows[:, :TOKEN_BYTES] = np.frombuffer(tokens, np.uint8).reshape(-1, TOKEN_BYTES)
    rows[:, TOKEN_BYTES : TOKEN_BYTES + _MILLISECONDS.size] = np.frombuffer(_MILLISECONDS.pack(window_ms), np.uint8)
    sealed = np.frombuffer(b"".join(waiting.bodies), np.uint8)
    rows[:, -target.sealed_bytes :] = sealed.reshape(-1, target.sealed_bytes)
    return rows.tobytes()


def _token(reports: int, client: bytes | None, key: bytes) -> bytes:
    if client is None:
        return secrets.token_bytes(TOKEN_BYTES * reports)
    return hashlib.blake2b(client, digest_size=TOKEN_BYTES, key=key).digest() * reports
