"""A release that is drawn at random is drawn once for each key: a retried job hands out the first draw again.

A second draw from the same reports would be a second release, whatever became of the first.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from hushcount.errors import HushcountError
from pipelines import storage
from pipelines.block_io import SUFFIX
from pipelines.ledger_file import LedgerError


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
        with storage.open_read(path) as stream:
            own = stream.read()
    kept = draw_path(ledger, key)
    try:
        _write_first(kept, own)
        first = kept.read_bytes()
    except OSError as error:
        raise LedgerError(f"cannot keep the draw {kept}: {error.strerror}") from None
    if first == own:
        return
    for path, _ in drawn:
        storage.remove(path)
    if first:
        storage.write_whole(storage.join(directory, f"released{SUFFIX}"), [first])


def _write_first(path: Path, data: bytes) -> None:
    """Write a file, unless it is there already."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(temporary, path)
    except FileExistsError:
        return
    finally:
        temporary.unlink(missing_ok=True)
