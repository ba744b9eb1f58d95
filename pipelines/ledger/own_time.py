"""The ledger's own time, which decides when budgets renew: it never goes back, and no clock that is far ahead moves it.

A clock that is wrong once must not free spent budget. So a new period begins only if the clock is at most `FAR` ahead
of the newest moment that the ledger, or the deployment, knows to have passed. No new time stamp is earlier than the
ledger's time. If nothing told the time for longer than `FAR`, the operator must confirm the date.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

from hushcount.clock import MACHINE, Clock
from hushcount.errors import UsageError
from pipelines.ledger.charges import Charge, Limit, stamp
from pipelines.ledger.clock import Reading
from pipelines.ledger.file import opened, put, put_newest, read_charges, read_limits, read_newest, writing

FAR = timedelta(days=2)
"""A clock that is ahead by at most this time may begin a period, so a period begins too early by at most this time."""
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class LedgerTime:
    """The present time by two clocks.

    Attributes:
        clock: the time by this machine's clock.
        now: the ledger's time, which decides the period; it is never earlier than the ledger's time at its last use.
    """

    clock: datetime
    now: datetime

    @property
    def mark(self) -> str:
        """The time stamp for new rows: at least the ledger's time, so that a slow clock makes no charge look older."""
        return stamp(max(self.clock, self.now))

    @property
    def doubt(self) -> str:
        """A sentence on why the ledger does not follow the clock, and the cure; empty if the ledger follows it."""
        if abs(self.clock - self.now) <= FAR:
            return ""
        side = "ahead of" if self.clock > self.now else "behind"
        return (
            f"this machine's clock says {stamp(self.clock)}, {abs(self.clock - self.now).days:,} days {side} the "
            f"ledger's time, {stamp(self.now)}, and no budget renews by it: set the clock right; or, if it is right "
            "now and was right at that time, run hushcount run --clock-is-right or "
            f"hushcount ledger confirm --date {self.clock:%Y-%m-%d}"
        )


def believed(clock: datetime, newest: datetime | None, known: datetime | None = None) -> datetime:
    """Return the ledger's time, by this machine's clock, the ledger's time at its last use, and other witnesses."""
    # A witness may be wrong too, so no witness moves the ledger's time further than the clock.
    told = [moment for moment in (newest, None if known is None else min(known, clock)) if moment is not None]
    reach = max(told, default=clock)
    return max(reach, Reading(clock, FAR, trusted=reach).present)


@dataclass(frozen=True)
class LedgerClock:
    """The sources of a ledger's time.

    Attributes:
        machine: this machine's clock.
        known: the latest moment that has certainly passed, by witnesses other than the clock and the ledger; None if
            there are no such witnesses.
    """

    machine: Clock = MACHINE
    known: datetime | None = None

    def time(self, connection: sqlite3.Connection) -> LedgerTime:
        """Return the present for a ledger; see `believed`."""
        clock = self.machine.now()
        return LedgerTime(clock, believed(clock, read_newest(connection), self.known))

    def advance(self, connection: sqlite3.Connection) -> LedgerTime:
        """Return the present, and write it as the ledger's time; call this method in a transaction that writes."""
        time = self.time(connection)
        put_newest(connection, time.now)
        return time


ALONE = LedgerClock()
"""The source of the ledger's time if there is no witness except this machine's clock."""


def beginning(charges: list[Charge], now: datetime) -> str:
    """Return when the first period of a limit begins: with the campaign's first charge, so that every charge counts."""
    return min([stamp(now), *(charge.committed_at for charge in charges if charge.committed_at)])


def warnings(limits: list[Limit], charges: list[Charge], time: LedgerTime) -> list[str]:
    """Return a sentence for each trace that a wrong clock left in a ledger; none of these traces weakens privacy."""
    present = stamp(time.clock + FAR)
    said = [time.doubt] if time.doubt else []
    said += [
        f"the limit of campaign {limit.campaign} begins on {limit.since}, ahead of the clock: until then all charges "
        "count and nothing renews"
        for limit in limits
        if limit.since > present
    ]
    if ahead := sum(charge.stamped > present for charge in charges):
        said.append(f"{ahead:,} charges are stamped ahead of the clock, and count until a period after that time")
    return said


def confirm(path: Path, today: date) -> LedgerTime:
    """Believe this machine's clock, because the operator gives today's date; stamps after this date are set back to it.

    Raises:
        UsageError: the clock's date differs by more than a day from `today`, which is from another source, in any time
            zone.
        LedgerError: the ledger cannot be used.
    """
    now = MACHINE.now()
    if abs(now.date() - today) > _DAY:
        raise UsageError(f"date is {today}, must be the date of the machine's clock, {now.date()}: set the clock right")
    return believe(path, today)


def believe(path: Path, today: date | None = None, clock: Clock = MACHINE) -> LedgerTime:
    """Believe this machine's clock, because the operator says that it is right; later stamps are set back to its date.

    The operator vouches that the ledger's time was right too. The program cannot check that: a ledger that was idle for
    a year looks like a ledger that was begun by a clock one year behind. Charges that were stamped by a clock one year
    behind stop counting a year too early.

    Args:
        today: the date where the operator is; by default the clock's date.
        clock: this machine's.

    Raises:
        LedgerError: the ledger cannot be used.
    """
    now = clock.now()
    today = today or now.date()
    # At this moment, `today` is over in every time zone.
    end = stamp(datetime.combine(today + 2 * _DAY, datetime.min.time(), timezone.utc))
    with opened(path) as connection, writing(connection):
        for charge in read_charges(connection):
            committed = None if charge.committed_at is None else min(charge.committed_at, end)
            put(connection, replace(charge, reserved_at=min(charge.reserved_at, end), committed_at=committed))
        for limit in read_limits(connection):
            if limit.since > end:
                put(connection, replace(limit, since=beginning(read_charges(connection, limit.campaign), now)))
        put_newest(connection, now)
    return LedgerTime(now, now)
