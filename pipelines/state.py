"""The state database of `hushcount run`: which segments are in which batch, and what each hop counted.

SQLite in a file, or PostgreSQL by URL. It holds names, numbers and digests; no report, no token, no value. What it
says is decided in transactions, and every file is made from what it says, so that a killed run goes on where it was.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

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
from sqlalchemy.pool import StaticPool

from hushcount.errors import HushcountError, UsageError

VERSION = 3
_BUSY_SECONDS = 30
_LOCK = 0x48757368  # "Hush"
_MODE = 0o600

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
)
"""One row for each window that was closed."""
HOPS = Table(
    "hops",
    _METADATA,
    Column("campaign", String, primary_key=True),
    Column("batch", String, primary_key=True),
    Column("hop", String, primary_key=True),
    Column("counts", Text, nullable=False),
    Column("finished_at", String, nullable=False),
)
"""One row for each job that was done; `counts` is JSON, as in its summary."""
DELETED = Table(
    "deleted",
    _METADATA,
    Column("campaign", String, primary_key=True),
    Column("folder", String, primary_key=True),
    Column("batch", String, primary_key=True),
    Column("complete", Boolean, nullable=False),
)
"""One row for each part of a batch whose time was over; `complete` once all its files are gone."""


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
            _prepare(connection, _shown(address))
        yield engine
    except DBAPIError as error:
        # The driver's own words: SQLAlchemy's would repeat the statement.
        cause = str(error.orig).strip().splitlines()
        raise HushcountError(
            f"state {_shown(address)} cannot be used: {cause[0] if cause else 'no reason given'}"
        ) from None
    finally:
        engine.dispose()


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """Yield a connection that sees the state as it is now, for long looks that must not hold up a run.

    SQLite's readers and writers wait for each other, so that it is a copy in memory; PostgreSQL's do not.
    """
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection, connection.begin():
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


@contextmanager
def alone(engine: Engine, address: str, wait: bool) -> Iterator[None]:
    """Let one run at a time work on a state; it ends with the process, however that ends.

    Args:
        engine: of the state.
        address: its file or URL.
        wait: whether to wait for another run to end.

    Raises:
        HushcountError: another run is at work, and it is not to be waited for.
    """
    if engine.dialect.name == "postgresql":
        with engine.connect() as connection:
            if wait:
                connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK})
            elif not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _LOCK}).scalar_one():
                raise _busy(address)
            connection.commit()
            try:
                yield
            finally:
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _LOCK})
        return
    import fcntl

    descriptor = os.open(f"{address}.lock", os.O_RDWR | os.O_CREAT, _MODE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise _busy(address) from None
        yield
    finally:
        os.close(descriptor)


def _busy(address: str) -> HushcountError:
    return HushcountError(f"another run is at work on {_shown(address)}: nothing was done; --wait waits for its end")


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
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, _MODE))
        engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": _BUSY_SECONDS})
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise UsageError(
            f"state {_shown(address)} cannot be opened: {error}; for PostgreSQL pip install 'hushcount[postgres]'"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot make state {address}: {error.strerror}") from None
    event.listen(engine, "connect", _synchronous)
    event.listen(engine, "begin", _immediate)
    return engine


def _synchronous(connection: Any, _record: Any) -> None:
    # The driver would begin transactions late, and of itself.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous = FULL")


def _immediate(connection: Connection) -> None:
    # Who reads in order to write must not find that another has written meanwhile.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _prepare(connection: Connection, shown: str) -> None:
    tables = inspect(connection).get_table_names()
    if VERSIONS.name not in tables:
        if tables:
            raise UsageError(
                f"state {shown} holds other tables ({tables[0]}) and none of ours: give a database of its own"
            )
        _METADATA.create_all(connection)
        connection.execute(VERSIONS.insert().values(version=VERSION))
        return
    found = connection.execute(select(VERSIONS.c.version)).scalar_one()
    if found != VERSION:
        cure = "use the newer hushcount" if found > VERSION else "use the older hushcount, or begin with a new state"
        raise UsageError(f"state {shown} is of version {found}, this is version {VERSION}: {cure}")


def _shown(address: str) -> str:
    """Return an address without its password."""
    return make_url(address).render_as_string(hide_password=True) if "://" in address else address
