"""The directory of campaigns: one folder each, read again when `hushcount run` replaces a file there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from hushcount.collection.epochs import COLLECTION_FILE
from hushcount.errors import HushcountError, UsageError

Stamp = tuple[int, int, int]
NO_STAMP: Stamp = (0, 0, 0)


class Stamped(Protocol):
    """What is known about one campaign's directory."""

    @property
    def stamp(self) -> Stamp:
        """Of the collection file when it was read last."""

    @property
    def fault(self) -> str | None:
        """What is wrong with the present file, in one sentence."""


Known = TypeVar("Known", bound=Stamped)


def read_folders(
    directory: Path,
    known: Mapping[str, Known],
    read: Callable[[Path, Stamp], Known],
    failed: Callable[[str, Known | None, Stamp, str], Known],
) -> dict[str, Known]:
    """Return what is known of each campaign now, by id: of an unchanged one what was known before.

    Args:
        read: reads a campaign's directory; it may raise HushcountError or OSError.
        failed: makes what is known of a campaign whose files are damaged: from its id, what was known, the stamp and
            the fault.

    Raises:
        UsageError: the directory cannot be read.
    """
    try:
        names = sorted(entry.name for entry in directory.iterdir() if (entry / COLLECTION_FILE).exists())
    except OSError as error:
        raise UsageError(f"cannot read campaigns directory {directory}: {error.strerror}") from None
    found = {}
    for name in names:
        path, stamp, before = directory / name / COLLECTION_FILE, NO_STAMP, known.get(name)
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            unchanged = before is not None and before.stamp == stamp and before.fault is None
            found[name] = before if unchanged and before is not None else read(directory / name, stamp)
        except (HushcountError, OSError) as error:
            fault = str(error) if isinstance(error, HushcountError) else f"cannot read {path}: {error.strerror}"
            found[name] = failed(name, before, stamp, fault)
    return found
