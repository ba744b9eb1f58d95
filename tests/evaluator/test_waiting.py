"""While questions wait for their answer: their key ends, their window ends, too many wait, all is killed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import httpx
import pytest

from evaluator.campaigns import AskedEpoch
from evaluator.evaluator import Evaluator, EvaluatorSetup
from evaluator.settings import EvaluatorPart
from pipelines.files.durable import probe, write_durably
from service.authentication import ClientToken
from service.refusals import Refused
from tests.evaluator.running import ask, destroy_evaluator_key, evaluating, keys_of, make_asked_site, manifests, some
from tests.shuffler.collector.running import LENGTH, Site, wait_for

TOKEN = b"a" * 16


@asynccontextmanager
async def waiting(site: Site) -> AsyncIterator[tuple[Evaluator, threading.Event]]:
    """An evaluator whose thread answers nothing until the event is set."""
    folder = str(site.base / "store" / "evaluations")
    counts = site.base / "evaluator"
    counts.mkdir()
    evaluator = Evaluator(
        EvaluatorSetup(
            settings=EvaluatorPart(name="one", queue_questions=300, most_questions_a_client=250),
            counts=counts,
            campaigns=site.base / "campaigns",
            keys=keys_of(site),
            evaluations=folder,
            length=LENGTH,
            authenticator=ClientToken(),
            verifier=None,
            write_whole=partial(write_durably, folder),
            probe=partial(probe, folder),
        )
    )
    await evaluator.start()
    free = threading.Event()
    evaluator._pool.submit(free.wait)
    try:
        yield evaluator, free
    finally:
        free.set()
        await evaluator.stop()


def epoch_of(evaluator: Evaluator) -> AskedEpoch:
    (epoch,) = evaluator.campaigns["words"].epochs.values()
    return epoch


def answer(evaluator: Evaluator, number: int, client: bytes = TOKEN) -> Awaitable[bytes]:
    epoch = epoch_of(evaluator)
    assert epoch.key is not None
    return asyncio.ensure_future(evaluator.answer(epoch, epoch.key.id, "clients", client, some(number)))


def refused(work: Callable[[], Awaitable[None]]) -> str:
    with pytest.raises(Refused) as caught:
        asyncio.run(work())  # type: ignore[arg-type]
    return caught.value.reason.name


def test_questions_that_waited_while_their_key_was_destroyed_get_no_answer(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)

    async def work() -> None:
        async with waiting(site) as (evaluator, free):
            asked = answer(evaluator, 40)
            await asyncio.sleep(0.05)
            destroy_evaluator_key(site)
            evaluator._look_at_keys()
            free.set()
            await asked

    assert refused(work) == "key_destroyed"


def test_more_questions_than_may_wait_are_refused_and_count_for_nobody(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)

    async def work() -> None:
        async with waiting(site) as (evaluator, free):
            first = answer(evaluator, 200)
            await asyncio.sleep(0.05)
            with pytest.raises(Refused, match="queue_full"):
                await answer(evaluator, 101, b"b" * 16)
            # Reserved questions count while they wait.
            with pytest.raises(Refused, match="too_many_questions"):
                await answer(evaluator, 51)
            free.set()
            assert len(await first) == 200 * 32 + 64
            assert len(await answer(evaluator, 50)) == 50 * 32 + 64
            assert len(await answer(evaluator, 250, b"b" * 16)) == 250 * 32 + 64

    asyncio.run(work())


def test_an_answer_counts_in_the_window_in_which_it_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = make_asked_site(tmp_path)
    real, ahead = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + ahead[0])

    async def work() -> None:
        async with waiting(site) as (evaluator, free):
            asked = answer(evaluator, 30)
            await asyncio.sleep(0.05)
            before = evaluator.counting.window
            ahead[0] = LENGTH.total_seconds()
            evaluator._turn()
            assert evaluator.counting.window == before.next
            free.set()
            await asked
            with pytest.raises(Refused, match="too_many_questions"):
                await answer(evaluator, 221)
            ahead[0] *= 2
            evaluator._turn()
            evaluator._flush()
            evaluator._store.carry(evaluator.counting.window.name)

    asyncio.run(work())
    (manifest,) = manifests(site)
    assert manifest.clients.questions == 30


def test_a_kill_under_load_loses_no_answer_that_arrived(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    with evaluating(site) as evaluator:

        def client(number: int) -> tuple[int, int]:
            """Ask until the evaluator is gone; return how many questions were answered and how many asked."""
            answered = asked = 0
            with suppress(httpx.HTTPError):
                for turn in range(10_000):
                    asked += 20
                    found = ask(evaluator, some(20), {"client-token": f"{number:08d}-{turn:08d}"})
                    assert found.status_code == 200
                    answered += 20
            return answered, asked

        with ThreadPoolExecutor(4) as pool:
            work = [pool.submit(client, number) for number in range(4)]
            time.sleep(0.7)
            evaluator.kill()
        told = [one.result() for one in work]
    with evaluating(site, LENGTH):
        wait_for(lambda: manifests(site))
    (manifest,) = manifests(site)
    answered, asked = (sum(numbers) for numbers in zip(*told, strict=True))
    assert 0 < answered <= manifest.clients.questions <= asked


def test_a_slow_disk_delays_no_end_of_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = make_asked_site(tmp_path)

    async def work() -> None:
        async with waiting(site) as (evaluator, free):
            free.set()
            (key,) = site.campaign().keys.evaluator
            assert evaluator.keys.find(key.id) is not None
            disk = threading.Event()
            monkeypatch.setattr(evaluator, "_flush", lambda: disk.wait(60))
            await asyncio.sleep(0.6)
            destroy_evaluator_key(site)
            began = time.monotonic()
            while evaluator.keys.find(key.id) is not None:
                await asyncio.sleep(0.05)
            assert time.monotonic() - began < 4.0
            disk.set()
            monkeypatch.undo()

    asyncio.run(work())
