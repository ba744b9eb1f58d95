"""A release that is drawn at random is drawn once for each key: a retried job hands out the first draw again.

A second draw from the same reports would be a second release, whatever became of the first. A draw lies beside its
ledger; its digest stands in the row of its charge, so that one which lies beside another name of the ledger is noticed
before it is handed out.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from hushcount.errors import HushcountError
from hushcount.formats.whole_files import sync, write_new
from pipelines.files import storage
from pipelines.files.block_files import SUFFIX
from pipelines.ledger import input
from pipelines.ledger.file import LedgerError, resolved

_LONGEST = 1 << 36


def draw_path(ledger: Path, key: str) -> Path:
    """Return where the draw of a key is kept: beside the ledger, not in it, for a draw holds sealed values."""
    ledger = resolved(ledger)
    return ledger.with_name(f"{ledger.name}.draws") / f"{key}{SUFFIX}"


def digest_of_draw(ledger: Path, key: str) -> str | None:
    """Return the digest of the draw of a key, as of a directory that holds its file; None if none is kept here."""
    kept = draw_path(ledger, key)
    try:
        return input.manifest_of([str(kept)] if kept.stat().st_size else [])
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"cannot read the draw {kept}: {error.strerror}") from None


def fix_draw(ledger: Path, key: str, directory: str) -> str:
    """Keep the block file that was just drawn, or put the draw that is kept already in its place.

    Of two processes that draw at a time the first one's stays, and both hand it out. It is on the disk before it is
    charged.

    Args:
        ledger: the ledger's path.
        key: the release's.
        directory: with one block file, or none where nothing was kept.

    Returns:
        The digest of what the directory holds now.

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
        for directory_of in (kept.parent, kept.parent.parent):
            sync(directory_of)
        first = kept.read_bytes()
    except OSError as error:
        raise LedgerError(f"cannot keep the draw {kept}: {error.strerror}") from None
    if first != own:
        for path, _ in drawn:
            storage.remove(path)
        if first:
            storage.write_whole(storage.join(directory, f"released{SUFFIX}"), [first])
    return input.manifest(directory)
