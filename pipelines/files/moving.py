"""Move a directory or a file. The target may be on another disk or in another store."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from hushcount.errors import HushcountError
from hushcount.formats.whole_files import sync
from pipelines.files import permissions, storage


def move_directory(source: str, target: str, last: str) -> None:
    """Move all files of a directory; the file named `last` is moved after all other files.

    If there is no source, do nothing. On one disk, the directory is moved in one step, and gets the permissions of the
    target's parent. If the target is on another disk, or one of the two is in a store, the files are moved one by one.
    If a process is killed during a call, another call, also by another process, moves the remaining files. Two calls at
    the same time do no harm, because both move the same files to the same target.
    """
    if storage.is_remote(source) or storage.is_remote(target) or not _renamed(Path(source), Path(target)):
        for path in sorted(storage.list_objects(source), key=lambda path: storage.relative(path, source) == last):
            with suppress(FileNotFoundError):
                _move(path, storage.join(target, storage.relative(path, source)))
        if not storage.is_remote(source):
            with suppress(FileNotFoundError):
                storage.remove_directory(source)


def move_file(source: str, target: str) -> None:
    """Move a file, and replace the target if it exists. If there is no source, do nothing.

    Two calls at the same time do no harm: if the source is missing during a call, the other call has moved it.
    """
    if storage.is_remote(source) or storage.is_remote(target) or not _renamed(Path(source), Path(target)):
        try:
            _move(source, target)
        except (HushcountError, OSError):
            if storage.exists(source):
                raise
        storage.remove(source)


def _renamed(source: Path, target: Path) -> bool:
    """Rename a local directory or file; return False if it cannot be renamed because the target is on another disk."""
    if not source.exists():
        return True
    permissions.make_folder(target.parent)
    try:
        permissions.share_tree(source, target.parent)
        os.rename(source, target)
    except FileNotFoundError:
        # Another process has moved the source in the meantime.
        return True
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    sync(target.parent)
    return True


def _move(path: str, target: str) -> None:
    """Move a file: by a rename if both paths are in one kind of store, else by a copy.

    After a copy, the caller has to remove a local source.
    """
    schemes = [one.partition("://")[0] if storage.is_remote(one) else "" for one in (path, target)]
    if schemes[0] == schemes[1] != "":
        try:
            storage.rename(path, target)
        except (HushcountError, OSError):
            # Catch all exceptions, because each store's client raises a different one if another process has moved the
            # object.
            if storage.exists(path) or not storage.exists(target):
                raise
        return
    storage.copy(path, target)
    if schemes[0]:
        storage.remove(path)
