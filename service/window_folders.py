"""Folders of windows on the local disk: one process locks their root, and a window is removed atomically."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hushcount.collection.windows import is_window
from hushcount.errors import HushcountError, UsageError
from hushcount.formats.whole_files import sync

_GONE = ".gone"
ASIDE = "damaged"
"""The folder of damaged files, for an operator to look at."""


@contextmanager
def locked(root: Path, what: str, whose: str) -> Iterator[None]:
    """Make a directory if it is missing, and lock it for this process; `what` and `whose` are for messages."""
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(root / "lock", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(f"cannot use {what} {root}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise HushcountError(f"{what} {root} is in use: stop the other {whose}") from None
        yield
    finally:
        os.close(descriptor)


def make_folder(path: Path, root: Path) -> None:
    """Make a directory under the root with its parents; all their names are on the disk when this returns."""
    missing = [folder for folder in (path, *path.parents) if folder.is_relative_to(root) and not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
        sync(folder.parent)


def link_aside(root: Path, path: Path) -> None:
    """Link a damaged file into the folder of damaged files, before the file is replaced."""
    aside = root / ASIDE
    make_folder(aside, root)
    copy = aside / "-".join(path.relative_to(root).parts)
    copy.unlink(missing_ok=True)
    # The file is linked, not moved: if the process were killed here after a move, the window would get no manifest.
    os.link(path, copy)
    sync(aside)


def remove_window(root: Path, window: str) -> None:
    """Remove a window with its key.

    The window's folder is renamed first, so that a partly removed window is never read as a complete window.
    """
    gone = root / f"{window}{_GONE}"
    (root / window).rename(gone)
    sync(root)
    shutil.rmtree(gone)


def remove_gone(root: Path) -> None:
    """Remove folders that an interrupted `remove_window` left."""
    for path in root.glob(f"*{_GONE}"):
        shutil.rmtree(path)


def kept_windows(root: Path) -> list[str]:
    """Return the names of the windows on the disk, oldest first."""
    return sorted(path.name for path in root.iterdir() if is_window(path.name))
