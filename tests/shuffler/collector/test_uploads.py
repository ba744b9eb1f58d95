"""What cannot be uploaded: it is tried again, told, and holds up nothing else."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from hushcount.collection.segment_names import mark
from hushcount.collection.windows import named_window
from shuffler.collector.campaigns import Target
from shuffler.collector.journals.journal import Journal
from shuffler.collector.journals.open_journals import OpenJournals, Uploadable, WaitingReports, WindowEnd
from shuffler.collector.metrics import Metrics
from shuffler.collector.service import Collector
from shuffler.collector.uploads.upload_queue import UploadQueue
from shuffler.collector.windows import manifest_counts, window_files
from shuffler.collector.windows.window_files import Receipt, journal_file
from tests.shuffler.collector.in_process import collector_of
from tests.shuffler.collector.running import Site, make_started_site
from tests.shuffler.collector.test_windows import HOUR, NOON, collect_at, target_of, uploader_of

YEAR = timedelta(days=365)
WINDOWS = ("20200101T000000Z", "20200102T000000Z")
GONE = Target("gone", 1, bytes(32), "gone/000001-0000000000000000", "reports", 60, 100)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_started_site(tmp_path / "site")


def unreadable_journal(site: Site, window: str) -> Path:
    """Put a directory where a journal would be: there, and not to be read."""
    folder = manifest_counts.note_target(site.journal, window, target_of(site))
    path = window_files.new_journal(folder, "reports", mark("client-token", b"key"))
    path.mkdir()
    return path


def uploaded_windows(site: Site) -> set[str]:
    return {manifest.window for manifest in site.manifests()}


async def soon(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, within the event loop."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def test_a_window_that_cannot_be_read_waits_behind_the_others_and_is_told_apart_from_a_store_that_fails(
    site: Site,
) -> None:
    broken = unreadable_journal(site, WINDOWS[0])
    manifest_counts.note_target(site.journal, WINDOWS[1], target_of(site))

    async def run(collector: Collector) -> None:
        await collector.start()
        await soon(lambda: uploaded_windows(site) == {WINDOWS[1]})
        await soon(lambda: collector.uploads.failures)
        told = f"window {WINDOWS[0]} cannot be uploaded: EISDIR; look at its folder in {site.journal}"
        assert told in collector.faults()
        assert collector.uploads.failure is None
        assert collector.metrics.store_failures._value.get() == 0
        broken.rmdir()
        await soon(lambda: uploaded_windows(site) == set(WINDOWS))
        await soon(lambda: told not in collector.faults())
        await collector.stop()

    async def main() -> None:
        await run(collector_of(site, YEAR))

    asyncio.run(main())


def test_a_stop_uploads_the_other_windows(site: Site) -> None:
    report = os.urandom(target_of(site).sealed_bytes)
    broken = unreadable_journal(site, "20261121T120000Z")
    asyncio.run(collect_at(site, [NOON + 7200, NOON + 10800], report))
    assert uploaded_windows(site) == {"20261121T140000Z"}
    assert site.sealed() == [report, report]
    broken.rmdir()
    asyncio.run(collect_at(site, [NOON + 14400], report))
    assert uploaded_windows(site) == {"20261121T120000Z", "20261121T140000Z", "20261121T150000Z"}


def test_damaged_counts_of_a_campaign_that_is_not_collected_any_more_hold_up_no_other(site: Site) -> None:
    report = os.urandom(target_of(site).sealed_bytes)
    asyncio.run(collect_at(site, [NOON], report))
    noted = manifest_counts.note_target(site.journal, "20261121T120000Z", GONE) / "refused.json"
    noted.write_text("{")
    asyncio.run(collect_at(site, [NOON + 7200, NOON + 10800], report))
    assert uploaded_windows(site) == {"20261121T120000Z", "20261121T140000Z"}
    assert noted.read_text() == "{"
    noted.unlink()
    manifest_counts.note_target(site.journal, "20261121T120000Z", GONE)
    asyncio.run(collect_at(site, [NOON + 10800], report))
    assert not noted.exists()
    assert len(list(site.segments.glob("gone/*/20261121T120000Z/one-*.manifest.json"))) == 1


def test_a_window_whose_length_is_not_noted_has_the_configured_one(
    subtests: pytest.Subtests, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    for number, seconds in enumerate([None, b"\0\0\0\0", b"\xff", b"", b"0", b"99999999999"]):
        home = tmp_path / str(number)
        home.mkdir()
        site = make_started_site(home / "site")
        caplog.clear()
        with subtests.test(seconds=seconds):
            report = os.urandom(target_of(site).sealed_bytes)
            asyncio.run(collect_at(site, [NOON], report))
            path = site.journal / "20261121T120000Z" / "seconds"
            path.unlink()
            if seconds is not None:
                path.write_bytes(seconds)
            asyncio.run(collect_at(site, [NOON + 7200], report))
            (manifest,) = site.manifests()
            assert (manifest.window, manifest.seconds) == ("20261121T120000Z", 3600)
            assert "length of window not noted" in caplog.messages


def test_a_damaged_length_of_the_present_window_is_written_anew(site: Site) -> None:
    report = os.urandom(target_of(site).sealed_bytes)
    asyncio.run(collect_at(site, [NOON], report))
    path = site.journal / "20261121T120000Z" / "seconds"
    path.write_bytes(b"\xff")
    asyncio.run(collect_at(site, [NOON + 60], report))
    assert path.read_text() == "3600"


def appended(site: Site, handed: list[Uploadable]) -> tuple[OpenJournals, Journal, bytes]:
    """Return journals, the one of them to which a report was appended, and that report."""
    journals, target = OpenJournals(site.journal, 1 << 20, handed.append), target_of(site)
    report = os.urandom(target.sealed_bytes)
    waiting = WaitingReports([report], [(1, None)], 1)
    journals.append(target, named_window("20261121T120000Z", HOUR), waiting, b"key")
    (journal,) = journals._journals.values()
    return journals, journal, report


def test_a_journal_that_cannot_be_closed_is_uploaded_all_the_same(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for number, end in enumerate(["close_all", "abandon"]):
        home = tmp_path / str(number)
        home.mkdir()
        site = make_started_site(home / "site")
        with subtests.test(end=end):
            handed: list[Uploadable] = []
            journals, journal, _ = appended(site, handed)
            os.close(journal._descriptor)
            journal._descriptor = -1
            with pytest.raises(OSError, match="Bad file descriptor"):
                _ = journals.close_all() if end == "close_all" else journals.abandon(target_of(site))
            assert handed == [journal_file(journal.path)]
            journals.close_all()
            assert len(handed) == 1


def test_a_journal_that_was_not_handed_over_is_uploaded_before_its_window_is_removed(site: Site) -> None:
    journals, _, report = appended(site, [])
    journals.close_all()

    async def run() -> None:
        uploads = UploadQueue(uploader_of(site), Metrics())
        uploads.hand_over(WindowEnd("20261121T120000Z"))
        await asyncio.sleep(0)
        await uploads.stop()

    asyncio.run(run())
    assert site.sealed() == [report]
    (manifest,) = site.manifests()
    assert [part.records for part in manifest.segments["reports"]] == [1]
    assert not (site.journal / "20261121T120000Z").exists()


def test_what_an_earlier_reading_of_a_journal_left_is_replaced_by_what_the_last_one_found(site: Site) -> None:
    journals, journal, report = appended(site, [])
    journals.close_all()
    # As if the disk had read otherwise before, and the collector had been killed before the journal was put aside.
    file = journal_file(journal.path)
    manifest_counts.note_damage(file, 2)
    window_files.write_receipt(file, Receipt("reports", file.segment, 7, 700, "0" * 64))
    uploader = uploader_of(site)
    uploader.upload_segment(file)
    uploader.upload_manifests("20261121T120000Z")
    (manifest,) = site.manifests()
    assert ([part.records for part in manifest.segments["reports"]], manifest.damaged) == ([1], 0)
    assert site.sealed() == [report]
