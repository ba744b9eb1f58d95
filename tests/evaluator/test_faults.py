"""What fails within an evaluator costs nothing but itself: no count, no other step, no other window."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from evaluator import counting, evaluator
from evaluator.campaigns import AskedEpoch
from evaluator.counting import Counting
from evaluator.evaluator import Evaluator
from hushcount.collection.windows import window_at
from tests.evaluator.in_process import answer, clock_ahead, epoch_of, waiting
from tests.evaluator.running import make_asked_site, manifests, some
from tests.shuffler.collector.running import LENGTH, Site
from tests.shuffler.collector.test_uploads import soon

NOW, DAY = datetime(2026, 1, 1, tzinfo=timezone.utc), timedelta(days=1)
EPOCH = AskedEpoch(1, 0.0, 0.0, 0.0, "words", "ab" * 32, "words/000001-abab", None, 1)
CLIENT = b"a" * 16


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_asked_site(tmp_path)


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How many seconds the clock runs ahead."""
    return clock_ahead(monkeypatch)


def run(site: Site, steps: Callable[[Evaluator], Awaitable[None]], ahead: Sequence[float] = (0.0,)) -> None:
    """Run steps within the loop of an evaluator that answers at once."""

    async def work() -> None:
        async with waiting(site, ahead=ahead) as (asked, pool):
            pool.free.set()
            await steps(asked)

    asyncio.run(work())


def fail(*given: object) -> None:
    raise OSError("no room")


def counts_at(root: Path, day: int) -> Counting:
    return Counting(root, window_at(NOW + day * DAY, DAY), "client-token", 20, 100)


def refused_file(root: Path) -> Path:
    (path,) = root.glob("*/words/*/refused.json")
    return path


def test_refusals_that_cannot_be_counted_wait_and_hold_up_no_end_of_a_window(
    site: Site, ahead: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(asked: Evaluator) -> None:
        first = asked.counting
        monkeypatch.setattr(Counting, "refused", fail)
        asked.refusals[epoch_of(asked), "clients", "bad_element"] += 3
        await soon(lambda: "refusals failed: OSError" in asked.faults())
        ahead[0] = LENGTH.total_seconds()
        await soon(lambda: asked.counting is not first)
        assert "refusals failed: OSError" in asked.faults()
        monkeypatch.undo()
        await soon(lambda: not asked.refusals)

    run(site, steps, ahead)
    assert '"bad_element":3' in refused_file(site.base / "evaluator").read_text()


def test_a_stop_waits_for_what_a_thread_writes(site: Site, ahead: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    busy: list[int] = []
    most = 0

    async def steps(asked: Evaluator) -> None:
        begun, disk = threading.Event(), threading.Event()

        def flush() -> None:
            nonlocal most
            busy.append(1)
            most = max(most, len(busy))
            begun.set()
            disk.wait(10)
            busy.pop()

        monkeypatch.setattr(asked.counting, "flush", flush)
        await soon(begun.is_set)
        threading.Timer(0.3, disk.set).start()
        await asked.stop()

    run(site, steps, ahead)
    assert most == 1


def test_a_step_of_the_stop_that_fails_stops_no_other(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def steps(asked: Evaluator) -> None:
        await answer(asked, 1)
        monkeypatch.setattr(Evaluator, "_flush", fail)
        await asked.stop()
        monkeypatch.undo()
        assert not asked.counting._folders

    run(site, steps)
    assert "stopping failed" in caplog.messages


def test_a_campaign_whose_folder_goes_while_a_body_is_read_is_answered(site: Site) -> None:
    async def steps(asked: Evaluator) -> None:
        epoch = epoch_of(asked)
        assert epoch.key is not None
        shutil.rmtree(site.base / "campaigns" / "words")
        before = asked.campaigns
        asked._read_campaigns()
        assert await asked.answer(epoch, epoch.key.id, "clients", CLIENT, some(1))
        # A thread may replace what is served while the faults are told.
        asked.campaigns = before
        assert asked.faults() == []

    run(site, steps)


def test_only_a_failed_write_counts_as_one(site: Site, ahead: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(asked: Evaluator) -> None:
        monkeypatch.setattr(evaluator, "read_campaigns", fail)
        monkeypatch.setattr(asked.keys, "look", fail)
        await soon(lambda: {"campaigns failed: OSError", "keys failed: OSError"} <= set(asked.faults()))
        assert _failed_writes(asked) == 0
        monkeypatch.setattr(asked.counting, "flush", fail)
        await soon(lambda: _failed_writes(asked) > 0)

    run(site, steps, ahead)


def _failed_writes(asked: Evaluator) -> float:
    return asked.metrics.registry.get_sample_value("hushcount_evaluator_failed_writes_total") or 0.0


def test_a_window_that_began_after_the_store_was_called_stays(site: Site) -> None:
    async def steps(asked: Evaluator) -> None:
        await answer(asked, 1)
        window = asked.counting.window
        earlier = window_at(window.start - LENGTH, LENGTH)
        asked._store.carry(earlier.name)
        assert (site.base / "evaluator" / window.name).is_dir()

    run(site, steps)
    assert manifests(site) == []


@pytest.mark.parametrize("failing", ["write_over", "fdatasync"])
def test_a_window_that_could_not_be_written_can_be_closed_again(
    tmp_path: Path, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = counts_at(tmp_path, 0)
    counts.answered(EPOCH, "clients", CLIENT, 2)
    counts.refused(EPOCH, "clients", "bad_element", 3)
    monkeypatch.setattr(counting if failing == "write_over" else os, failing, fail)
    with pytest.raises(OSError, match="no room"):
        counts.close()
    monkeypatch.undo()
    counts.close()
    assert '"bad_element":3' in refused_file(tmp_path).read_text()
    counts.close()


def test_a_window_that_ended_and_cannot_be_written_holds_up_no_present_one(
    site: Site, ahead: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(asked: Evaluator) -> None:
        first = asked.counting
        monkeypatch.setattr(first, "close", fail)
        ahead[0] = LENGTH.total_seconds()
        await soon(lambda: asked.counting is not first)
        asked.refusals[epoch_of(asked), "clients", "bad_element"] += 1
        here = site.base / "evaluator" / asked.counting.window.name
        await soon(lambda: '"bad_element":1' in "".join(path.read_text() for path in here.rglob("refused.json")))
        monkeypatch.undo()

    run(site, steps, ahead)


def test_damaged_refusals_of_the_present_window_are_put_aside_and_begin_anew(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    for number, damaged in enumerate(["{", "[]", ""]):
        home = tmp_path / str(number)
        home.mkdir()
        with subtests.test(damaged=damaged):
            counts = counts_at(home, 0)
            counts.answered(EPOCH, "clients", CLIENT, 12)
            counts.refused(EPOCH, "clients", "bad_element", 3)
            counts.close()
            refused_file(home).write_text(damaged)
            counts = counts_at(home, 0)
            counts.answered(EPOCH, "clients", CLIENT, 8)
            counts.refused(EPOCH, "clients", "bad_element", 1)
            counts.close()
            (aside,) = (home / "damaged").iterdir()
            assert aside.read_text() == damaged
            (manifest,) = counting.manifests_of(home, counts.window.name, "one", DAY).values()
            assert (manifest.clients.evaluations, manifest.clients.refused) == (20, {"bad_element": 1})


def test_a_window_with_damaged_refusals_is_told_and_holds_up_no_other(site: Site, ahead: list[float]) -> None:
    async def steps(asked: Evaluator) -> None:
        counts = site.base / "evaluator"
        first = asked.counting
        await answer(asked, 5)
        refused = refused_file(counts)
        good = refused.read_text()
        refused.write_text("{")
        ahead[0] = LENGTH.total_seconds()
        await soon(lambda: asked.faults() != [])
        (told,) = asked.faults()
        assert told.startswith(f"window {first.window.name} cannot be stored: {refused}")
        await answer(asked, 7)
        ahead[0] *= 2
        await soon(lambda: [one.clients.evaluations for one in manifests(site)] == [7])
        refused.write_text(good)
        await soon(lambda: sorted(one.clients.evaluations for one in manifests(site)) == [5, 7])
        await soon(lambda: asked.faults() == [])

    run(site, steps, ahead)


def test_a_window_that_an_operator_removes_is_told_no_more(site: Site, ahead: list[float]) -> None:
    async def steps(asked: Evaluator) -> None:
        await answer(asked, 5)
        refused = refused_file(site.base / "evaluator")
        refused.write_text("{")
        ahead[0] = LENGTH.total_seconds()
        await soon(lambda: asked.faults() != [])
        shutil.rmtree(refused.parents[2])
        await soon(lambda: asked.faults() == [])

    run(site, steps, ahead)
