"""An answer that is on its way while its window ends counts in the next one, and renews no client's limit there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hushcount.collection.windows import window_at
from service.refusals import Refused
from tests.evaluator.in_process import answer, clock_ahead, waiting
from tests.evaluator.running import make_asked_site, manifests
from tests.shuffler.collector.running import LENGTH
from tests.shuffler.collector.test_uploads import soon


def test_an_answer_counts_in_the_window_in_which_it_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, ahead = make_asked_site(tmp_path), clock_ahead(monkeypatch)

    async def work() -> None:
        async with waiting(site, ahead=ahead) as (evaluator, pool):
            asked, first = answer(evaluator, 30), evaluator.counting.window
            await pool.holds(1)
            ahead[0] = LENGTH.total_seconds()
            await soon(lambda: evaluator.counting.window == window_at(first.end, LENGTH))
            pool.free.set()
            await asked
            with pytest.raises(Refused, match="too_many_evaluations"):
                await answer(evaluator, 221)
            ahead[0] *= 2
            await soon(lambda: manifests(site))

    asyncio.run(work())
    (manifest,) = manifests(site)
    assert manifest.clients.evaluations == 30


def test_a_window_that_ends_during_an_answer_gives_nothing_back_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, ahead = make_asked_site(tmp_path), clock_ahead(monkeypatch)

    async def work() -> None:
        async with waiting(site, ahead=ahead, most_evaluations=40) as (evaluator, pool):
            late, first = answer(evaluator, 40), evaluator.counting.window
            await pool.holds(1)
            ahead[0] = LENGTH.total_seconds()
            await soon(lambda: evaluator.counting.window == window_at(first.end, LENGTH))
            # The client asks all its evaluations of the next window meanwhile.
            asked = answer(evaluator, 40)
            await pool.holds(2)
            pool.free.set()
            with pytest.raises(Refused, match="too_many_evaluations"):
                await late
            with pytest.raises(Refused, match="too_many_evaluations"):
                await answer(evaluator, 1)
            assert len(await asked) == 40 * 32 + 64

    asyncio.run(work())
