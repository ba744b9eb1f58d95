"""A clock that is wrong: reports are refused while it is, and counted in the right window afterwards."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hushcount.clock import Clock
from hushcount.collection.tilings import Tiling
from shuffler.collector.app import application
from shuffler.collector.journals.open_journals import Uploadable
from shuffler.collector.journals.watched_clock import ClockAhead, WatchedClock
from shuffler.collector.journals.writer import Writer
from shuffler.collector.metrics import Metrics
from tests.shuffler.collector.in_process import collector_of
from tests.shuffler.collector.running import Site, make_started_site
from tests.shuffler.collector.test_windows import HOUR, NOON, collect_at, target_of

YEAR = 366 * 86400.0


class Time:
    """The clock, and time itself, as a test sets them."""

    def __init__(self) -> None:
        self.clock = NOON
        self.passed = 0.0

    def pass_by(self, seconds: float) -> None:
        self.clock += seconds
        self.passed += seconds

    @property
    def watched(self) -> WatchedClock:
        return WatchedClock(HOUR.total_seconds(), Clock(lambda: self.clock, lambda: self.passed))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_started_site(tmp_path / "site")


def run_writer(site: Site, time: Time, steps: Callable[[Writer, Callable[[], Any]], Any]) -> list[Uploadable]:
    """Run a writer on this time for some steps, which get it and a way to keep a report; return what it handed over."""
    handed: list[Uploadable] = []
    target = target_of(site)

    async def run() -> None:
        writer = Writer(site.journal, Tiling(HOUR), 1 << 20, 100, handed.append, Metrics(), time.watched)
        await writer.start()
        working = asyncio.create_task(writer.run())

        async def keep() -> bool:
            await writer.turn([target], {})
            return await writer.keep(target, os.urandom(target.sealed_bytes), 1, None)

        await steps(writer, keep)
        working.cancel()
        await writer.stop()

    asyncio.run(run())
    return handed


def test_a_tick_a_year_ahead_costs_the_reports_of_that_tick_only(site: Site) -> None:
    time = Time()

    async def steps(writer: Writer, keep: Callable[[], Any]) -> None:
        assert await keep()
        time.clock += YEAR
        assert not await keep()
        assert writer.clock_ahead == YEAR
        assert writer.window is not None
        assert writer.window.name == "20261121T120000Z"
        time.clock -= YEAR
        assert await keep()
        assert writer.clock_ahead is None
        time.pass_by(2 * 3600)
        assert await keep()
        assert writer.window.name == "20261121T140000Z"

    run_writer(site, time, steps)
    assert sorted(path.name for path in site.journal.iterdir()) == ["20261121T120000Z", "20261121T140000Z", "over"]
    assert (site.journal / "over").read_text() == "20261121T130000Z"


def test_windows_that_a_sleeping_machine_missed_are_passed_over(site: Site) -> None:
    time = Time()

    async def steps(writer: Writer, keep: Callable[[], Any]) -> None:
        assert await keep()
        time.pass_by(YEAR)
        assert await keep()
        assert writer.window is not None
        assert writer.window.name == "20271122T120000Z"

    run_writer(site, time, steps)


def test_a_clock_that_was_behind_at_the_start_and_was_set_since_ends_its_window_in_time(site: Site) -> None:
    (site.journal / "over").write_text("20261121T130000Z")
    time = Time()
    time.clock -= YEAR

    async def steps(writer: Writer, keep: Callable[[], Any]) -> None:
        assert await keep()
        assert writer.window is not None
        assert writer.window.name == "20261121T130000Z"
        time.pass_by(60)
        time.clock = NOON + 3600
        assert await keep()
        time.pass_by(3600)
        assert await keep()
        assert (writer.window.name, writer.clock_ahead) == ("20261121T140000Z", None)

    run_writer(site, time, steps)


def test_a_clock_that_creeps_ahead_within_a_window_may_still_not_jump_over_the_next(site: Site) -> None:
    time = Time()

    async def steps(writer: Writer, keep: Callable[[], Any]) -> None:
        assert await keep()
        time.clock += 3599
        assert await keep()
        time.clock += 3601
        assert not await keep()
        assert writer.clock_ahead == 3601

    run_writer(site, time, steps)


def test_the_clock_may_go_ahead_by_what_is_tolerated_since_it_was_believed() -> None:
    time = Time()
    clock = time.watched
    clock.require_believable(NOON + YEAR)
    clock.believe(NOON)
    clock.require_believable(NOON + 3600)
    clock.require_believable(NOON - YEAR)
    with pytest.raises(ClockAhead) as caught:
        clock.require_believable(NOON + 3601)
    assert caught.value.seconds == 3601
    time.passed = 1
    clock.require_believable(NOON + 3601)


def test_real_time_goes_by_at_the_pace_of_the_clock() -> None:
    clock = WatchedClock(0.5)
    clock.believe(clock.seconds())
    clock.require_believable(clock.seconds())


def test_requests_are_told_and_so_is_the_operator(site: Site) -> None:
    async def run() -> tuple[dict[str, Any], dict[str, Any]]:
        collector = collector_of(site, HOUR)
        collector.writer.clock_ahead = 7200.0
        app = application(collector)
        return await ask(app, "POST", "/v1/campaigns/words/reports"), await ask(app, "GET", "/readyz")

    refused, ready = asyncio.run(run())
    assert refused["status"] == 503
    assert b"urn:hushcount:problem:clock_ahead" in refused["body"]
    assert dict(refused["headers"])[b"retry-after"]
    assert ready["status"] == 503
    assert b"the clock runs 7,200 seconds ahead of time" in ready["body"]


def test_refusals_for_epochs_that_are_not_collected_are_counted_in_one_place(site: Site) -> None:
    async def run() -> Counter[tuple[str, int, str]]:
        collector = collector_of(site, HOUR)
        app = application(collector)
        for fingerprint in (site.fingerprint(), "7" * 64, "8" * 64, "9" * 64):
            await ask(app, "POST", "/v1/campaigns/words/reports", fingerprint)
        return collector.refusals

    assert asyncio.run(run()) == {("words", 1, "wrong_type"): 1, ("words", 0, "unknown_fingerprint"): 3}


async def ask(app: Any, method: str, path: str, fingerprint: str = "") -> dict[str, Any]:
    """Send one request to an ASGI application and return the answer."""
    answer: dict[str, Any] = {}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        answer.update(message)

    await app(
        {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": f"fingerprint={fingerprint}&window=19700101T000000Z".encode(),
            "headers": [],
        },
        receive,
        send,
    )
    return answer


def test_a_collector_that_was_started_on_a_wrong_clock_is_repaired_as_documented(site: Site) -> None:
    report = os.urandom(target_of(site).sealed_bytes)
    assert asyncio.run(collect_at(site, [NOON], report)) == ["20261121T120000Z"]
    assert asyncio.run(collect_at(site, [NOON + YEAR], report)) == ["20271122T120000Z"]
    for _ in range(2):
        asyncio.run(collect_at(site, [NOON + 60], report, keep=False))
    present = "20261121T120000Z"
    # As an editor leaves it.
    (site.journal / "over").write_text("20261121T130000Z\n")
    for window in site.journal.glob("2*"):
        assert window.name > present
        assert not [*window.rglob("*.journal"), *window.rglob("*.receipt")]
        shutil.rmtree(window)
    assert asyncio.run(collect_at(site, [NOON + 120], report, name="two")) == ["20261121T130000Z"]
    # What noon has is as it was, and what lay ahead is in the store.
    assert {manifest.window for manifest in site.manifests()} == {present, "20271122T120000Z", "20271122T130000Z"}
    assert sum(len(part) for manifest in site.manifests() for part in manifest.segments.values()) == 2
    assert len(site.sealed()) == 3
    # When the window that lay ahead comes, its first manifest stays, because the collector has another name.
    for hours in (0, 1):
        asyncio.run(collect_at(site, [NOON + YEAR + hours * 3600], report, name="two"))
    manifests = {
        manifest.collector: sum(len(part) for part in manifest.segments.values())
        for manifest in site.manifests()
        if manifest.window == "20271122T120000Z"
    }
    assert manifests == {"one": 1, "two": 1}
