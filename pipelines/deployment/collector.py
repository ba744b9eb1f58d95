"""hushcount collect: the collector with the store of a deployment."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from pathlib import Path

from hushcount.formats.whole_files import sync
from pipelines.files import storage
from shuffler.collector.admission.authentication import authenticator
from shuffler.collector.http.server import serve
from shuffler.collector.logs import log_to_stderr
from shuffler.collector.service import CollectorSetup
from shuffler.collector.settings import CollectorPart


def collect(settings: CollectorPart, base: Path, campaigns: Path, segments: str, length: timedelta) -> None:
    """Collect until told to stop by SIGTERM or SIGINT.

    Args:
        base: directory from which its paths are relative.
        segments: folder of segments in the store.

    Raises:
        UsageError: the address, the journal directory, the tokens or the campaigns cannot be used.
        HushcountError: another collector runs on the journal directory, or its disk fails.
    """
    log_to_stderr()
    serve(
        CollectorSetup(
            settings=settings,
            journal=base / settings.journal,
            campaigns=campaigns,
            segments=segments,
            length=length,
            authenticator=authenticator(settings, base),
            write_whole=partial(write_durably, segments),
            probe=partial(probe, segments),
        )
    )


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
