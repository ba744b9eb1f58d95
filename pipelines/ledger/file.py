"""The ledger's file: an SQLite database that is made whole, and opened only if it is a ledger of this version."""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from hushcount.errors import FormatError, HushcountError, UsageError

VERSION = 2
_APPLICATION = int.from_bytes(b"HCLG", "big")
_BUSY_SECONDS = 10.0
_SCHEMA = (
    """CREATE TABLE limits (
        campaign TEXT PRIMARY KEY, epsilon REAL NOT NULL, delta REAL NOT NULL, renew_days INTEGER,
        since TEXT NOT NULL, composition TEXT NOT NULL CHECK (composition IN ('basic', 'numerical')),
        digest TEXT NOT NULL)""",
    """CREATE TABLE charges (
        key TEXT PRIMARY KEY, campaign TEXT NOT NULL, fingerprint TEXT NOT NULL, epoch INTEGER NOT NULL,
        hop TEXT NOT NULL, manifest TEXT NOT NULL, outline TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('reserved', 'committed')),
        epsilon REAL NOT NULL, delta REAL NOT NULL, local REAL, epoch_epsilon REAL,
        per TEXT NOT NULL CHECK (per IN ('client', 'report')), reports INTEGER,
        reserved_at TEXT NOT NULL, committed_at TEXT, host TEXT NOT NULL, pid INTEGER NOT NULL, run TEXT NOT NULL,
        draw TEXT, digest TEXT NOT NULL,
        UNIQUE (fingerprint, epoch, hop, manifest))""",
    "CREATE TABLE clock (one INTEGER PRIMARY KEY CHECK (one = 1), newest TEXT NOT NULL)",
)
COLUMNS = {
    "limits": ("campaign", "epsilon", "delta", "renew_days", "since", "composition", "digest"),
    "charges": (
        "key", "campaign", "fingerprint", "epoch", "hop", "manifest", "outline", "state", "epsilon", "delta",
        "local", "epoch_epsilon", "per", "reports", "reserved_at", "committed_at", "host", "pid", "run", "draw",
        "digest",
    ),
    "clock": ("one", "newest"),
}  # fmt: skip
"""The columns of every table, in their order."""


class LedgerError(HushcountError):
    """The ledger cannot be used now; nothing in it was changed."""


def resolved(path: Path) -> Path:
    """Return a ledger's one name, whatever links lead to it: its journal and its draws lie beside that."""
    return Path(os.path.realpath(path))


@contextmanager
def opened(path: Path, *, create: bool = False, busy_seconds: float = _BUSY_SECONDS) -> Iterator[sqlite3.Connection]:
    """Open a ledger, and turn what SQLite reports in the block into one sentence.

    Args:
        path: the file.
        create: whether to make it, readable by its owner only, where it is missing.
        busy_seconds: how long to wait for a process that writes to it.

    Raises:
        UsageError: it is missing, or its directory is; or it has several hard links.
        FormatError: it is no ledger, damaged, or of a newer version; it is left as it is.
        LedgerError: another process holds it, or it cannot be read or written.
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
        raise _explained(path, error, busy_seconds) from None


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold the only write lock for a block: all its changes are made, or none where it ends with an exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _require_one_name(path: Path) -> None:
    """Refuse a file with a second hard link: SQLite's journal, which takes back a killed write, has a file's name."""
    if path.stat().st_nlink < 2:
        return
    # One that was killed while it made the ledger left its temporary name.
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        with suppress(FileNotFoundError):
            if left.samefile(path):
                left.unlink()
    if (names := path.stat().st_nlink) > 1:
        raise UsageError(f"ledger {path} has {names} names (hard links), must have one: delete the others")


def _create(path: Path) -> None:
    """Make an empty ledger under a temporary name and link it to its own; one that appeared meanwhile stays."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(temporary, isolation_level=None)) as connection, writing(connection):
            for table in _SCHEMA:
                connection.execute(table)
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
    for table, columns in COLUMNS.items():
        there = tuple(row["name"] for row in connection.execute(f"PRAGMA table_info({table})"))
        if there != columns or version < VERSION:
            raise FormatError(f"ledger {path} has another schema than version {VERSION}: restore it from a copy")


def _explained(path: Path, error: sqlite3.Error, busy_seconds: float) -> HushcountError:
    text = str(error)
    if "locked" in text or "busy" in text:
        return LedgerError(f"ledger {path} was in use for more than {busy_seconds:g} s: run again when it is free")
    if isinstance(error, sqlite3.OperationalError):
        return LedgerError(f"ledger {path} cannot be used: {text}")
    return FormatError(f"ledger {path} is damaged or no ledger, {text}: restore it from a copy")
