"""What fails on the way to the store is told as it is, tried again, and costs neither a report nor a key."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from service import window_folders, window_notes
from service.logs import JsonLines
from shuffler.collector.journals.open_journals import WindowEnd
from shuffler.collector.metrics import Metrics
from shuffler.collector.uploads import upload_queue
from shuffler.collector.uploads.upload_queue import UploadQueue
from shuffler.collector.uploads.uploader import Uploader
from shuffler.collector.windows import manifest_counts
from tests.shuffler.collector.in_process import collector_of
from tests.shuffler.collector.running import Site, make_started_site
from tests.shuffler.collector.test_uploads import GONE, YEAR, appended, soon, uploaded_windows
from tests.shuffler.collector.test_windows import target_of, uploader_of

WINDOW = "20261121T120000Z"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_started_site(tmp_path / "site")


def stopped(uploader: Uploader, *windows: str) -> UploadQueue:
    """Try once to upload windows that ended; return the queue after that."""

    async def run() -> UploadQueue:
        uploads = UploadQueue(uploader, Metrics())
        for window in windows:
            uploads.hand_over(WindowEnd(window))
        await asyncio.sleep(0)
        await uploads.stop()
        return uploads

    return asyncio.run(run())


def test_a_window_whose_counts_are_lost_stays_until_they_are_restored(site: Site) -> None:
    journals, journal, report = appended(site, [])
    journals.close_all()
    noted = journal.path.parent / "refused.json"
    kept = noted.read_bytes()
    noted.unlink()
    uploader = uploader_of(site)
    assert stopped(uploader, WINDOW).failures[WINDOW].name == "ENOENT"
    assert len(list(site.journal.glob(f"{WINDOW}/*/*/*.receipt"))) == 1
    noted.write_bytes(kept)
    assert stopped(uploader, WINDOW).failures == {}
    (manifest,) = site.manifests()
    assert [part.records for part in manifest.segments["reports"]] == [1]
    assert site.sealed() == [report]


def test_a_note_of_damage_keeps_its_window_as_well(site: Site) -> None:
    folder = manifest_counts.note_target(site.journal, WINDOW, target_of(site))
    (folder / "refused.json").unlink()
    (folder / "reports-000001-00000000.2.damaged").touch()
    assert stopped(uploader_of(site), WINDOW).failures[WINDOW].name == "ENOENT"


def test_a_folder_in_which_nothing_was_ever_written_keeps_no_window(site: Site) -> None:
    folder = manifest_counts.note_target(site.journal, WINDOW, target_of(site))
    (folder / "refused.json").unlink()
    assert stopped(uploader_of(site), WINDOW).failures == {}
    assert not (site.journal / WINDOW).exists()


def test_a_key_that_could_not_be_deleted_is_deleted_by_the_next_try(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    window_notes.window_key(site.journal, WINDOW)
    manifest_counts.note_target(site.journal, WINDOW, target_of(site))
    failing = iter([True])

    def remove(path: Path, real: Callable[[Path], None] = shutil.rmtree) -> None:
        if next(failing, False):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(path)

    monkeypatch.setattr(window_folders.shutil, "rmtree", remove)
    uploader = uploader_of(site)
    assert stopped(uploader, WINDOW).failures[WINDOW].name == "EIO"
    assert (site.journal / f"{WINDOW}.gone" / "key").exists()
    assert stopped(uploader, WINDOW).failures == {}
    assert list(site.journal.iterdir()) == []
    assert uploaded_windows(site) == {WINDOW}


def test_what_nobody_foresaw_is_logged_with_its_place_and_without_what_it_says(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    folder = manifest_counts.note_target(site.journal, WINDOW, target_of(site))
    (folder / "reports-000001-00000000.canary.damaged").touch()
    assert stopped(uploader_of(site), WINDOW).failures[WINDOW].name == "ValueError"
    told = line(caplog, "window cannot be uploaded")
    assert (told["failure"], told["exception"]) == ("ValueError", "ValueError")
    assert "/manifest_counts.py:" in told["raised_in"][0]
    assert "canary" not in json.dumps(told)


def line(caplog: pytest.LogCaptureFixture, event: str) -> dict[str, object]:
    """Return the line of the collector's log for the one event of that name."""
    (record,) = (record for record in caplog.records if record.getMessage() == event)
    assert record.levelno == logging.ERROR
    return dict(json.loads(JsonLines().format(record)))


def test_a_sentence_that_says_what_to_do_reaches_the_operator(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    window = "20200101T000000Z"
    noted = manifest_counts.note_target(site.journal, window, GONE) / "refused.json"
    noted.write_text("{")

    async def run() -> None:
        collector = collector_of(site, YEAR)
        await collector.start()
        said, cure = (
            f"window {window} cannot be uploaded: {noted} is not JSON",
            f"; look at its folder in {site.journal}",
        )
        await soon(lambda: any(one.startswith(said) and one.endswith(cure) for one in collector.faults()))
        await collector.stop()

    asyncio.run(run())
    told = line(caplog, "window cannot be uploaded")
    assert str(told["failure"]).startswith(f"{noted} is not JSON")
    assert "exception" not in told


def failing(error: Exception) -> Callable[[str, Iterable[bytes]], None]:
    def write(_path: str, _parts: Iterable[bytes]) -> None:
        raise error

    return write


def test_a_store_that_fails_is_told_by_the_kind_and_the_place_of_its_error(
    subtests: pytest.Subtests, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    for number, (error, name) in enumerate(
        [
            (OSError(errno.ENOSPC, "canary"), "ENOSPC"),
            (OSError("canary"), "OSError"),
            (RuntimeError("canary"), "RuntimeError"),
        ]
    ):
        home = tmp_path / str(number)
        home.mkdir()
        site = make_started_site(home / "site")
        caplog.clear()
        with subtests.test(name=name):
            manifest_counts.note_target(site.journal, WINDOW, target_of(site))
            uploads = stopped(replace(uploader_of(site), write_whole=failing(error)), WINDOW)
            assert uploads.failure == name
            told = line(caplog, "store failing")
            assert (told["failure"], told["exception"]) == (name, type(error).__name__)
            assert f"{Path(__file__).name}:" in str(told["raised_in"])
            assert "canary" not in json.dumps(told)


def test_a_store_that_is_away_is_looked_at_as_often_as_one_that_is_there(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_queue, "_PROBE_SECONDS", 0.02)
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        raise ConnectionError

    async def run() -> None:
        uploads = UploadQueue(replace(uploader_of(site), probe=look), Metrics())
        working = asyncio.create_task(uploads.run())
        # With a pause of half a second and more between them they take minutes.
        await soon(lambda: looks >= 12)
        assert uploads.failure == "ConnectionError"
        working.cancel()
        await uploads.stop()

    asyncio.run(run())
