"""What each account was given: a durable count of different requests, by account, campaign and day."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from contextlib import closing
from datetime import date
from pathlib import Path

FILE = "issued.sqlite"
_BUSY_SECONDS = 30.0
_SCHEMA = (
    "PRAGMA journal_mode = WAL",
    "CREATE TABLE IF NOT EXISTS issued (day TEXT NOT NULL, campaign TEXT NOT NULL, account BLOB NOT NULL,"
    " request BLOB NOT NULL, PRIMARY KEY (day, campaign, account, request)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS name_key (key BLOB NOT NULL)",
)


class Issued:
    """Counts in one file; threads and processes may share it. OSError, sqlite3.Error: it cannot be read or written.

    Privacy: an account stands in the file as a hash under a random key of the file, for two days.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._path.touch(mode=0o600)
        with closing(self._open()) as tables:
            for statement in _SCHEMA:
                tables.execute(statement)
            tables.execute("BEGIN IMMEDIATE")
            if tables.execute("SELECT count(*) FROM name_key").fetchone()[0] == 0:
                tables.execute("INSERT INTO name_key VALUES (?)", (secrets.token_bytes(32),))
            tables.execute("COMMIT")
            (self._key,) = tables.execute("SELECT key FROM name_key").fetchone()

    def may_have(self, account: str, campaign: str, day: date, request: bytes, most: int, over: date) -> bool:
        """Note a request durably, and return whether the account may have its answer.

        An equal request was noted before, so its answer is given again. Rows of days before `over` are deleted.
        """
        name = hashlib.blake2b(account.encode(), key=self._key, digest_size=16).digest()
        digest = hashlib.blake2b(request, digest_size=16).digest()
        row = (day.isoformat(), campaign, name)
        with closing(self._open()) as tables:
            tables.execute("BEGIN IMMEDIATE")
            tables.execute("DELETE FROM issued WHERE day < ?", (over.isoformat(),))
            had = {
                bytes(one[0])
                for one in tables.execute(
                    "SELECT request FROM issued WHERE day = ? AND campaign = ? AND account = ?", row
                )
            }
            allowed = digest in had or len(had) < most
            if allowed and digest not in had:
                tables.execute("INSERT INTO issued VALUES (?, ?, ?, ?)", (*row, digest))
            tables.execute("COMMIT")
        return allowed

    def _open(self) -> sqlite3.Connection:
        tables = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        # Both hold for one connection only. Without the first, a power cut may undo a commit in some builds of SQLite.
        tables.execute("PRAGMA synchronous = FULL")
        tables.execute("PRAGMA secure_delete = ON")
        return tables
