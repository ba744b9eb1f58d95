"""The folder of one client."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hushcount.errors import HushcountError, UsageError
from hushcount.formats.client_files import one_name


def own_folder(path: Path) -> Path:
    """Return a directory that others cannot change, made with mode 0700 if it is missing.

    Raises:
        UsageError: it is no directory, or others can write to it.
        HushcountError: it cannot be made.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileExistsError:
        raise UsageError(f"folder {path} is a file, must be a directory") from None
    except OSError as error:
        raise HushcountError(f"cannot make folder {path}: {error.strerror}") from None
    if os.name == "posix" and mode & 0o022:
        raise UsageError(f"folder {path} has mode {mode:04o}, must not be writable by others: chmod 700 {path}")
    return one_name(path)
