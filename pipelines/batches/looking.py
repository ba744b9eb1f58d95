"""The state for who only looks: nothing is made, locked or written, except that a killed writer's rest is undone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import cast

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pipelines.batches.state import connected, in_memory, opened, prepare, snapshot, unusable


@contextmanager
def looked(address: str) -> Iterator[Connection]:
    """Yield a `snapshot` of the state, and make nothing on a disk: it may be a read-only mount, or not be there yet.

    Raises:
        UsageError, HushcountError: as `opened`.
    """
    if "://" in address:
        with opened(address) as database, snapshot(database) as state:
            yield state
        return
    path = Path(address)
    try:
        with in_memory() as state:
            if path.exists():
                # What a killed writer left half done SQLite undoes first, if it may write.
                with closing(connected(path)) as source:
                    # The copy itself would wait for a writer for ever.
                    source.execute("BEGIN")
                    source.execute("SELECT count(*) FROM sqlite_master").fetchone()
                    source.backup(cast(sqlite3.Connection, state.connection.driver_connection))
            prepare(state, address)
            yield state
    except (DBAPIError, sqlite3.Error, OSError) as error:
        raise unusable(address, error) from None
