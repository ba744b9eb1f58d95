"""The local file system: walk folders, and put a file by a hard link, which fails if the name is taken."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from stat import S_ISDIR

from hushcount.errors import UsageError
from hushcount.formats.whole_files import sync, write_new
from pipelines.files import permissions

_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


def listed(directory: str, pattern: str) -> Iterator[tuple[str, int, float]]:
    """Yield the files below a directory, each with its size and time; two stars match at any depth.

    A link to a directory is followed only if the pattern has the link's exact name, so that a circle of links ends.
    Other parties write in the directory, so files and directories that vanish meanwhile, or that this user may not
    read, are left out.
    """
    name, _, below = pattern.partition("/")
    try:
        entries = list(os.scandir(directory))
    except OSError:
        return
    for entry in entries:
        with suppress(OSError):
            if entry.is_dir():
                reached = name == entry.name or not entry.is_symlink()
                if reached and (name == "**" or (below and fnmatchcase(entry.name, name))):
                    yield from listed(entry.path, below or name)
            elif not below and fnmatchcase(entry.name, name):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime


def listed_from(directory: str, depth: int, first: Callable[[str], str]) -> Iterator[tuple[str, int, float]]:
    """As `storage.list_from`; files and folders that cannot be read are left out, as in `listed`."""
    for folder in _folders(directory, depth):
        wanted = first(os.path.relpath(folder, directory))
        try:
            names = [name for name in os.listdir(folder) if name >= wanted]
        except OSError:
            continue
        for place in (f"{folder}/{name}" for name in names):
            with suppress(OSError):
                status = os.stat(place)
                if S_ISDIR(status.st_mode):
                    yield from listed(place, "**")
                else:
                    yield place, status.st_size, status.st_mtime


def _folders(directory: str, depth: int) -> Iterator[str]:
    """Yield the folders at `depth` below a directory, also behind links; a circle of links is followed to `depth`."""
    if depth == 0:
        yield directory
        return
    try:
        names = os.listdir(directory)
    except OSError:
        return
    for path in (f"{directory}/{name}" for name in names):
        # If a folder cannot be reached, the other folders are still listed.
        if os.path.isdir(path):
            yield from _folders(path, depth - 1)


def put_absent(path: str, data: bytes) -> bool:
    """Write a file in one step unless its name is taken; return whether this call wrote it.

    After the call the file is durable.

    Raises:
        UsageError: the file system has no hard links.
        OSError: the file system failed.
    """
    directory = Path(path).parent
    _make_durable_folder(directory)
    try:
        # Do not create `path` itself with O_EXCL: if this process were killed while it writes, half a file would be
        # left.
        write_new(Path(path), data, permissions.mode_in(directory))
        is_mine = True
    except FileExistsError:
        is_mine = False
    except OSError as error:
        # An OSError has a second file name only if the hard link failed.
        if error.filename2 is not None and error.errno in _NO_LINKS:
            raise UsageError(f"{directory} is on a file system without hard links: move the store to another") from None
        raise
    # Sync the directory also if another writer put the file, because the caller relies on that file.
    sync(directory)
    return is_mine


def _make_durable_folder(path: Path) -> None:
    """Make a folder and its missing parents, and sync their names to the disk."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    permissions.make_folder(path)
    for folder in missing:
        sync(folder.parent)


def remove_tree(path: str) -> None:
    """Delete a directory and all in it; a file that another process deletes at the same time is no error."""
    shutil.rmtree(path, onerror=_unless_gone)


def _unless_gone(_function: object, _path: str, raised: tuple[object, BaseException, object]) -> None:
    """Raise the error of `rmtree`, unless another process has deleted the file."""
    if not isinstance(raised[1], FileNotFoundError):
        raise raised[1]
