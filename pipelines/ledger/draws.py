"""Digests of a release's input, and the draw of a random release, which is kept beside the ledger.

A draw depends only on its input and a key (aux_server/drawing.py), so that a retried job draws the same release. The
kept draw and the digest in the charge's row prove which draw was released: any other draw would be a second release,
and is not handed out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hushcount.errors import HushcountError
from hushcount.formats.whole_files import sync, write_new
from pipelines.files import storage
from pipelines.files.block_files import SUFFIX
from pipelines.ledger.file import LedgerError, resolved

_LONGEST = 1 << 36


def outline_of(directory: str) -> str:
    """Return the digest of the sizes of a directory's block files, without opening any file."""
    return _digest(f"{size}" for _, size in storage.list_files(directory, SUFFIX))


def manifest_of(paths: Iterable[str]) -> str:
    """Return the digest of the contents of files; the digest does not depend on the files' order and names.

    Sealing is random, so that no two batches have the same files, even if their values are equal.
    """
    return _digest(storage.digest_of(path)[1] for path in paths)


def manifest_in(directory: str) -> str:
    """Return the digest of the contents of a directory's block files."""
    return manifest_of(path for path, _ in storage.list_files(directory, SUFFIX))


def draw_path(ledger: Path, key: str) -> Path:
    """Return the path of a key's draw, which is beside the ledger and not in it, because a draw holds sealed values."""
    ledger = resolved(ledger)
    return ledger.with_name(f"{ledger.name}.draws") / f"{key}{SUFFIX}"


def digest_of_draw(ledger: Path, key: str) -> str | None:
    """Return the digest of a key's draw, as `manifest_in` computes it; None if no draw is kept."""
    kept = draw_path(ledger, key)
    try:
        return manifest_of([str(kept)] if kept.stat().st_size else [])
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"cannot read the draw {kept}: {error.strerror}") from None


def keep_draw(ledger: Path, key: str, directory: str) -> str:
    """Copy the block file that was just drawn to a key's draw, and return its digest.

    The copy is on disk before the release is charged. The job's directory holds one block file, or no file if the keep
    rule kept no bin.

    Raises:
        LedgerError: another draw is kept for this key, or the draw cannot be written.
    """
    drawn = [path for path, _ in storage.list_files(directory, SUFFIX)]
    if len(drawn) > 1:
        raise HushcountError(f"a release has {len(drawn)} files, must have at most one: report this bug")
    own = storage.read_bytes(drawn[0], _LONGEST) if drawn else b""
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
        raise LedgerError(
            f"this input was drawn before, and the draw that was kept, {kept}, is another one: restore that draw, the "
            "key and the campaign file as they were then, because a second draw would be a second release"
        )
    return manifest_in(directory)


def _digest(parts: Iterable[str]) -> str:
    return hashlib.blake2b("\n".join(sorted(parts)).encode(), digest_size=32).hexdigest()
