"""The largest and smallest numbers that options take, where what they mean has no narrower range of its own."""

from __future__ import annotations

from hushcount.errors import UsageError

MOST_REPORTS = 10**12
MOST_SEED = (1 << 63) - 1
MOST_RUNS = 1_000_000
MOST_WINDOWS = 1_000_000
MOST_REPEATS = 1000
MOST_MEASURED = 10**8
"""Repeats and reports of a benchmark."""
MOST_DAYS = 36_500
MOST_BYTES = 1 << 20
MOST_MIB = 2.0**20
MOST_EPSILON = 40.0
"""Of shuffled reports, to be solved for: no local one is above it."""
MOST_LIMIT = 1e6
"""Epsilon that a limit may be."""
LEAST_USERS, MOST_USERS = 1e-6, 1e12
"""Of a standard error."""


def require_at_most(name: str, value: int | None, most: int, cost: str) -> None:
    """Refuse a number of an option that would cost more than anybody has; the sentence says what.

    Raises:
        UsageError: it is above the most.
    """
    if value is not None and value > most:
        raise UsageError(f"{name} is {value:,}, must be at most {most:,}: {cost}")
