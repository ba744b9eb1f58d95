"""The directory of campaigns: one folder for each campaign, read again when `hushcount run` replaces a file there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from hushcount.collection.epochs import COLLECTION_FILE
from hushcount.errors import HushcountError, UsageError

Stamp = tuple[int, int, int]
_NO_STAMP: Stamp = (0, 0, 0)


@dataclass(frozen=True)
class CampaignFolder:
    """The facts about one campaign's directory."""

    id: str
    stamp: Stamp = _NO_STAMP  # stamp of the collection file when it was read last
    fault: str | None = None  # fault of the present file, in one sentence


Known = TypeVar("Known", bound=CampaignFolder)


def stamp_of(path: Path) -> Stamp:
    """Return a stamp that changes whenever a file is replaced; OSError: the file cannot be read."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def read_folders(
    directory: Path, known: Mapping[str, Known], read: Callable[[Path], Known], unread: Callable[[str], Known]
) -> dict[str, Known]:
    """Return the facts about each campaign now, by id; the facts about an unchanged campaign are taken from `known`.

    Args:
        read: reads a campaign's directory; it may raise HushcountError or OSError.
        unread: makes, from a campaign's id, the facts about a campaign whose files were never readable.

    Raises:
        UsageError: the directory cannot be read.
    """
    try:
        names = sorted(entry.name for entry in directory.iterdir() if (entry / COLLECTION_FILE).exists())
    except OSError as error:
        raise UsageError(f"cannot read campaigns directory {directory}: {error.strerror}") from None
    found = {}
    for name in names:
        path, stamp, before = directory / name / COLLECTION_FILE, _NO_STAMP, known.get(name)
        try:
            stamp = stamp_of(path)
            if before is not None and before.stamp == stamp and before.fault is None:
                found[name] = before
            else:
                found[name] = replace(read(directory / name), stamp=stamp)
        except (HushcountError, OSError) as error:
            fault = str(error) if isinstance(error, HushcountError) else f"cannot read {path}: {error.strerror}"
            found[name] = replace(unread(name) if before is None else before, stamp=stamp, fault=fault)
    return found
