"""The lease of a run saves work: two runs at once are right, but would do everything twice (pipelines/files/leases.py).

Another run takes it over once it stands still.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hushcount.errors import HushcountError
from pipelines.deployment.settings import Deployment
from pipelines.files.leases import Patience, held


class AnotherRun(HushcountError):
    """Another run is at work: nothing was done."""


@contextmanager
def leased(deployment: Deployment, wait: bool, patience: Patience | None = None) -> Iterator[None]:
    """Hold the lease of the parties here while a block runs.

    Raises:
        AnotherRun: another run holds it, and `wait` is false.
        StorageError, OSError: the store cannot be used.
    """
    path = deployment.folder("log", f"{'+'.join(deployment.file.parties)}.lease.json")
    with held(path, _busy, wait=wait, patience=patience):
        yield


def _busy(path: str) -> AnotherRun:
    return AnotherRun(
        f"another run is at work, by its lease {path}: nothing was done; --wait waits for its end, and whoever knows "
        "that no run is at work may delete the file"
    )
