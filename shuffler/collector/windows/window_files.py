"""What lies on the collector's disk of each window, until all of it is in the store.

    JOURNAL/lock                                        held while a collector runs
            ended                                       the newest window that ended; it is not opened again
            damaged/                                    journals with damaged frames, or that are none
            WINDOW/key                                  of the hash of client tokens
                   seconds                              length of the window
                   id                                   of its manifests' names
                   authentication                       the weakest by which its senders were told apart
                   CAMPAIGN/EPOCH-FINGERPRINT/refused.json
                                              STREAM-SERIAL-NUMBER-WAY-KEY.journal
                                              STREAM-SERIAL-NUMBER-WAY-KEY.RECORDS.BYTES.DIGEST.receipt
                                              STREAM-SERIAL-NUMBER-WAY-KEY.FRAMES.damaged

SERIAL counts a stream's journals in one window. NUMBER is random: a collector that lost its disk does not write over
segments that it wrote before. WAY and KEY come from the segment's name (`hushcount/collection/segment_names.py`). Once
a segment is in the store, its journal becomes a receipt: renamed, which is one step and needs no room on a full disk,
and emptied. A journal with damaged frames is put aside beside a new receipt; an empty file's name says how many.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hushcount.campaigns.campaign import Stream
from hushcount.collection.segment_names import MARK
from hushcount.collection.windows import is_window
from hushcount.errors import HushcountError, UsageError
from hushcount.formats.whole_files import sync
from shuffler.collector.campaigns import Target
from shuffler.collector.windows.refusal_counts import REFUSED, note_target

_FILE = re.compile(
    rf"(?P<stream>reports|discovery)-(?P<segment>(?P<serial>[0-9]{{6}})-[0-9a-f]{{8}}-{MARK})"
    r"\.(journal|(?P<records>[0-9]+)\.(?P<bytes>[0-9]+)\.(?P<digest>[0-9a-f]{64})\.receipt)"
)
_RECEIPT = ".receipt"
DAMAGED = ".damaged"
_GONE = ".gone"


@dataclass(frozen=True)
class JournalFile:
    """A journal that is not appended to any more, by what its path says.

    Attributes:
        path: of the file.
        window: name of its window.
        folder: CAMPAIGN/EPOCH-FINGERPRINT.
        stream: which stream.
        segment: name of the segment that it becomes, without the collector's name and the ending.
    """

    path: Path
    window: str
    folder: str
    stream: Stream
    segment: str


@dataclass(frozen=True)
class Receipt:
    """A segment that is in the store.

    Attributes:
        stream: which stream.
        segment: name of the segment, without the collector's name and the ending.
        records: how many envelopes it has.
        bytes: length of its file.
        digest: BLAKE2b-256 of its file, hexadecimal.
    """

    stream: Stream
    segment: str
    records: int
    bytes: int
    digest: str


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Make the directory and hold it for this process.

    Raises:
        HushcountError: another collector runs on it.
        UsageError: it cannot be made or written.
    """
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(root / "lock", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(f"cannot use journal directory {root}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise HushcountError(f"journal directory {root} is in use: stop the other collector") from None
        yield
    finally:
        os.close(descriptor)


def new_journal(root: Path, window: str, target: Target, mark: str) -> Path:
    """Return the path of the next journal of a stream in a window; its folder is there. `mark` is of its segments."""
    folder = note_target(root, window, target)
    serials = [int(match["serial"]) for match in _files(folder) if match["stream"] == target.stream]
    return folder / f"{target.stream}-{max(serials, default=0) + 1:06d}-{secrets.token_hex(4)}-{mark}.journal"


def journal_file(path: Path) -> JournalFile:
    """Return what the path of a journal says of it."""
    match = _FILE.fullmatch(path.name)
    if match is None or match["records"] is not None:
        raise HushcountError(f"{path} is not named as a journal: move it out of the directory")
    window, campaign, epoch = path.parts[-4:-1]
    return JournalFile(path, window, f"{campaign}/{epoch}", _stream(match), match["segment"])


def journals(root: Path, window: str) -> list[JournalFile]:
    """Return the journals of a window, sorted."""
    return [journal_file(path) for path in sorted((root / window).glob("*/*/*.journal"))]


def receipts(folder: Path) -> list[Receipt]:
    """Return the receipts of a campaign file in a window, sorted."""
    return [
        Receipt(_stream(match), match["segment"], int(match["records"]), int(match["bytes"]), match["digest"])
        for match in sorted(_files(folder), key=lambda match: match.string)
        if match["records"] is not None
    ]


def to_receipt(journal: JournalFile, receipt: Receipt) -> None:
    """Make a journal the receipt of its segment, which must be durable in the store."""
    path = _receipt_path(journal, receipt)
    _remove_receipts(journal)
    journal.path.rename(path)
    sync(path.parent)
    os.truncate(path, 0)


def write_receipt(journal: JournalFile, receipt: Receipt) -> None:
    """Make a receipt beside a journal that is to be put aside."""
    path = _receipt_path(journal, receipt)
    _remove_receipts(journal)
    path.touch(0o600)
    sync(path.parent)


def folders(root: Path, window: str) -> list[Path]:
    """Return the folders of campaign files in a window that have something for a manifest, sorted.

    Also one whose counts are lost: a window is not removed with receipts that no manifest names.
    """
    names = (REFUSED, f"*{_RECEIPT}", f"*{DAMAGED}")
    return sorted({path.parent for name in names for path in (root / window).glob(f"*/*/{name}")})


def remove_window(root: Path, window: str) -> None:
    """Remove all of a window, its key with it; by one renaming first, so that no half of it is taken for the whole."""
    gone = root / f"{window}{_GONE}"
    (root / window).rename(gone)
    sync(root)
    shutil.rmtree(gone)


def remove_gone(root: Path) -> None:
    """Remove what a process that was killed in `remove_window` left."""
    for path in root.glob(f"*{_GONE}"):
        shutil.rmtree(path)


def kept_windows(root: Path) -> list[str]:
    """Return the names of the windows of which something is on the disk, oldest first."""
    return sorted(path.name for path in root.iterdir() if is_window(path.name))


def _stream(match: re.Match[str]) -> Stream:
    return "reports" if match["stream"] == "reports" else "discovery"


def _remove_receipts(journal: JournalFile) -> None:
    """Remove what an earlier try left: the disk may have read otherwise then, and the segment is another now."""
    for earlier in journal.path.parent.glob(f"{journal.path.stem}.*{_RECEIPT}"):
        earlier.unlink()


def _receipt_path(journal: JournalFile, receipt: Receipt) -> Path:
    return journal.path.with_suffix(f".{receipt.records}.{receipt.bytes}.{receipt.digest}{_RECEIPT}")


def _files(folder: Path) -> Iterator[re.Match[str]]:
    for path in folder.iterdir():
        match = _FILE.fullmatch(path.name)
        if match is not None:
            yield match
