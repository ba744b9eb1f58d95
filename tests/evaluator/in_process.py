"""An evaluator in the process of the test, whose longer requests are answered when the test lets them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from evaluator import evaluator as module
from evaluator.campaigns import AskedEpoch
from evaluator.evaluator import Evaluator, EvaluatorSetup
from evaluator.settings import EvaluatorPart
from hushcount.clock import Clock
from hushcount.collection.tilings import Tiling
from pipelines.files.storage import probe, write_durably
from service.authentication import ClientToken
from tests.evaluator.running import keys_of, some
from tests.shuffler.collector.running import LENGTH, Site
from tests.shuffler.collector.test_uploads import soon

TOKEN = b"a" * 16


class Held(ThreadPoolExecutor):
    """A thread that works only once it is free."""

    def __init__(self) -> None:
        super().__init__(1)
        self.free = threading.Event()
        self.requests = 0

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        def later() -> Any:
            assert self.free.wait(300)
            return work(*args, **named)

        self.requests += 1
        return super().submit(later)

    async def holds(self, requests: int) -> None:
        """Wait until so many requests came."""
        await soon(lambda: self.requests >= requests)


@asynccontextmanager
async def waiting(
    site: Site, most_evaluations: int = 250, ahead: Sequence[float] = (0.0,)
) -> AsyncIterator[tuple[Evaluator, Held]]:
    """An evaluator whose thread is held; its clock runs so many seconds ahead."""
    folder = str(site.base / "store" / "evaluations")
    counts = site.base / "evaluator"
    counts.mkdir()
    pool = Held()
    evaluator = Evaluator(
        EvaluatorSetup(
            settings=EvaluatorPart(name="one", queue_evaluations=300, most_evaluations_a_client=most_evaluations),
            counts=counts,
            campaigns=site.base / "campaigns",
            keys=keys_of(site),
            evaluations=folder,
            tiling=Tiling(LENGTH),
            authenticator=ClientToken(),
            verifier=None,
            write_whole=partial(write_durably, folder),
            probe=partial(probe, folder),
            clock=Clock(lambda: time.time() + ahead[0]),
        ),
        pool,
    )
    await evaluator.start()
    try:
        yield evaluator, pool
    finally:
        pool.free.set()
        await evaluator.stop()


def clock_ahead(patch: pytest.MonkeyPatch) -> list[float]:
    """Let the evaluator look often at keys, clock and store; return by how many seconds its clock is to run ahead."""
    patch.setattr(module, "_TICK_SECONDS", 0.01)
    patch.setattr(module, "_STORE_SECONDS", 0.01)
    return [0.0]


def epoch_of(evaluator: Evaluator) -> AskedEpoch:
    (epoch,) = evaluator.campaigns["words"].epochs.values()
    return epoch


def answer(evaluator: Evaluator, number: int, client: bytes = TOKEN) -> Awaitable[bytes]:
    epoch = epoch_of(evaluator)
    assert epoch.key is not None
    return asyncio.ensure_future(evaluator.answer(epoch, epoch.key.id, "clients", client, some(number)))
