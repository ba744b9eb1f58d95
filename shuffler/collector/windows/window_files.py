"""The files of each window on the collector's disk, until all data of the window are in the store.

    JOURNAL/lock                                        locked while a collector runs
            over                                        end of the newest window that is over; none before it opens
            damaged/                                    journals with damaged frames, and other damaged files
            WINDOW/key                                  key of the hash of client tokens
                   seconds                              length of the window
                   id                                   in the names of its manifests
                   authentication                       the weakest authentication of its senders
                   CAMPAIGN/EPOCH-FINGERPRINT/refused.json
                                              STREAM-SERIAL-NUMBER-WAY-KEY.journal
                                              STREAM-SERIAL-NUMBER-WAY-KEY.RECORDS.BYTES.DIGEST.receipt
                                              STREAM-SERIAL-NUMBER-WAY-KEY.FRAMES.damaged

SERIAL counts a stream's journals in one window. NUMBER is random, so that a collector that lost its disk does not
overwrite its earlier segments. WAY and KEY are parts of the segment's name (`hushcount/collection/segment_names.py`).
When a segment is in the store, its journal becomes a receipt: the journal's file is renamed, which is atomic and needs
no space on a full disk, and is then emptied. A journal with damaged frames is moved to damaged/, and a receipt is
created for its whole frames. An empty file with the ending `.damaged` has in its name the number of the journal's
damaged frames (FRAMES).
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hushcount.campaigns.campaign import Stream
from hushcount.collection.segment_names import MARK, mark
from hushcount.errors import HushcountError
from hushcount.formats.whole_files import sync
from service.window_notes import authentication_of, window_key

REFUSED = "refused.json"
DAMAGED = ".damaged"
_RECEIPT = ".receipt"
_FILE = re.compile(
    rf"(?P<stream>reports|discovery)-(?P<segment>(?P<serial>[0-9]{{6}})-[0-9a-f]{{8}}-{MARK})"
    r"\.(journal|(?P<records>[0-9]+)\.(?P<bytes>[0-9]+)\.(?P<digest>[0-9a-f]{64})\.receipt)"
)


@dataclass(frozen=True)
class JournalFile:
    """The facts that the path of a closed journal states."""

    path: Path
    window: str  # name of the window
    folder: str  # CAMPAIGN/EPOCH-FINGERPRINT
    stream: Stream
    segment: str  # name of its future segment, without the collector's name and the ending


@dataclass(frozen=True)
class Receipt:
    """A segment in the store."""

    stream: Stream
    segment: str  # name of the segment, without the collector's name and the ending
    records: int  # how many envelopes the segment has
    bytes: int  # length of the segment's file
    digest: str  # BLAKE2b-256 of the segment's file, hexadecimal


def segments_mark(root: Path, window: str) -> str:
    """Return WAY-KEY for the names of the segments of a window's next journals."""
    return mark(authentication_of(root, window), window_key(root, window))


def new_journal(folder: Path, stream: Stream, mark: str) -> Path:
    """Return a path for the next journal of a stream in `folder`; `mark` is WAY-KEY of the journal's segment."""
    serials = [int(match["serial"]) for match in _files(folder) if match["stream"] == stream]
    return folder / f"{stream}-{max(serials, default=0) + 1:06d}-{secrets.token_hex(4)}-{mark}.journal"


def journal_file(path: Path) -> JournalFile:
    """Parse the path of a journal."""
    match = _FILE.fullmatch(path.name)
    if match is None or match["records"] is not None:
        raise HushcountError(f"{path} does not have a journal's name: move it out of the directory")
    window, campaign, epoch = path.parts[-4:-1]
    return JournalFile(path, window, f"{campaign}/{epoch}", _stream(match), match["segment"])


def journals(root: Path, window: str) -> list[JournalFile]:
    """Return the journals of a window, sorted."""
    return [journal_file(path) for path in sorted((root / window).glob("*/*/*.journal"))]


def receipts(folder: Path) -> list[Receipt]:
    """Return the receipts in a folder, sorted."""
    return [
        Receipt(_stream(match), match["segment"], int(match["records"]), int(match["bytes"]), match["digest"])
        for match in sorted(_files(folder), key=lambda match: match.string)
        if match["records"] is not None
    ]


def to_receipt(journal: JournalFile, receipt: Receipt) -> None:
    """Turn a journal into the receipt of its segment, which must be durable in the store."""
    path = _receipt_path(journal, receipt)
    journal.path.rename(path)
    sync(path.parent)
    os.truncate(path, 0)


def write_receipt(journal: JournalFile, receipt: Receipt) -> None:
    """Make a receipt beside a journal that will move to damaged/."""
    path = _receipt_path(journal, receipt)
    path.touch(0o600)
    sync(path.parent)


def folders(root: Path, window: str) -> list[Path]:
    """Return the CAMPAIGN/EPOCH-FINGERPRINT folders of a window that need a manifest, sorted.

    A folder with receipts needs a manifest even if its refused.json is lost, because otherwise the window would be
    removed although no manifest names its receipts.
    """
    names = (REFUSED, f"*{_RECEIPT}", f"*{DAMAGED}")
    return sorted({path.parent for name in names for path in (root / window).glob(f"*/*/{name}")})


def _stream(match: re.Match[str]) -> Stream:
    return "reports" if match["stream"] == "reports" else "discovery"


def _receipt_path(journal: JournalFile, receipt: Receipt) -> Path:
    """Return the path of a receipt.

    Remove receipts of earlier tries, because these may state another digest if the disk read other bytes.
    """
    for earlier in journal.path.parent.glob(f"{journal.path.stem}.*{_RECEIPT}"):
        earlier.unlink()
    return journal.path.with_suffix(f".{receipt.records}.{receipt.bytes}.{receipt.digest}{_RECEIPT}")


def _files(folder: Path) -> Iterator[re.Match[str]]:
    matches = (_FILE.fullmatch(path.name) for path in folder.iterdir())
    return (match for match in matches if match is not None)
