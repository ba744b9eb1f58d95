"""What doctor says of clocks: this machine's beside all else that tells the time, and those of collectors."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select

from hushcount.collection.windows import window_at
from pipelines.audit.checks import Check
from pipelines.batches.rows import known_windows
from pipelines.batches.state import MANIFESTS
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.ledger.clock import Clock, span
from pipelines.schedule.witnesses import CONFIRM, beside_ledger, beside_store, clock_of

_SKEW = timedelta(minutes=1)


def clock_check(connection: Connection, deployment: Deployment, now: datetime) -> Iterator[Check]:
    """Say whether the clock is far ahead, and by how much it is off each thing that tells the time."""
    clock = beside_store(beside_ledger(clock_of(connection, deployment, now), deployment), deployment)
    yield Check("clock", "bad" if clock.is_far else "good", f"{clock.says()}{f': {CONFIRM}' if clock.is_far else ''}")
    for name, moment in _told(clock).items():
        off = now - moment
        # The store's own clock tells the present, all else what had come when it was written.
        wrong = off < -_SKEW or (name == "the store" and off > _SKEW)
        side = "behind" if off < timedelta() else "ahead of"
        cure = ": set the clocks; if this one is right, that was written by one that was ahead" if wrong else ""
        yield Check(f"clock beside {name}", "bad" if wrong else "good", f"{span(off)} {side} it{cure}")


def _told(clock: Clock) -> dict[str, datetime]:
    told = {witness.name: max(witness.stamps) for witness in clock.witnesses if witness.stamps}
    told |= {} if clock.trusted is None else {"the last run": clock.trusted}
    return told | ({} if clock.store is None else {"the store": clock.store})


def collector_clocks(connection: Connection, epochs: Epochs, deployment: Deployment, now: datetime) -> Iterator[Check]:
    """Say whether a collector lives in the future."""
    rows = connection.execute(
        select(MANIFESTS.c.collector, func.max(MANIFESTS.c.window))
        .where(MANIFESTS.c.campaign == epochs.campaign)
        .group_by(MANIFESTS.c.collector)
    ).all()
    windows = known_windows(connection, epochs.campaign)
    present = window_at(now, deployment.windows.length)
    for collector, name in rows:
        window = windows[name]
        if window.end > now + _SKEW:
            yield Check(f"clock of {collector}", "bad", f"it closed {name}, which has not ended here: set the clocks")
        elif present.start - window.end > deployment.windows.length:
            yield Check(f"manifests of {collector}", "warning", f"the last is of {name}: see whether it still runs")
        else:
            yield Check(f"clock of {collector}", "good", f"last closed {name}")
