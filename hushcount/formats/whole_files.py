"""Small local files that appear whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hushcount.errors import UsageError


def write_new(path: Path, data: str | bytes, mode: int) -> None:
    """Write a new file of this mode, text as UTF-8; OSError leaves no file, FileExistsError leaves the old file."""
    with _complete(path, data, mode) as temporary:
        # A link, unlike a rename, fails if the name exists.
        os.link(temporary, path)


def write_once(
    path: Path, what: str, data: str | bytes, mode: int = 0o644, if_there: str = "exists: give another name"
) -> None:
    """Write a new file that a person asked for; UsageError, with the name `what`, if it exists or cannot be written."""
    try:
        write_new(path, data, mode)
    except FileExistsError:
        raise UsageError(f"{what} {path} {if_there}") from None
    except OSError as error:
        raise UsageError(f"cannot write {what} {path}: {error.strerror}") from None


def write_over(path: Path, data: str | bytes, mode: int) -> None:
    """Write a file of this mode, or replace it in one step; OSError leaves the old file as it was."""
    with _complete(path, data, mode) as temporary:
        os.replace(temporary, path)


def sync(path: Path) -> None:
    """Wait until a file's bytes, or the names in a directory, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _complete(path: Path, data: str | bytes, mode: int) -> Iterator[Path]:
    """Write a complete file under a temporary name, which is removed after the block."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(data.encode() if isinstance(data, str) else data)
            stream.flush()
            os.fsync(stream.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
