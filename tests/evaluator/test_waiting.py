"""While evaluations wait for their answer: their key ends, too many wait, all is killed."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from evaluator.counting import Counting
from service.refusals import Refused
from tests.evaluator.in_process import answer, clock_ahead, waiting
from tests.evaluator.running import ask, destroy_evaluator_key, evaluating, make_asked_site, manifests, some
from tests.shuffler.collector.running import LENGTH, wait_for
from tests.shuffler.collector.test_uploads import soon


def test_evaluations_that_waited_while_their_key_was_destroyed_get_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_asked_site(tmp_path)
    clock_ahead(monkeypatch)

    async def work() -> None:
        async with waiting(site) as (evaluator, pool):
            (key,) = site.campaign().keys.evaluator
            asked = answer(evaluator, 40)
            await pool.holds(1)
            destroy_evaluator_key(site)
            await soon(lambda: evaluator.keys.find(key.id) is None)
            pool.free.set()
            with pytest.raises(Refused, match="key_destroyed"):
                await asked

    asyncio.run(work())


def test_more_evaluations_than_may_wait_are_refused_and_count_for_nobody(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)

    async def work() -> None:
        async with waiting(site) as (evaluator, pool):
            first = answer(evaluator, 200)
            await pool.holds(1)
            with pytest.raises(Refused, match="queue_full"):
                await answer(evaluator, 101, b"b" * 16)
            # Reserved evaluations count while they wait.
            with pytest.raises(Refused, match="too_many_evaluations"):
                await answer(evaluator, 51)
            pool.free.set()
            assert len(await first) == 200 * 32 + 64
            assert len(await answer(evaluator, 50)) == 50 * 32 + 64
            assert len(await answer(evaluator, 250, b"b" * 16)) == 250 * 32 + 64

    asyncio.run(work())


def test_a_kill_under_load_loses_no_answer_that_arrived(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    busy = [threading.Event() for _ in range(4)]
    with evaluating(site) as evaluator:

        def client(number: int) -> tuple[int, int]:
            """Ask until the evaluator is gone; return how many evaluations were answered and how many asked."""
            answered = asked = 0
            with suppress(httpx.HTTPError):
                while True:
                    asked += 20
                    found = ask(evaluator, some(20), {"client-token": f"{number:08d}-{asked:08d}"})
                    assert found.status_code == 200
                    answered += 20
                    if answered >= 100:
                        busy[number].set()
            return answered, asked

        with ThreadPoolExecutor(4) as pool:
            work = [pool.submit(client, number) for number in range(4)]
            for one in busy:
                assert one.wait(120)
            evaluator.kill()
        told = [one.result() for one in work]
    with evaluating(site, LENGTH):
        wait_for(lambda: manifests(site))
    (manifest,) = manifests(site)
    answered, asked = (sum(numbers) for numbers in zip(*told, strict=True))
    assert 400 <= answered <= manifest.clients.evaluations <= asked


def test_a_slow_disk_delays_no_end_of_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = make_asked_site(tmp_path)
    clock_ahead(monkeypatch)
    writing, written = threading.Event(), threading.Event()

    def write_slowly(_: Counting) -> None:
        writing.set()
        written.wait(300)

    async def work() -> None:
        async with waiting(site) as (evaluator, _pool):
            (key,) = site.campaign().keys.evaluator
            assert evaluator.keys.find(key.id) is not None
            monkeypatch.setattr(Counting, "flush", write_slowly)
            try:
                await soon(writing.is_set)
                destroy_evaluator_key(site)
                await soon(lambda: evaluator.keys.find(key.id) is None)
            finally:
                written.set()
                monkeypatch.undo()

    asyncio.run(work())
