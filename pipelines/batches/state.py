"""The state database of `hushcount run`: which segments are in which batch, and what each hop counted.

SQLite in a file, or PostgreSQL by URL. It holds names, numbers and digests; no report, no token, and no value beyond
the results that alerts repeat. Transactions decide what it says, and every file follows from it: the next run resumes
a killed one.
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
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import NullPool, StaticPool

from hushcount.errors import HushcountError, UsageError

VERSION = 5
_WITHOUT_ALERTS = 4
"""The version before, which lacks a table and is otherwise alike."""
_BUSY_SECONDS = 30
_MAKING = 0x4D616B65  # "Make"
_NOTICED_BY_CLIENT = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""Within a minute each side notices that the network lost the other; by default after hours, in which no run works."""
_NOTICED_BY_SERVER = (
    "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3; "
    "SET tcp_user_timeout = '60s'"
)
MODE = 0o600
READ_ONLY = "postgresql_readonly"
"""The option of a transaction that only reads."""

_METADATA = MetaData()


def _table(name: str, keys: str, required: dict[str, Any], optional: str = "") -> Table:
    """Return a table: text columns as its key, then those that every row has, then text that may be missing."""
    return Table(
        name,
        _METADATA,
        *(Column(key, String, primary_key=True) for key in keys.split()),
        *(Column(column, kind, nullable=False) for column, kind in required.items()),
        *(Column(column, String) for column in optional.split()),
    )


_OF_FILE = {"campaign": String, "epoch": Integer, "fingerprint": String, "window": String}
_MANIFEST = {"seconds": Integer, "collector": String, "authentication": String, "refused": Text, "damaged": Integer}
_SEGMENT = {"stream": String, "records": BigInteger, "bytes": BigInteger, "digest": String, "authentication": String}
_BATCH = {"epoch": Integer, "fingerprint": String, "window": String, "state": String}

VERSIONS = Table("hushcount_state", _METADATA, Column("version", Integer, primary_key=True))
MANIFESTS = _table("manifests", "path", {**_OF_FILE, **_MANIFEST})
"""One row for each manifest, that is what a collector closed; `refused` is JSON, number by reason."""
SEGMENTS = _table("segments", "path", {**_OF_FILE, **_SEGMENT, "state": String}, "batch reason")
"""One row for each segment; `state` is one of SEGMENT_STATES."""
SEGMENT_STATES = ("batched", "waiting", "too_late", "quarantined")
BATCHES = _table("batches", "name campaign", _BATCH)
"""One row for each batch; `state` is made, or dissolved where too few reports stayed: its segments wait again."""
WINDOWS = _table("windows", "campaign window", {"closed_at": String, "seconds": Integer})
"""One row for each closed window, with its length."""
HOPS = Table(
    "hops",
    _METADATA,
    *(Column(key, String, primary_key=True) for key in ("campaign", "batch", "hop")),
    Column("counts", Text, nullable=False),
    Column("folder", String),
    Column("finished_at", String, nullable=False),
)
"""One row for each finished job; `counts` is JSON, as in its summary; `folder` of the run, in a store."""
DELETED = _table("deleted", "campaign folder batch", {"complete": Boolean})
"""One row for each part of a batch that retention deletes; `complete` once all its files are gone."""
RUNS = _table("runs", "", {"token": BigInteger, "owner": String}, "at")
"""One row: who took the lock last, and the last moment that a run trusted (ISO 8601)."""
_FACT = {"kind": String, "campaign": String, "subject": String, "fact": Text, "body": Text}
_TOLD = {"standing": Boolean, "began_at": String, "delivery": String, "attempts": Integer, "next_at": String}
ALERTS = _table("alerts", "id", {**_FACT, **_TOLD}, "failure settled_at")
"""One row for each alert that ever stood; `delivery` is one of ALERT_DELIVERIES, `body` the JSON that is sent."""
ALERT_DELIVERIES = ("pending", "sent", "given_up")


@contextmanager
def opened(address: str) -> Iterator[Engine]:
    """Open the state; a missing one is made.

    Args:
        address: file of an SQLite database, or a postgresql:// URL; its password may come from PGPASSWORD,
            or from the file that PGPASSFILE names, ~/.pgpass by default.

    Raises:
        UsageError: it cannot be reached, holds foreign tables, or is of another version.
    """
    engine = _engine(address)
    try:
        with engine.begin() as connection:
            prepare(connection, shown(address))
        yield engine
    except DBAPIError as error:
        raise unusable(address, error) from None
    finally:
        engine.dispose()


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """Yield a connection that sees the state as it is now, for long readers that must not block a run.

    SQLite's readers and writers wait for each other, so this is a copy in memory; PostgreSQL's do not wait.
    """
    if engine.dialect.name == "postgresql":
        look = {"isolation_level": "REPEATABLE READ", READ_ONLY: True}
        with engine.connect().execution_options(**look) as connection, connection.begin():
            yield connection
        return
    with in_memory() as connection:
        raw = engine.raw_connection()
        try:
            cast(sqlite3.Connection, raw.driver_connection).backup(
                cast(sqlite3.Connection, connection.connection.driver_connection)
            )
        finally:
            raw.close()
        yield connection


@contextmanager
def in_memory() -> Iterator[Connection]:
    """Yield a connection to an empty SQLite database that no disk has."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        memory = create_engine("sqlite://", creator=lambda: copy, poolclass=StaticPool)
        with memory.connect() as connection:
            yield connection


def unusable(address: str, error: DBAPIError | sqlite3.Error | OSError) -> HushcountError:
    """Return the one sentence of a driver's error."""
    # The driver's own words: SQLAlchemy's would repeat the statement.
    cause = str(error.orig if isinstance(error, DBAPIError) else error).strip().splitlines()
    return HushcountError(f"state {shown(address)} cannot be used: {cause[0] if cause else 'no reason given'}")


def _engine(address: str) -> Engine:
    try:
        if "://" in address:
            url = _url(address)
            if url.drivername == "postgresql":
                url = url.set(drivername="postgresql+psycopg")
            engine = create_engine(url.set(query={**_NOTICED_BY_CLIENT, **url.query}), pool_pre_ping=True)
            event.listen(engine, "connect", _watched_by_server)
            return engine
        path = Path(address)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, MODE))
        # Each transaction opens the path anew, and so uses the file that lies there by then.
        engine = create_engine("sqlite://", creator=partial(connected, path), poolclass=NullPool)
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise UsageError(
            f"state {shown(address)} cannot be opened: {error}; for PostgreSQL pip install 'hushcount-server[postgres]'"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot make state {address}: {error.strerror}") from None
    event.listen(engine, "connect", _synchronous)
    # Who reads in order to write must not find that another has written meanwhile.
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def connected(path: Path) -> sqlite3.Connection:
    """Open the file of a state."""
    # A lost file is not made anew here: that state would know of nothing.
    file = f"file:{quote(str(path))}?mode=rw"
    return sqlite3.connect(file, uri=True, timeout=_BUSY_SECONDS, check_same_thread=False)


def _watched_by_server(connection: Any, _record: Any) -> None:
    """Let the server end a session of a client that is gone: with the session it holds the lock of a run."""
    with connection.cursor() as cursor:
        cursor.execute(_NOTICED_BY_SERVER)
    connection.commit()


def _synchronous(connection: Any, _record: Any) -> None:
    # The driver would begin transactions late, and of itself.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous = FULL")


def prepare(connection: Connection, shown: str) -> None:
    """Make the tables unless they are there; UsageError: the state is of another version, or not ours."""
    if VERSIONS.name not in inspect(connection).get_table_names():
        _make(connection, shown)
    found = _only(connection, VERSIONS.c.version, shown)
    if found == _WITHOUT_ALERTS:
        found = _add_alerts(connection, shown)
    if found != VERSION:
        cure = "use the newer hushcount" if found > VERSION else "use the older hushcount, or begin with a new state"
        raise UsageError(f"state {shown} is of version {found}, this is version {VERSION}: {cure}")
    _only(connection, RUNS.c.token, shown)


def _make(connection: Connection, shown: str) -> None:
    """Make the tables, unless another process makes them at the same time."""
    _wait_for_makers(connection)
    tables = inspect(connection).get_table_names()
    if VERSIONS.name in tables:
        return
    if tables:
        raise UsageError(f"state {shown} holds other tables ({tables[0]}) and none of ours: give a database of its own")
    _METADATA.create_all(connection)
    connection.execute(VERSIONS.insert().values(version=VERSION))
    connection.execute(RUNS.insert().values(token=0, owner=""))


def _add_alerts(connection: Connection, shown: str) -> int:
    """Add the table that the version before lacks, unless another process did, and return the version."""
    _wait_for_makers(connection)
    if _only(connection, VERSIONS.c.version, shown) == _WITHOUT_ALERTS:
        ALERTS.create(connection)
        connection.execute(VERSIONS.update().values(version=VERSION))
    return _only(connection, VERSIONS.c.version, shown)


def _wait_for_makers(connection: Connection) -> None:
    """Let one process at a time make tables, until the transaction ends."""
    if connection.dialect.name == "postgresql":
        # SQLite's transaction has the whole file to itself.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MAKING})


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
    """Return an address without its passwords."""
    if "://" not in address:
        return address
    url = _url(address)
    hidden = {name: "***" if "password" in name else value for name, value in url.query.items()}
    return url.set(query=hidden).render_as_string(hide_password=True)


def _url(address: str) -> URL:
    """Return an address that is a URL; UsageError, without its text, which may hold a password: it is none."""
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        url = None
    # A second @ would be taken for the host's, with what is before it of the password.
    if url is None or "@" in (url.host or ""):
        raise UsageError(
            "state is not a URL, must be postgresql://USER@HOST:PORT/DATABASE: in a user name or password write @ as "
            "%40, : as %3A, / as %2F, or give the password by PGPASSFILE"
        )
    return url
