"""A small SQLite database of one client, in memory or in a file that only its user can read; and the file's folder.

A change is tried once: when the `with` block ends, either the whole change or no part of the change is on the disk. A
connection to a file is open during one change only, so that a forked process never inherits a connection.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.formats.client_files import one_name
from hushcount.formats.whole_files import sync

_BUSY_SECONDS = 30.0
_SETTINGS = (
    # The journal is truncated, not removed, so that the end of a commit changes only the journal file, which SQLite
    # syncs, and not the folder.
    "PRAGMA journal_mode = TRUNCATE",
    "PRAGMA synchronous = FULL",
    # Overwrite deleted rows, because they contain plain values if the app keeps plain values.
    "PRAGMA secure_delete = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA temp_store = MEMORY",
)
# SQLite has locks of its own. A fork waits until no thread holds a lock of SQLite; otherwise the child could never take
# that lock.
_ALONE = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_ALONE.acquire, after_in_parent=_ALONE.release, after_in_child=_ALONE.release)


class Database:
    """Tables in a file of mode 0600, or in memory if `path` is None; threads and processes may share the tables.

    A database in memory belongs to the process that made it, so a child that is forked later begins with an empty
    database.

    Args:
        path: path of the file, which the first change makes.
        schema: statements that make the tables if they are missing.
        added: for each table of earlier releases, columns that it may lack, each with its type and default.
    """

    def __init__(
        self, path: Path | None, schema: tuple[str, ...], added: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    ) -> None:
        self._path = path
        self._schema = schema
        self._added = added
        self._memory: sqlite3.Connection | None = None
        self._process = 0

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection in a transaction; the transaction ends when the `with` block ends.

        Raises:
            UsageError: other users can read the database's file.
            FormatError: the database's file is damaged.
            HushcountError: the database's file cannot be read or written; nothing has changed.
        """
        with _ALONE:
            try:
                connection = self._opened()
                try:
                    connection.execute("BEGIN IMMEDIATE")
                    yield connection
                    connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    if self._path is not None:
                        connection.close()
            except sqlite3.OperationalError as error:
                raise HushcountError(f"cannot write queue file {self._path}: {error}; nothing changed") from None
            except sqlite3.DatabaseError:
                raise FormatError(
                    f"queue file {self._path} is damaged: remove it; its reports are lost, and their budget stays spent"
                ) from None

    def _opened(self) -> sqlite3.Connection:
        if self._path is not None:
            _require_private(self._path)
            return self._connected(str(self._path))
        if self._memory is None or self._process != os.getpid():
            self._memory, self._process = self._connected(":memory:"), os.getpid()
        return self._memory

    def _connected(self, name: str) -> sqlite3.Connection:
        connection = sqlite3.connect(name, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            for statement in (*_SETTINGS, *self._schema):
                connection.execute(statement)
            for table, columns in self._added.items():
                there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
                for column in columns.keys() - there:
                    connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} {columns[column]}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _require_private(path: Path) -> None:
    """Make the file if it is missing; UsageError if `path` is no regular file, or if other users can read it."""
    try:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            if os.name == "posix":
                sync(path.parent)
        except FileExistsError:
            pass
        # The file is not opened to read its mode, because closing any descriptor of the file would release SQLite's
        # locks on it.
        mode = os.stat(path).st_mode
    except OSError as error:
        raise HushcountError(f"cannot write queue file {path}: {error.strerror}; nothing changed") from None
    if not stat.S_ISREG(mode):
        raise UsageError(f"queue file {path} is no regular file: give another folder")
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise UsageError(f"queue file {path} has mode {stat.S_IMODE(mode):04o}, must be 0600: chmod 600 {path}")


def own_folder(path: Path) -> Path:
    """Return a directory that other users cannot change; it is made with mode 0700 if it is missing.

    Raises:
        UsageError: `path` is no directory, or other users can write to it.
        HushcountError: the directory cannot be made.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileExistsError:
        raise UsageError(f"folder {path} is a file, must be a directory") from None
    except OSError as error:
        raise HushcountError(f"cannot make folder {path}: {error.strerror}") from None
    if os.name == "posix" and mode & 0o022:
        raise UsageError(f"folder {path} has mode {mode:04o}, must not be writable by others: chmod 700 {path}")
    return one_name(path)
