"""Writes that are durable when they return, and whether a folder takes any."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from hushcount.formats.whole_files import sync
from pipelines.files import storage


def write_durably(root: str, path: str, parts: Iterable[bytes]) -> None:
    """Write a file under a root and return when it is durable: a store answers then, a local disk needs syncs."""
    storage.write_whole(path, parts)
    if not storage.is_remote(path):
        between = [folder for folder in Path(path).parents if folder.is_relative_to(Path(root).parent)]
        for name in (Path(path), *between):
            sync(name)


def probe(folder: str) -> None:
    """Raise if a folder of the store cannot be reached or, if it is local, cannot be written."""
    if storage.is_remote(folder):
        storage.holds_objects(folder)
        return
    nearest = next(path for path in (Path(folder), *Path(folder).absolute().parents) if path.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
