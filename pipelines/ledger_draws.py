"""A release that is drawn at random is drawn once for each key: a retried job hands out the first draw again.

A second draw from the same reports would be a second release, whatever became of the first. Who opens a release is told
by whom it comes from which one it is, and goes by what it holds: under one key one release is opened.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from hushcount.errors import HushcountError
from hushcount.files import write_new
from pipelines import ledger_input, storage
from pipelines.block_io import SUFFIX
from pipelines.ledger_file import LedgerError

_LONGEST = 1 << 36
_OPENED = ".opened"


def draw_path(ledger: Path, key: str) -> Path:
    """Return where the draw of a key is kept: beside the ledger, not in it, for a draw holds sealed values."""
    return ledger.with_name(f"{ledger.name}.draws") / f"{key}{SUFFIX}"


def fix_draw(ledger: Path, key: str, directory: str) -> None:
    """Keep the block file that was just drawn, or put the draw that is kept already in its place.

    Of two processes that draw at a time the first one's stays, and both hand it out.

    Args:
        ledger: the ledger's path.
        key: the release's.
        directory: with one block file, or none where nothing was kept.

    Raises:
        LedgerError: the draw cannot be written or read.
    """
    drawn = storage.list_files(directory, SUFFIX)
    if len(drawn) > 1:
        raise HushcountError(f"a release has {len(drawn)} files, must have at most one: report this bug")
    own = b""
    for path, _ in drawn:
        own = storage.read_bytes(path, _LONGEST)
    kept = draw_path(ledger, key)
    try:
        kept.parent.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileExistsError):
            write_new(kept, own, 0o600)
        first = kept.read_bytes()
    except OSError as error:
        raise LedgerError(f"cannot keep the draw {kept}: {error.strerror}") from None
    if first == own:
        return
    for path, _ in drawn:
        storage.remove(path)
    if first:
        storage.write_whole(storage.join(directory, f"released{SUFFIX}"), [first])


def is_first_opened(ledger: Path, key: str, opened: str) -> bool:
    """Return whether a release is the one that was drawn, or else opened first, under a key; the first is noted.

    Args:
        ledger: the ledger's path.
        key: the release's, as the auxiliary server says.
        opened: digest of the files of the release, of `ledger_input.manifest`.

    Raises:
        LedgerError: the note cannot be written or read.
    """
    kept = draw_path(ledger, key)
    note = kept.with_suffix(_OPENED)
    try:
        if kept.is_file():
            return opened == ledger_input.manifest_of([str(kept)] if kept.stat().st_size else [])
        kept.parent.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileExistsError):
            write_new(note, opened, 0o600)
        return note.read_bytes() == opened.encode()
    except OSError as error:
        raise LedgerError(f"cannot keep the note {note}: {error.strerror}") from None
