"""Permissions of the files of jobs and collectors on this machine: only the owner may read them, whatever the umask.

A folder with the setgid bit shares with its group: the group may read new files in the folder, and not write them. So
groups separate parties that run as different users of one machine, as in
`chgrp analyzer store/shuffled; chmod g+rxs store/shuffled`, and no setting has to reach every worker. The user who
writes in the folder must be a member of the group: otherwise the system drops the bit. Dead letters are never shared.
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
    """Return the mode of a new file in a folder: 0640 if the folder shares with its group, else 0600."""
    return 0o640 if _shares(folder) else 0o600


def make_folder(path: str | Path) -> None:
    """Make a folder and its missing parents, each readable by the readers of the folder above it.

    Raises:
        OSError: a folder cannot be made.
        HushcountError: the folder above shares with its group, and this user is not a member of that group.
    """
    missing = [folder for folder in (Path(path), *Path(path).parents) if not folder.exists()]
    for folder in reversed(missing):
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            # Another worker made it between the two calls, and sets its mode.
            continue
        try:
            share_as_parent(folder)
        except HushcountError:
            # The next try must not find the folder with a wrong mode.
            folder.rmdir()
            raise


def share_as_parent(folder: Path) -> None:
    """Set the mode of a folder: 0700, or 2750 if the folder above shares; raises as `make_folder`."""
    shared = _shares(folder.parent) and folder.name != _UNSHARED
    os.chmod(folder, 0o700 | (stat.S_ISGID | 0o050 if shared else 0))
    if shared and not _shares(folder):
        raise HushcountError(
            f"{folder.parent} shares with group {folder.parent.stat().st_gid}, but user {os.geteuid()}, who writes "
            "there, is not a member of the group, so the group could read nothing: add the user to the group, or "
            "remove the setgid bit from the folder"
        )


def share_tree(made: Path, parent: Path) -> None:
    """Before a file or folder moves below `parent`, give it the group and modes of one that was made there.

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
