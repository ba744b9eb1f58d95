"""Small local files that appear whole or not at all and never take another's place."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_new(path: Path, text: str, mode: int) -> None:
    """Write a new UTF-8 file of this mode: under a temporary name first, linked to its own when it is complete.

    Raises:
        FileExistsError: the file is there already; it is left as it was.
        OSError: the disk is full or the directory cannot be written; nothing is left.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        # A link, unlike a rename, fails where the name is taken.
        os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
