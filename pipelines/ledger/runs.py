"""The runs that are under way on a ledger: each run locks a file beside the ledger, and its lock ends with its process.

Host name and process id do not identify a run: a restarted container has the same host name and process ids again, and
a new container has another host name.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

from hushcount.clock import MACHINE
from pipelines.ledger.charges import Charge
from pipelines.ledger.file import LedgerError, resolved
from pipelines.ledger.own_time import FAR

_LONGEST_RUN = timedelta(days=1) + FAR
"""The longest time that a run takes: a day, plus the time that a clock may be ahead."""


@contextmanager
def under_way(ledger: Path) -> Iterator[str]:
    """Yield the name of a new run, which is under way until the block or the process ends.

    Raises:
        LedgerError: the run's file cannot be made or locked.
    """
    import fcntl

    run = uuid.uuid4().hex
    path = _path(ledger, run)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _sweep(path.parent)
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LedgerError(f"cannot make {path}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise LedgerError(f"cannot lock {path}: {error.strerror}") from None
        yield run
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def living(ledger: Path, charges: Iterable[Charge], now: datetime) -> list[Charge]:
    """Return the charges, and the reservations of runs that are under way; `now` is the ledger's time."""
    return [charge for charge in charges if not is_stale(ledger, charge, now)]


def is_stale(ledger: Path, charge: Charge, now: datetime) -> bool:
    """Return whether a reservation is left over from a run: the run's process is gone, or the run began days ago."""
    if charge.state == "committed":
        return False
    long_ago = now - datetime.fromisoformat(charge.reserved_at) > _LONGEST_RUN
    return long_ago or not _is_under_way(_path(ledger, charge.run))


def _path(ledger: Path, run: str) -> Path:
    ledger = resolved(ledger)
    return ledger.with_name(f"{ledger.name}.runs") / run


def _is_under_way(path: Path) -> bool:
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        # Whether the run is under way is unknown; keeping its reservation too long is safer than dropping it.
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _sweep(folder: Path) -> None:
    """Remove the lock files of killed runs, if these files are older than any run can be."""
    oldest = MACHINE.seconds() - _LONGEST_RUN.total_seconds()
    for path in folder.iterdir():
        with suppress(OSError):
            if path.stat().st_mtime < oldest and not _is_under_way(path):
                path.unlink()
