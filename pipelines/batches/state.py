"""The state database of `hushcount run`: which segments are in which batch, and what each hop counted.

SQLite in a file, or PostgreSQL by URL. It holds names, numbers and digests; no report, no token, no value. What it
says is decided in transactions, and every file is made from what it says, so that a killed run goes on where it was.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import NullPool, StaticPool

from hushcount.errors import HushcountError, UsageError

VERSION = 4
_BUSY_SECONDS = 30
_MAKING = 0x4D616B65  # "Make"
MODE = 0o600
READ_ONLY = "postgresql_readonly"
"""The option of a transaction that only looks."""

_METADATA = MetaData()
VERSIONS = Table("hushcount_state", _METADATA, Column("version", Integer, primary_key=True))
MANIFESTS = Table(
    "manifests",
    _METADATA,
    Column("path", String, primary_key=True),
    Column("campaign", String, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("fingerprint", String, nullable=False),
    Column("window", String, nullable=False),
    Column("seconds", Integer, nullable=False),
    Column("collector", String, nullable=False),
    Column("authentication", String, nullable=False),
    Column("refused", Text, nullable=False),
    Column("damaged", Integer, nullable=False),
)
"""What each collector closed: one row for each manifest; `refused` is JSON, number by reason."""
SEGMENTS = Table(
    "segments",
    _METADATA,
    Column("path", String, primary_key=True),
    Column("campaign", String, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("fingerprint", String, nullable=False),
    Column("window", String, nullable=False),
    Column("stream", String, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("digest", String, nullable=False),
    Column("authentication", String, nullable=False),
    Column("state", String, nullable=False),
    Column("batch", String),
    Column("reason", String),
)
"""One row for each segment; `state` is one of SEGMENT_STATES."""
SEGMENT_STATES = ("batched", "waiting", "too_late", "quarantined")
BATCHES = Table(
    "batches",
    _METADATA,
    Column("name", String, primary_key=True),
    Column("campaign", String, primary_key=True),
    Column("epoch", Integer, nullable=False),
    Column("fingerprint", String, nullable=False),
    Column("window", String, nullable=False),
    Column("state", String, nullable=False),
)
"""One row for each batch; `state` is made, or dissolved where too few reports stayed: its segments wait again."""
WINDOWS = Table(
    "windows",
    _METADATA,
    Column("campaign", String, primary_key=True),
    Column("window", String, primary_key=True),
    Column("closed_at", String, nullable=False),
    Column("seconds", Integer, nullable=False),
)
"""One row for each window that was closed, with its length."""
HOPS = Table(
    "hops",
    _METADATA,
    Column("campaign", String, primary_key=True),
    Column("batch", String, primary_key=True),
    Column("hop", String, primary_key=True),
    Column("counts", Text, nullable=False),
    Column("folder", String),
    Column("finished_at", String, nullable=False),
)
"""One row for each job that was done; `counts` is JSON, as in its summary; `folder` of the run, in a store."""
DELETED = Table(
    "deleted",
    _METADATA,
    Column("campaign", String, primary_key=True),
    Column("folder", String, primary_key=True),
    Column("batch", String, primary_key=True),
    Column("complete", Boolean, nullable=False),
)
"""One row for each part of a batch whose time was over; `complete` once all its files are gone."""
RUNS = Table(
    "runs",
    _METADATA,
    Column("token", BigInteger, nullable=False),
    Column("owner", String, nullable=False),
    Column("at", String),
)
"""One row: who took the lock last, and the last moment that a run trusted (ISO 8601)."""


@contextmanager
def opened(address: str) -> Iterator[Engine]:
    """Open the state, and make it where there is none.

    Args:
        address: file of an SQLite database, or a postgresql:// URL; its password may come from PGPASSWORD or ~/.pgpass.

    Raises:
        UsageError: it cannot be reached, or is none of ours, or is of another version.
    """
    engine = _engine(address)
    try:
        with engine.begin() as connection:
            _prepare(connection, shown(address))
        yield engine
    except DBAPIError as error:
        # The driver's own words: SQLAlchemy's would repeat the statement.
        cause = str(error.orig).strip().splitlines()
        raise HushcountError(
            f"state {shown(address)} cannot be used: {cause[0] if cause else 'no reason given'}"
        ) from None
    finally:
        engine.dispose()


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """Yield a connection that sees the state as it is now, for long looks that must not hold up a run.

    SQLite's readers and writers wait for each other, so that it is a copy in memory; PostgreSQL's do not.
    """
    if engine.dialect.name == "postgresql":
        look = {"isolation_level": "REPEATABLE READ", READ_ONLY: True}
        with engine.connect().execution_options(**look) as connection, connection.begin():
            yield connection
        return
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        raw = engine.raw_connection()
        try:
            cast(sqlite3.Connection, raw.driver_connection).backup(copy)
        finally:
            raw.close()
        memory = create_engine("sqlite://", creator=lambda: copy, poolclass=StaticPool)
        with memory.connect() as connection:
            yield connection


def _engine(address: str) -> Engine:
    try:
        if "://" in address:
            url = make_url(address)
            if url.drivername == "postgresql":
                url = url.set(drivername="postgresql+psycopg")
            return create_engine(url, pool_pre_ping=True)
        path = Path(address)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, MODE))
        # Opened anew for each transaction: what lies at the path by then is what is read and written.
        engine = create_engine("sqlite://", creator=partial(_connect, path), poolclass=NullPool)
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise UsageError(
            f"state {shown(address)} cannot be opened: {error}; for PostgreSQL pip install 'hushcount-server[postgres]'"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot make state {address}: {error.strerror}") from None
    event.listen(engine, "connect", _synchronous)
    event.listen(engine, "begin", _immediate)
    return engine


def _connect(path: Path) -> sqlite3.Connection:
    # Not made where it is gone: it would be a state that knows of nothing.
    file = f"file:{quote(str(path))}?mode=rw"
    return sqlite3.connect(file, uri=True, timeout=_BUSY_SECONDS, check_same_thread=False)


def _synchronous(connection: Any, _record: Any) -> None:
    # The driver would begin transactions late, and of itself.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous = FULL")


def _immediate(connection: Connection) -> None:
    # Who reads in order to write must not find that another has written meanwhile.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _prepare(connection: Connection, shown: str) -> None:
    if VERSIONS.name not in inspect(connection).get_table_names():
        _make(connection, shown)
    found = _only(connection, VERSIONS.c.version, shown)
    if found == VERSION:
        _only(connection, RUNS.c.token, shown)
    else:
        cure = "use the newer hushcount" if found > VERSION else "use the older hushcount, or begin with a new state"
        raise UsageError(f"state {shown} is of version {found}, this is version {VERSION}: {cure}")


def _make(connection: Connection, shown: str) -> None:
    """Make the tables, unless another process makes them at the same time."""
    if connection.dialect.name == "postgresql":
        # Until the transaction ends; SQLite's has the whole file to itself.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MAKING})
    tables = inspect(connection).get_table_names()
    if VERSIONS.name in tables:
        return
    if tables:
        raise UsageError(f"state {shown} holds other tables ({tables[0]}) and none of ours: give a database of its own")
    _METADATA.create_all(connection)
    connection.execute(VERSIONS.insert().values(version=VERSION))
    connection.execute(RUNS.insert().values(token=0, owner=""))


def _only(connection: Connection, column: Column[int], shown: str) -> int:
    """Return the value of a table that has one row."""
    values = connection.execute(select(column)).scalars().all()
    if len(values) != 1:
        raise UsageError(
            f"state {shown} is damaged: table {column.table.name} has {len(values)} rows, must have 1; restore the "
            "state, or begin with a new one"
        )
    return values[0]


def shown(address: str) -> str:
    """Return an address without its password."""
    return make_url(address).render_as_string(hide_password=True) if "://" in address else address
