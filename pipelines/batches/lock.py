"""The lock of a state, and the fence that keeps a run out that has lost it without knowing (docs/adr/0024).

A lock ends with its connection, which may be cut while the run works. So whoever takes it raises a token in the state,
and each transaction of a run reads it: a run that is no longer the last one changes nothing any more.
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


@dataclass(frozen=True)
class Run:
    """Who holds the lock.

    Attributes:
        token: greater than that of whoever held it before.
        owner: 16 random hexadecimal digits: a state that was restored gives a token again.
    """

    token: int
    owner: str


@contextmanager
def alone(engine: Engine, address: str, wait: bool) -> Iterator[Engine]:
    """Let one run at a time work on a state; it ends with the process, however that ends.

    Args:
        engine: of the state.
        address: its file or URL.
        wait: whether to wait for another run to end.

    Yields:
        The state for this run: each transaction on it raises LostLock as soon as another run took the lock.

    Raises:
        HushcountError: another run is at work, and it is not to be waited for.
    """
    with _locked(engine, address, wait):
        yield _fenced(engine, address)


def writer_of(state: Engine) -> Writer:
    """Return the run that a state of `alone` is for, as who writes its outputs."""
    return Writer(run_of(state).token, partial(prove, state))


def run_of(state: Engine) -> Run:
    """Return the run that a state of `alone` is for."""
    run: Run = state.get_execution_options()[_RUN]
    return run


def prove(state: Engine) -> None:
    """Raise LostLock if another run took the lock of a state of `alone`."""
    with state.begin():
        pass


@contextmanager
def _locked(engine: Engine, address: str, wait: bool) -> Iterator[None]:
    if engine.dialect.name == "postgresql":
        with engine.connect() as connection:
            # Closed, not pooled, at the end: that gives the lock back even if the connection is broken.
            connection.detach()
            if wait:
                connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK})
            elif not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _LOCK}).scalar_one():
                raise _busy(address)
            connection.commit()
            yield
        return
    import fcntl

    descriptor = os.open(f"{address}.lock", os.O_RDWR | os.O_CREAT, MODE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise _busy(address) from None
        yield
    finally:
        os.close(descriptor)


def _busy(address: str) -> HushcountError:
    return HushcountError(f"another run is at work on {shown(address)}: nothing was done; --wait waits for its end")


def _fenced(engine: Engine, address: str) -> Engine:
    """Take the next token, and return the engine whose transactions end where it is not the last one."""
    owner = secrets.token_hex(8)
    taken = update(RUNS).values(token=RUNS.c.token + 1, owner=owner).returning(RUNS.c.token)
    with engine.begin() as connection:
        run = Run(connection.execute(taken).scalar_one(), owner)
    fenced = engine.execution_options(**{_RUN: run})

    def check(connection: Connection) -> None:
        require_last(connection, run, address)

    event.listen(fenced, "begin", check)
    return fenced


def require_last(connection: Connection, run: Run, address: str) -> None:
    """Check in a transaction that began that its run took the lock last; until it ends nobody else takes it.

    Raises:
        LostLock: another run took it since, or the state is a copy that was put in its place.
    """
    last = select(RUNS.c.token, RUNS.c.owner)
    if not connection.get_execution_options().get(READ_ONLY):
        # Whoever takes the lock waits for the transactions that are under way; SQLite's are one at a time anyway.
        last = last.with_for_update(read=True)
    if connection.execute(last).all() != [(run.token, run.owner)]:
        raise LostLock(
            f"another run took over {shown(address)}, or it was exchanged for a copy: this run records nothing any "
            "more; run again, and see that nothing cuts its connection to the state"
        )
