"""How a run on a PostgreSQL state loses its lock without knowing."""

from __future__ import annotations

from sqlalchemy import Engine, text


def cut_lock(state: Engine) -> None:
    """Cut the connection that holds the lock, as a failover or an idle NAT does."""
    holder = "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory'"
    with state.connect() as connection:
        assert connection.execute(text(holder)).scalars().all() == [True]
