"""The writer where the disk or a file of the journal directory fails: told once, and at the least cost."""

from __future__ import annotations

import asyncio
import errno
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hushcount.collection.tilings import Tiling
from service.client_limit import ClientLimit
from service.refusals import Refused
from shuffler.collector.campaigns import Target
from shuffler.collector.journals import open_journals
from shuffler.collector.journals.journal import Journal
from shuffler.collector.journals.open_journals import Uploadable, WindowEnd
from shuffler.collector.journals.watched_clock import WatchedClock
from shuffler.collector.journals.writer import Writer
from shuffler.collector.metrics import Metrics
from shuffler.collector.service import REPORTS
from shuffler.collector.windows import manifest_counts, window_files
from tests.shuffler.collector.in_process import collector_of
from tests.shuffler.collector.running import Site, make_started_site
from tests.shuffler.collector.test_windows import HOUR, NOON, target_of
from tests.support.clocks import Hands

NEXT = "20261121T130000Z"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_started_site(tmp_path / "site")


def run_writer(
    site: Site,
    steps: Callable[[Writer, Hands], Awaitable[None]],
    *,
    metrics: Metrics | None = None,
    segment_bytes: int = 1 << 20,
) -> list[Uploadable]:
    """Start a writer at noon, run some steps with it and stop it; return what it handed over."""
    handed: list[Uploadable] = []

    async def run() -> None:
        clock = Hands(NOON)
        watched = WatchedClock(3600.0, clock.clock)
        writer = Writer(site.journal, Tiling(HOUR), segment_bytes, 100, handed.append, metrics or Metrics(), watched)
        await writer.start()
        await steps(writer, clock)
        await writer.stop()

    asyncio.run(run())
    return handed


async def kept(writer: Writer, *targets: Target) -> list[bool]:
    """Keep a report of each target in one group; return which are on the disk."""
    sent = [asyncio.create_task(writer.keep(target, os.urandom(target.sealed_bytes), 1, None)) for target in targets]
    await asyncio.sleep(0)
    await writer._commit_open()
    return await asyncio.gather(*sent)


def damage_key(site: Site) -> Path:
    """Put what is no key where the next window's would be."""
    key = site.journal / NEXT / "key"
    key.parent.mkdir()
    key.write_bytes(b"no key")
    return key


def test_a_window_that_cannot_be_entered_is_told_in_its_sentence_and_logged_once(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    target = target_of(site)

    async def steps(writer: Writer, clock: Hands) -> None:
        key = damage_key(site)
        clock.now += 3600
        for _ in range(5):
            assert await kept(writer, target) == [False]
        assert writer.failure == f"key {key} has 6 bytes, must have 32: restore or remove it"

    run_writer(site, steps)
    assert caplog.messages.count("storage failing") == 1
    assert "commit failed" not in caplog.messages


def test_what_nobody_foresaw_in_a_commit_is_logged_once(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> bytes:
        raise ZeroDivisionError

    target = target_of(site)

    async def steps(writer: Writer, _clock: Hands) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(open_journals, "envelopes", fail)
            for _ in range(5):
                assert await kept(writer, target) == [False]
        assert writer.failure == "ZeroDivisionError"
        assert await kept(writer, target) == [True]

    run_writer(site, steps)
    assert caplog.messages.count("commit failed") == 1


def test_a_journal_that_cannot_be_closed_costs_no_other_target_its_reports(
    subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for end in ("close", "abandon"):
        with subtests.test(end=end):
            one_cannot_be_closed(make_started_site(tmp_path / end), monkeypatch, end)


def one_cannot_be_closed(site: Site, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    first = target_of(site)
    second = replace(first, stream="discovery")

    def fail(journal: Journal) -> None:
        os.close(journal._descriptor)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def refuse(journal: Journal, records: bytes, real: Callable[[Journal, bytes], None] = Journal.append) -> None:
        if journal.path.name.startswith("reports"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(journal, records)

    async def steps(writer: Writer, _clock: Hands) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(Journal, end, fail)
            if end == "abandon":
                patched.setattr(Journal, "append", refuse)
            assert await kept(writer, first, second) == [end == "close", True]
        assert writer.failure == ("EIO" if end == "close" else "ENOSPC")

    handed = run_writer(site, steps, segment_bytes=1 if end == "close" else 1 << 20)
    assert len(handed) == (2 if end == "close" else 1)
    journals = list(site.journal.glob("*/*/*/*.journal"))
    assert {path.name.partition("-")[0] for path in journals} == (
        {"reports", "discovery"} if end == "close" else {"discovery"}
    )


def test_a_window_that_was_left_counts_for_its_clients_until_the_next_is_entered(site: Site) -> None:
    target = target_of(site)
    limit = ClientLimit(1, REPORTS)

    async def steps(writer: Writer, clock: Hands) -> None:
        assert await kept(writer, target) == [True]
        limit.reserve(b"client", 1, writer.window)
        key = damage_key(site)
        clock.now += 3600
        for _ in range(2):
            assert await kept(writer, target) == [False]
            with pytest.raises(Refused):
                limit.reserve(b"client", 1, writer.window)
        key.unlink()
        assert await kept(writer, target) == [True]
        assert writer.window is not None
        assert writer.window.name == NEXT
        limit.reserve(b"client", 1, writer.window)

    handed = run_writer(site, steps)
    # Its end is told once, after its journal, and before the journal of the next.
    assert [item.window for item in handed] == ["20261121T120000Z"] * 2 + [NEXT]
    assert [isinstance(item, WindowEnd) for item in handed] == [False, True, False]


def test_a_count_whose_name_could_not_be_synced_is_not_counted_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = target_of(site)
    failing = False

    def fail(descriptor: int, real: Callable[[int], None] = os.fsync) -> None:
        nonlocal failing
        if failing and Path(os.readlink(f"/proc/self/fd/{descriptor}")).name == Path(target.folder).name:
            failing = False
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    async def steps(writer: Writer, _clock: Hands) -> None:
        nonlocal failing
        await writer.turn([target], {})
        refused = {target: Counter(wrong_length=1)}
        failing = True
        with pytest.raises(OSError, match="Input/output error"):
            await writer.turn([target], refused)
        # What is left in it is counted again by whoever gave it.
        await writer.turn([target], refused)
        assert refused == {}

    monkeypatch.setattr(os, "fsync", fail)
    run_writer(site, steps)
    (folder,) = window_files.folders(site.journal, "20261121T120000Z")
    assert manifest_counts.read_counts(site.journal, folder, None, Metrics()).refused == {"wrong_length": 1}


def test_gauges_say_what_is_so_when_they_are_asked(site: Site) -> None:
    target = target_of(site)
    metrics = Metrics()

    def gauge(of: Metrics, name: str) -> float | None:
        return of.registry.get_sample_value(f"hushcount_collector_{name}")

    async def steps(writer: Writer, _clock: Hands) -> None:
        assert gauge(metrics, "reports_waiting") == 0
        sent = asyncio.create_task(writer.keep(target, os.urandom(3 * target.sealed_bytes), 3, None))
        await asyncio.sleep(0)
        assert gauge(metrics, "reports_waiting") == 3
        await writer._commit_open()
        assert await sent
        assert gauge(metrics, "reports_waiting") == 0

    run_writer(site, steps, metrics=metrics)

    async def run() -> None:
        collector = collector_of(site, HOUR)
        assert gauge(collector.metrics, "ready") == 1
        collector.room = False
        assert gauge(collector.metrics, "ready") == 0
        collector.uploads._take(WindowEnd(NEXT))
        assert gauge(collector.metrics, "pending_uploads") == 1
        await collector.uploads.stop()
        assert gauge(collector.metrics, "pending_uploads") == 0

    asyncio.run(run())
