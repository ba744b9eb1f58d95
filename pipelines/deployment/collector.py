"""hushcount collect: the collector with the store of a deployment."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from hushcount.errors import UsageError
from hushcount.formats.whole_files import sync
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from service.authentication import authenticator
from service.logs import log_to_stderr
from shuffler.collector.http.server import serve
from shuffler.collector.service import CollectorSetup


def collect(deployment: Deployment) -> None:
    """Collect until told to stop by SIGTERM or SIGINT.

    Raises:
        UsageError: there is no [collector] table, or its address, journal, tokens or campaigns cannot be used.
        HushcountError: another collector runs on the journal directory, or its disk fails.
    """
    settings, segments = deployment.collector, deployment.folder("segments")
    if settings is None:
        raise UsageError(f"deployment file {deployment.path} has no [collector] table: add one with a name")
    log_to_stderr("collector")
    serve(
        CollectorSetup(
            settings=settings,
            journal=deployment.base / settings.journal,
            campaigns=deployment.campaigns,
            segments=segments,
            length=deployment.windows.length,
            authenticator=authenticator(settings, deployment.base),
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
