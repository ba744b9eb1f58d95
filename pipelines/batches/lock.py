"""The lock of a state, and the fence that stops a run that has lost it without knowing (docs/adr/0024).

A lock ends with its connection, which may be cut while the run works. So whoever takes it raises a token in the state,
and each transaction of a run reads it: only the last run changes anything.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection, Engine, event, select, text, update

from hushcount.errors import HushcountError, LostLock
from pipelines.batches.state import MODE, READ_ONLY, RUNS, shown
from pipelines.outputs.staging import Writer

_LOCK = 0x48757368  # "Hush"
_RUN = "hushcount_run"
"""The option of an engine that names its run."""


class AnotherRun(HushcountError):
    """Another run is at work on the state: nothing was done."""


@dataclass(frozen=True)
class Run:
    """Who holds the lock.

    Attributes:
        owner: 16 random hexadecimal digits: a restored state gives a token again.
    """

    token: int
    owner: str


@contextmanager
def alone(engine: Engine, address: str, wait: bool) -> Iterator[Engine]:
    """Let one run at a time work on a state; it ends with the process, however that ends.

    Yields:
        The state for this run: each transaction on it raises LostLock as soon as another run took the lock.

    Raises:
        AnotherRun: another run is at work, and `wait` is false.
    """
    with _locked(engine, address, wait):
        yield _fenced(engine, address)


def writer_of(state: Engine) -> Writer:
    """Return the writer of the outputs of a run, from its state of `alone`."""
    return Writer(run_of(state).token, partial(prove, state))


def run_of(state: Engine) -> Run:
    """Return the run of a state of `alone`."""
    run: Run = state.get_execution_options()[_RUN]
    return run


def prove(state: Engine) -> None:
    """Raise LostLock if another run took the lock of a state of `alone`."""
    with state.begin():
        pass


@contextmanager
def _locked(engine: Engine, address: str, wait: bool) -> Iterator[None]:
    busy = AnotherRun(f"another run is at work on {shown(address)}: nothing was done; --wait waits for its end")
    if engine.dialect.name == "postgresql":
        with engine.connect() as connection:
            # Closed, not pooled, at the end: that gives the lock back even if the connection is broken.
            connection.detach()
            if wait:
                connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK})
            elif not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _LOCK}).scalar_one():
                raise busy
            connection.commit()
            yield
        return
    import fcntl

    descriptor = os.open(f"{address}.lock", os.O_RDWR | os.O_CREAT, MODE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise busy from None
        yield
    finally:
        os.close(descriptor)


def _fenced(engine: Engine, address: str) -> Engine:
    """Take the next token, and return the engine that lets only the last run's transactions through."""
    owner = secrets.token_hex(8)
    taken = update(RUNS).values(token=RUNS.c.token + 1, owner=owner).returning(RUNS.c.token)
    with engine.begin() as connection:
        run = Run(connection.execute(taken).scalar_one(), owner)
    fenced = engine.execution_options(**{_RUN: run})
    event.listen(fenced, "begin", lambda connection: require_last(connection, run, address))
    return fenced


def require_last(connection: Connection, run: Run, address: str) -> None:
    """Check in a transaction that began that its run took the lock last; until it ends nobody else takes it.

    Raises:
        LostLock: another run took it since, or the state is a copy that was put in its place.
    """
    last = select(RUNS.c.token, RUNS.c.owner)
    if not connection.get_execution_options().get(READ_ONLY):
        # Whoever takes the lock waits for the transactions under way; SQLite's are one at a time anyway.
        last = last.with_for_update(read=True)
    if connection.execute(last).all() != [(run.token, run.owner)]:
        raise LostLock(
            f"another run took over {shown(address)}, or it was exchanged for a copy: this run records nothing any "
            "more; run again, and see that nothing cuts its connection to the state"
        )
