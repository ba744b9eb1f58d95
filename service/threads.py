"""Work of threads that an event loop waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any


async def to_its_end(work: Awaitable[Any]) -> None:
    """Wait for work of a thread, also when cancelled: the thread goes on, and only then is known what it did."""
    running = asyncio.ensure_future(work)
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        with suppress(Exception):
            await running
        raise
