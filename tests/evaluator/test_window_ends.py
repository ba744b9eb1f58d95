"""An answer that is on its way while its window ends counts in the next one, and renews no client's limit there."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.campaigns import AskedEpoch
from evaluator.counting import Counting
from evaluator.evaluator import Evaluator
from evaluator.metrics import Metrics
from hushcount.collection.windows import window_at
from service.refusals import Refused

DAY = timedelta(days=1)
EPOCH = AskedEpoch(1, 0.0, 0.0, 0.0, "words", "ab" * 32, "words/000001-abab", None, 1)
CLIENT = b"a" * 16


def test_a_window_that_ends_during_an_answer_gives_nothing_back_in_the_next(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    first, second = (Counting(tmp_path, window_at(now + days * DAY, DAY), "client-token", 20, 100) for days in (0, 1))
    asked: Any = Evaluator.__new__(Evaluator)
    asked.setup = SimpleNamespace(settings=SimpleNamespace(queue_questions=1000))
    asked.metrics, asked.counting, asked._pool = Metrics(), first, ThreadPoolExecutor(1)
    asked._stopping, asked._waiting, asked._served = False, 0, {"key": EPOCH}
    asked._require_key = lambda key: None

    def evaluate(key: str, blinded: bytes) -> bytes:
        # The client asks all its questions of the next window meanwhile.
        asked.counting = second
        second.reserve(EPOCH, "clients", CLIENT, 20)
        return b"answer"

    asked._evaluate = evaluate
    with pytest.raises(Refused):
        asyncio.run(asked.answer(EPOCH, "key", "clients", CLIENT, bytes(32 * 20)))
    with pytest.raises(Refused):
        second.reserve(EPOCH, "clients", CLIENT, 1)
    asked._pool.shutdown()
