"""Permissions of the files of jobs and collectors on this machine: only the owner may read them, whatever the umask.

If a folder has the setgid bit, its group may read new files in the folder, but not write to them. So parties that run
as different users of one machine are separated by groups, as in `chgrp analyzer store/shuffled; chmod g+rxs
store/shuffled`, without a setting that every worker would need. The user who writes in the folder must be a member of
the group: otherwise the system removes the bit from new folders. Dead letters are never readable by a group.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO

from hushcount.errors import HushcountError

_UNSHARED = "dead_letter"


def new_file(path: str) -> IO[bytes]:
    """Open a new file for writing, with the mode from `mode_in`; raises FileExistsError if the file exists."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    stream = os.fdopen(descriptor, "wb")
    try:
        os.fchmod(descriptor, mode_in(Path(path).parent))
    except BaseException:
        stream.close()
        raise
    return stream


def mode_in(folder: Path) -> int:
    """Return the mode of a new file in a folder: 0640 if the folder has the setgid bit, else 0600."""
    return 0o640 if _shares(folder) else 0o600


def make_folder(path: str | Path) -> None:
    """Make a folder and its missing parents; whoever may read the folder above a new folder may read the new folder.

    Raises:
        OSError: a folder cannot be made.
        HushcountError: the folder above has the setgid bit, and this user is not a member of that folder's group.
    """
    missing = [folder for folder in (Path(path), *Path(path).parents) if not folder.exists()]
    for folder in reversed(missing):
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            # Another worker made the folder after `missing` was computed, and that worker also sets the folder's mode.
            continue
        try:
            share_as_parent(folder)
        except HushcountError:
            # Remove the folder, because the next try must not find it with a wrong mode.
            folder.rmdir()
            raise


def share_as_parent(folder: Path) -> None:
    """Set the mode of a folder: 2750 if the folder above has the setgid bit, else 0700; raises as `make_folder`."""
    shared = _shares(folder.parent) and folder.name != _UNSHARED
    os.chmod(folder, 0o700 | (stat.S_ISGID | 0o050 if shared else 0))
    if shared and not _shares(folder):
        raise HushcountError(
            f"{folder.parent} shares with group {folder.parent.stat().st_gid}, but user {os.geteuid()}, who writes "
            "there, is not a member of the group, so the group could read nothing: add the user to the group, or "
            "remove the setgid bit from the folder"
        )


def share_tree(made: Path, parent: Path) -> None:
    """Before a file or folder moves into `parent`, give it the group and modes of a file or folder made in `parent`.

    Raises:
        OSError: this user is not a member of the parent's group; the error names the file.
    """
    if not _shares(parent):
        return
    group = parent.stat().st_gid
    if made.is_file():
        os.chown(made, -1, group)
        os.chmod(made, mode_in(parent))
    for folder, folders, files in os.walk(made):
        folders[:] = [name for name in folders if name != _UNSHARED]
        for path, mode in ((Path(folder), 0o750 | stat.S_ISGID), *((Path(folder, name), 0o640) for name in files)):
            os.chown(path, -1, group)
            os.chmod(path, mode)


def _shares(folder: Path) -> bool:
    return bool((folder if folder.name else Path.cwd()).stat().st_mode & stat.S_ISGID)
