"""Lets an event loop wait for the work of threads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any


async def to_its_end(work: Awaitable[Any]) -> None:
    """Wait until a thread's work ends, even when cancelled: the thread cannot be stopped, and its result is needed."""
    running = asyncio.ensure_future(work)
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        with suppress(Exception):
            await running
        raise
