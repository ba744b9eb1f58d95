"""The ledger's file: an SQLite database that appears complete, and that opens only if it is a ledger of this version.

Every row has a digest, which shows whether the row was altered. Ledger and log name each other: the log states the
ledger's id, and the ledger notes the newest log entry that it follows. Because the log states the ledger's id, a run
that would charge in another ledger is refused. A log that was restored from an older copy is noticed, because it lacks
the log entry that the ledger notes.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

from hushcount.errors import FormatError, HushcountError, UsageError
from pipelines.ledger.charges import Charge, Limit, digest_of, stamp, window_in

VERSION = 4
_APPLICATION = int.from_bytes(b"HCLG", "big")
_BUSY_SECONDS = 10.0
_SCHEMA = (
    """CREATE TABLE limits (
        campaign TEXT PRIMARY KEY, epsilon REAL NOT NULL, delta REAL NOT NULL, renew_days INTEGER,
        since TEXT NOT NULL, composition TEXT NOT NULL CHECK (composition IN ('basic', 'joint')),
        digest TEXT NOT NULL)""",
    """CREATE TABLE charges (
        key TEXT PRIMARY KEY, campaign TEXT NOT NULL, fingerprint TEXT NOT NULL, epoch INTEGER NOT NULL,
        hop TEXT NOT NULL, manifest TEXT NOT NULL, outline TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('reserved', 'committed')),
        epsilon REAL NOT NULL, delta REAL NOT NULL, local REAL, epoch_epsilon REAL,
        per TEXT NOT NULL CHECK (per IN ('client', 'report')), reports INTEGER,
        reserved_at TEXT NOT NULL, committed_at TEXT, host TEXT NOT NULL, pid INTEGER NOT NULL, run TEXT NOT NULL,
        draw TEXT, curve TEXT, digest TEXT NOT NULL,
        UNIQUE (fingerprint, epoch, hop, manifest))""",
    "CREATE TABLE clock (one INTEGER PRIMARY KEY CHECK (one = 1), newest TEXT NOT NULL)",
    "CREATE TABLE identity (id TEXT PRIMARY KEY)",
    """CREATE TABLE followed (
        campaign TEXT NOT NULL, party TEXT NOT NULL, generation INTEGER NOT NULL, number INTEGER NOT NULL,
        entry TEXT NOT NULL, PRIMARY KEY (campaign, party))""",
)
_COLUMNS = {
    "limits": [*(field.name for field in fields(Limit)), "digest"],
    "charges": [*(field.name for field in fields(Charge) if field.compare), "curve", "digest"],
    "clock": ["one", "newest"],
    "identity": ["id"],
    "followed": ["campaign", "party", "generation", "number", "entry"],
}
Record = TypeVar("Record", Limit, Charge)


class LedgerError(HushcountError):
    """The ledger cannot be used now, and nothing in it was changed."""


def resolved(path: Path) -> Path:
    """Return a ledger's path without symbolic links: SQLite's journal, and the ledger's draws, lie beside that path."""
    return Path(os.path.realpath(path))


@contextmanager
def opened(path: Path, *, create: bool = False, busy_seconds: float = _BUSY_SECONDS) -> Iterator[sqlite3.Connection]:
    """Open a ledger for a block; each error of SQLite in the block becomes an error of one sentence.

    Args:
        path: the file.
        create: whether to make a missing ledger, readable by its owner only.
        busy_seconds: how long to wait for another process that writes to the ledger.

    Raises:
        UsageError: the file or its directory is missing, or the file has several hard links.
        FormatError: the file is no ledger, is damaged, or has another version; the file is not changed.
        LedgerError: another process uses the ledger, or the ledger cannot be read or written.
    """
    path = resolved(path)
    if create and not path.exists():
        _create(path)
    if not path.is_file():
        raise UsageError(f"ledger {path} {'is no file' if path.exists() else 'does not exist'}")
    _require_one_name(path)
    address = f"{path.absolute().as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(address, timeout=busy_seconds, isolation_level=None, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            _check(connection, path)
            connection.execute("PRAGMA synchronous = EXTRA")
            yield connection
    except sqlite3.Error as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise LedgerError(
                f"ledger {path} was in use for more than {busy_seconds:g} s: run again when it is free"
            ) from None
        if isinstance(error, sqlite3.OperationalError):
            raise LedgerError(f"ledger {path} cannot be used: {text}") from None
        raise FormatError(f"ledger {path} is damaged or no ledger, {text}: restore it from a copy") from None


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold the ledger's only write lock for a block; if the block raises an exception, none of its changes are made."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _require_one_name(path: Path) -> None:
    """Refuse a file with a second hard link: SQLite's journal, which undoes killed writes, is named after the file."""
    if path.stat().st_nlink < 2:
        return
    # A process that was killed while it made a ledger may have left the temporary name as a second link.
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        with suppress(FileNotFoundError):
            if left.samefile(path):
                left.unlink()
    if (names := path.stat().st_nlink) > 1:
        raise UsageError(f"ledger {path} has {names} names (hard links), must have one: delete the others")


def _create(path: Path) -> None:
    """Make an empty ledger under a temporary name and link it to its real name; an existing ledger is not replaced."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(temporary, isolation_level=None)) as connection, writing(connection):
            for table in _SCHEMA:
                connection.execute(table)
            connection.execute("INSERT INTO identity (id) VALUES (?)", (secrets.token_hex(8),))
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        os.link(temporary, path)
    except FileExistsError:
        return
    except OSError as error:
        raise UsageError(f"cannot make ledger {path}: {error.strerror}") from None
    except sqlite3.Error as error:
        raise LedgerError(f"cannot make ledger {path}: {error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise FormatError(f"{path} is no ledger of Hushcount: give another file")
    if version > VERSION:
        raise FormatError(
            f"ledger {path} has version {version}, this program reads version {VERSION}: use a newer Hushcount"
        )
    for table, columns in _COLUMNS.items():
        there = [row["name"] for row in connection.execute(f"PRAGMA table_info({table})")]
        if there != columns or version < VERSION:
            raise FormatError(f"ledger {path} has another schema than version {VERSION}: restore it from a copy")


def read_limits(connection: sqlite3.Connection) -> list[Limit]:
    """Return all limits, by campaign; raises FormatError if a row was altered."""
    return [_record(Limit, row) for row in connection.execute("SELECT * FROM limits ORDER BY campaign")]


def read_limit(connection: sqlite3.Connection, campaign: str) -> Limit | None:
    """Return a campaign's limit, or None; raises FormatError if a row was altered."""
    return next((limit for limit in read_limits(connection) if limit.campaign == campaign), None)


def read_charges(connection: sqlite3.Connection, campaign: str | None = None) -> list[Charge]:
    """Return the charges and reservations of a campaign, or of all campaigns, oldest first.

    Raises:
        FormatError: a row was altered.
    """
    rows = connection.execute("SELECT * FROM charges ORDER BY COALESCE(committed_at, reserved_at), rowid")
    return [_record(Charge, row) for row in rows if campaign in (None, row["campaign"])]


def read_newest(connection: sqlite3.Connection) -> datetime | None:
    """Return the ledger's time at its last use, None for a new ledger; raises FormatError if the time was altered."""
    row = connection.execute("SELECT newest FROM clock").fetchone()
    try:
        return None if row is None else datetime.fromisoformat(row["newest"]).astimezone(timezone.utc)
    except ValueError:
        raise FormatError("the ledger's time was altered: restore the ledger from a copy") from None


def put_newest(connection: sqlite3.Connection, now: datetime) -> None:
    """Write the ledger's time."""
    connection.execute("INSERT OR REPLACE INTO clock (one, newest) VALUES (1, ?)", (stamp(now),))


def put(connection: sqlite3.Connection, record: Limit | Charge) -> None:
    """Write a record, which replaces the record with the same key."""
    table = "limits" if isinstance(record, Limit) else "charges"
    values = asdict(record) if isinstance(record, Limit) else record.row() | {"curve": record.curve}
    # The columns hold floats, and the digest must be of the values that a reader gets, so integers become floats first.
    values.update(epsilon=float(record.epsilon), delta=float(record.delta))
    values["digest"] = digest_of(values)
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT OR REPLACE INTO {table} ({', '.join(values)}) VALUES ({marks})", [*values.values()])  # noqa: S608  # our own names


def _record(kind: type[Record], row: sqlite3.Row) -> Record:
    values = dict(row)
    if values.pop("digest") != digest_of(values):
        name = values.get("key") or values["campaign"]
        raise FormatError(f"the ledger's row {name} was altered: restore the ledger from a copy")
    return kind(**values) if kind is Limit else kind(**values | {"window": window_in(values.pop("curve"))})


@dataclass(frozen=True, order=True)
class Followed:
    """An entry of a log: its generation, number and digest."""

    generation: int
    number: int
    entry: str


def id_of(path: Path, *, create: bool = False) -> str:
    """Return the random id of a ledger, which was drawn when the ledger was made; raises what `opened` raises."""
    with opened(path, create=create) as connection:
        row = connection.execute("SELECT id FROM identity").fetchone()
    if row is None:
        raise FormatError(f"ledger {path} has no id: restore it from a copy")
    return str(row["id"])


def followed(path: Path, party: str) -> dict[str, Followed]:
    """Return the newest entry that a ledger notes of each log of a party, by campaign; raises what `opened` raises."""
    if not path.exists():
        return {}
    with opened(path) as connection:
        rows = connection.execute("SELECT campaign, generation, number, entry FROM followed WHERE party = ?", (party,))
        return {row["campaign"]: Followed(row["generation"], row["number"], row["entry"]) for row in rows}


def follow(path: Path, campaign: str, entries: Mapping[str, Followed]) -> None:
    """Note the newest log entry of each party, unless a newer entry is noted already; raises what `opened` raises."""
    with opened(path) as connection, writing(connection):
        connection.executemany(
            "INSERT INTO followed (campaign, party, generation, number, entry) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (campaign, party) DO UPDATE SET generation = excluded.generation, number = excluded.number, "
            "entry = excluded.entry WHERE (excluded.generation, excluded.number) > (generation, number)",
            [(campaign, party, one.generation, one.number, one.entry) for party, one in entries.items()],
        )
