"""Compare this machine's clock with windows, the ledger, the last run, and the store's own clock."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from sqlalchemy import Connection, func, select, update
from sqlalchemy import Engine as Database

from hushcount.collection.windows import window_start
from hushcount.errors import HushcountError
from pipelines.batches.state import HOPS, MANIFESTS, RUNS
from pipelines.deployment.settings import Deployment, Party
from pipelines.files import storage
from pipelines.files.storage_errors import told
from pipelines.handover.names import Batch
from pipelines.ledger.clock import Clock, Witness, shown, usual_bound
from pipelines.ledger.file import opened, read_charges

_WRITES: dict[Party, str] = {"shuffler": "shuffled", "aux-server": "released", "analyzer": "results"}
"""A folder in which each party may write."""
CONFIRM = "set the clock; if it is right, and nothing came for so long, confirm it once: hushcount run --clock-is-right"


@dataclass(frozen=True)
class Told:
    """The clock with its witnesses, the moment to work by, and a sentence for each witness that could not be asked."""

    clock: Clock
    present: datetime
    problems: tuple[str, ...]

    @property
    def says(self) -> str:
        """A sentence on a clock that is far ahead: by how much, what was not done, and the cure."""
        return (
            f"{self.clock.says()}: nothing was deleted, given up or published by it, and all was done as at "
            f"{shown(self.present)}; {CONFIRM}"
        )


def told_time(state: Database, deployment: Deployment, now: datetime) -> Told:
    """Compare the clock with all witnesses; ask an object store only if the clock is far ahead of the others."""
    with state.begin() as connection:
        clock = clock_of(connection, deployment, now)
    problems: list[str] = []
    with _asked("ledger", problems):
        clock = beside_ledger(clock, deployment)
    if clock.is_far:
        with _asked("store", problems):
            clock = beside_store(clock, deployment)
    return Told(clock, clock.present(deployment.windows.patience), tuple(problems))


def clock_of(connection: Connection, deployment: Deployment, now: datetime) -> Clock:
    """Return the clock with the state's witnesses."""
    windows = deployment.windows
    at = connection.execute(select(RUNS.c.at)).scalar_one()
    return Clock(
        now,
        usual_bound(windows.length, windows.grace, windows.patience),
        None if at is None else datetime.fromisoformat(at),
        (Witness("the newest window", _windows(connection, windows.length)),),
    )


def beside_ledger(clock: Clock, deployment: Deployment) -> Clock:
    """Return the clock with the ledger's charges as a witness; raises HushcountError if the ledger cannot be read."""
    if deployment.ledger is None or not deployment.ledger.exists():
        return clock
    with opened(deployment.ledger) as connection:
        charges = read_charges(connection)
    stamps = (datetime.fromisoformat(charge.stamped) for charge in charges)
    return replace(clock, witnesses=(*clock.witnesses, Witness("the ledger", tuple(stamps))))


def beside_store(clock: Clock, deployment: Deployment) -> Clock:
    """Return the clock with an object store's own clock; a local disk has this machine's clock, and adds nothing.

    Raises:
        HushcountError, OSError: nothing can be written there.
    """
    folders = [deployment.folder(_WRITES[party]) for party in deployment.file.parties]
    remote = [folder for folder in folders if storage.is_remote(folder)]
    return replace(clock, store=_store_time(remote[0])) if remote else clock


def trust(state: Database, clock: Clock, *, confirmed: bool) -> None:
    """Note the moment at which a run trusts the clock; a clock that went back lowers it only if the operator confirms.

    Later runs compare their clocks with this moment.
    """
    if clock.reach is None:
        # There is nothing to lose yet, and no witness.
        return
    at = clock.now if confirmed or clock.trusted is None else max(clock.now, clock.trusted)
    with state.begin() as connection:
        connection.execute(update(RUNS).values(at=at.astimezone(timezone.utc).isoformat()))


@contextmanager
def _asked(name: str, problems: list[str]) -> Iterator[None]:
    """Make a problem of a witness that cannot be asked."""
    try:
        yield
    except (HushcountError, OSError) as error:
        problems.append(f"{name}: {told(error)}")


def _windows(connection: Connection, length: timedelta) -> tuple[datetime, ...]:
    """Return the ends of all windows with a manifest or a batch."""
    reported = select(MANIFESTS.c.window, func.max(MANIFESTS.c.seconds)).group_by(MANIFESTS.c.window)
    ends = {name: window_start(name) + timedelta(seconds=seconds) for name, seconds in connection.execute(reported)}
    for name in connection.execute(select(HOPS.c.batch).distinct()).scalars():
        if (batch := Batch.named("", name)) is not None:
            ends.setdefault(batch.window, window_start(batch.window) + length)
    return tuple(ends.values())


def _store_time(folder: str) -> datetime:
    """Return the store's time: write an object, and read when it was written."""
    probe = storage.join(folder, f"probe-{uuid.uuid4().hex}")
    try:
        storage.write_whole(probe, [b"probe"])
        return datetime.fromtimestamp(storage.modified(probe), timezone.utc)
    finally:
        with suppress(HushcountError, OSError):
            if storage.exists(probe):
                storage.remove(probe)
