"""The sender for programs of asyncio: its work is done in threads, so that no call blocks the loop."""

from __future__ import annotations

import asyncio

from hushcount.delivery.events import Delivery, Event
from hushcount.delivery.sender import Sender
from hushcount.spent import Spent


class AsyncSender:
    """A `Sender` whose calls are awaited. One that is cancelled may still be done: its thread goes on."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    async def report(self, value: str) -> None:
        """Make and queue the reports of one value, as `Sender.report`."""
        await asyncio.to_thread(self._sender.report, value)

    async def deliver(self, early: bool = False) -> Delivery:
        """Send what is due, as `Sender.deliver`."""
        return await asyncio.to_thread(self._sender.deliver, early)

    async def start(self) -> AsyncSender:
        """Deliver in the background from now on, as `Sender.start`."""
        self._sender.start()
        return self

    async def close(self) -> None:
        """End that, as `Sender.close`."""
        await asyncio.to_thread(self._sender.close)

    async def __aenter__(self) -> AsyncSender:
        return await self.start()

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def spent(self) -> Spent:
        """Return what was spent on what."""
        return await asyncio.to_thread(self._sender.spent)

    async def forget(self) -> None:
        """Opt out, as `Sender.forget`."""
        await asyncio.to_thread(self._sender.forget)

    @property
    def log(self) -> tuple[Event, ...]:
        """The newest things that this object did."""
        return self._sender.log
