"""What a ledger holds: limits and charges, each with a digest that shows whether its row was altered."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, TypeVar

from hushcount.errors import FormatError
from hushcount.privacy.composition import Bound, Loss
from pipelines.ledger.file import COLUMNS

Hop = Literal["analyze", "discover"]
State = Literal["reserved", "committed"]
_EVER = datetime.min.replace(tzinfo=timezone.utc)
Unit = Literal["client", "report"]
"""Of whom a cost is: one client with as many reports as the cap lets it, or one report, where the cap binds nobody."""


@dataclass(frozen=True)
class Limit:
    """What the releases of one campaign may come to.

    Attributes:
        campaign: its id, over all its epochs.
        epsilon: nats, above 0.
        delta: in [0, 1).
        renew_days: days after which what was spent counts no more; None: never.
        since: when the first period begins, ISO 8601 in UTC; before that everything counts.
        composition: "basic": the sums keep within the limit, whatever the parameters of a release follow from; or
            "numerical": the smaller bound does, and all charges of a period are of one campaign file, whose parameters
            are declared to follow from no result.
    """

    campaign: str
    epsilon: float
    delta: float
    renew_days: int | None
    since: str
    composition: Bound = "basic"

    def period(self, now: datetime) -> tuple[datetime, datetime | None]:
        """Return from when on charges count, and when the next period begins; None for never."""
        begin = datetime.fromisoformat(self.since)
        if self.renew_days is None:
            return begin, None
        length = timedelta(days=self.renew_days)
        number = max(0, (now - begin) // length)
        current = begin + number * length
        # Before the first period everything counts, and in it too.
        return current if number else _EVER, current + length


@dataclass(frozen=True)
class Charge:
    """One release, reserved or charged.

    Attributes:
        key: digest of fingerprint, epoch, hop and manifest: what is charged once.
        campaign: its id.
        fingerprint: the campaign's, hexadecimal.
        epoch: the campaign's window.
        hop: which job releases.
        manifest: digest of the input's files.
        outline: digest of their sizes, known without reading them.
        state: "reserved" by a run that has not released anything, or "committed".
        epsilon: nats, of one client with at most as many reports as the cap, or of one report; replace-one.
        delta: of the same.
        local: its local epsilon, and
        epoch_epsilon: that of all releases of the epoch together, where clients repeat their answers; None elsewhere.
        per: of whom that is, one client or one report.
        reports: that were accepted; None for discovery.
        reserved_at: ISO 8601 in UTC.
        committed_at: the same; None while it is reserved.
        host: whose run it is, by the name of the machine,
        pid: its process, and
        run: its own name.
        draw: digest of the random release that was made or opened under this key, of `ledger_input.manifest`; None
            where nothing is drawn, and as long as it is reserved.
    """

    key: str
    campaign: str
    fingerprint: str
    epoch: int
    hop: Hop
    manifest: str
    outline: str
    state: State
    epsilon: float
    delta: float
    local: float | None
    epoch_epsilon: float | None
    per: Unit
    reports: int | None
    reserved_at: str
    committed_at: str | None
    host: str
    pid: int
    run: str
    draw: str | None = None

    @property
    def loss(self) -> Loss:
        """What the release costs if it stands alone: `ledger_balance.losses` joins those of one epoch."""
        return Loss(self.epsilon, self.delta)


Record = TypeVar("Record", Limit, Charge)


def charge_key(fingerprint: str, epoch: int, hop: str, manifest: str) -> str:
    """Return the key under which a release is charged once: 32 bytes, hexadecimal."""
    return _digest([fingerprint, epoch, hop, manifest])


def utc_now() -> datetime:
    """Return the present time."""
    return datetime.now(timezone.utc)


def stamp(moment: datetime) -> str:
    """Return a moment as ISO 8601 in UTC, to the second."""
    return moment.astimezone(timezone.utc).isoformat(timespec="seconds")


def read_limits(connection: sqlite3.Connection) -> list[Limit]:
    """Return all limits, by campaign.

    Raises:
        FormatError: a row was altered.
    """
    return [_record(Limit, row) for row in connection.execute("SELECT * FROM limits ORDER BY campaign")]


def read_limit(connection: sqlite3.Connection, campaign: str) -> Limit | None:
    """Return a campaign's limit, or None."""
    return next((limit for limit in read_limits(connection) if limit.campaign == campaign), None)


def read_charges(connection: sqlite3.Connection, campaign: str | None = None) -> list[Charge]:
    """Return the charges and reservations of a campaign, or of all, oldest first; of one second, as they were made.

    Raises:
        FormatError: a row was altered.
    """
    rows = connection.execute("SELECT * FROM charges ORDER BY COALESCE(committed_at, reserved_at), rowid")
    return [_record(Charge, row) for row in rows if campaign in (None, row["campaign"])]


def read_newest(connection: sqlite3.Connection) -> datetime | None:
    """Return the ledger's time at its last use; None: it is new.

    Raises:
        FormatError: it was altered.
    """
    row = connection.execute("SELECT newest FROM clock").fetchone()
    try:
        return None if row is None else datetime.fromisoformat(row["newest"]).astimezone(timezone.utc)
    except ValueError:
        raise FormatError("the ledger's time was altered: restore the ledger from a copy") from None


def put_newest(connection: sqlite3.Connection, now: datetime) -> None:
    """Let a ledger remember its time."""
    connection.execute("INSERT OR REPLACE INTO clock (one, newest) VALUES (1, ?)", (stamp(now),))


def put(connection: sqlite3.Connection, record: Limit | Charge) -> None:
    """Write a record in place of the one with its key."""
    table = "limits" if isinstance(record, Limit) else "charges"
    fields = asdict(record)
    # The columns hold floats; the digest is of what will be read, so a whole number must be one before.
    fields.update(epsilon=float(record.epsilon), delta=float(record.delta))
    values = (*fields.values(), _digest(fields))
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT OR REPLACE INTO {table} ({', '.join(COLUMNS[table])}) VALUES ({marks})", values)  # noqa: S608  # our own names


def _record(kind: type[Record], row: sqlite3.Row) -> Record:
    fields: Mapping[str, Any] = dict(row)
    values = {name: value for name, value in fields.items() if name != "digest"}
    if _digest(values) != fields["digest"]:
        name = values.get("key") or values["campaign"]
        raise FormatError(f"the ledger's row {name} was altered: restore the ledger from a copy")
    return kind(**values)


def _digest(data: Any) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()
