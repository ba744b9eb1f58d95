"""Windows: each one's segments and manifest, also of a window in which nothing came, and whatever the clock does."""

from __future__ import annotations

import asyncio
import hashlib
import os
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.clock import Clock
from hushcount.collection.epochs import epoch_folder
from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import Window, named_window, window_at
from hushcount.errors import HushcountError
from hushcount.formats.whole_files import write_over
from pipelines.files.storage import probe, write_durably
from service import window_folders, window_notes
from shuffler.collector.campaigns import Target
from shuffler.collector.journals.watched_clock import WatchedClock
from shuffler.collector.journals.writer import Writer
from shuffler.collector.metrics import Metrics
from shuffler.collector.uploads.upload_queue import UploadQueue
from shuffler.collector.uploads.uploader import Uploader
from tests.shuffler.collector.running import LENGTH, LONG, Site, make_site, running, wait_for
from tests.support.clocks import Hands

HOUR = timedelta(hours=1)
DAY = datetime(2026, 11, 21, tzinfo=timezone.utc)
NOON = 1_795_262_400.0
"""2026-11-21T12:00:00Z, in seconds since 1970."""


def test_every_window_has_a_manifest_that_names_its_segments_and_its_refusals(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", window=LONG)
    length = site.campaign().sealed_bytes("reports")
    with running(site) as collector:
        for _ in range(3):
            assert collector.post(os.urandom(4 * length)).status_code == 202
        for body, epoch in ((b"x", 1), (b"xy", 1), (os.urandom(length), 9)):
            assert collector.post(body, epoch=epoch).status_code in (400, 409)
        collector.pass_by(LENGTH)
        wait_for(lambda: any(manifest.segments for manifest in site.manifests()), what="a manifest with segments")
        # Two more windows in which nothing comes.
        for empty in (1, 2):
            collector.pass_by(LENGTH)
            wait_for(lambda: sum(not one.segments for one in site.manifests()) >= empty, what="an empty manifest")  # noqa: B023  # called at once
        collector.stop()
    manifests = [manifest for manifest in site.manifests() if manifest.segments]
    assert sum(part.records for manifest in manifests for part in manifest.segments["reports"]) == 12
    refused = [manifest.refused for manifest in site.manifests()]
    assert sum(counts.get("wrong_length", 0) for counts in refused) == 2
    assert sum(counts.get("unknown_fingerprint", 0) for counts in refused) == 1
    for manifest in manifests:
        assert manifest.fingerprint == site.campaign().fingerprint.hex()
        for part in manifest.segments["reports"]:
            home = site.segments / "words" / epoch_folder(site.campaign()) / manifest.window / "reports"
            data = (home / part.name).read_bytes()
            assert len(data) == part.bytes
            assert hashlib.blake2b(data, digest_size=32).hexdigest() == part.digest
    for manifest in site.manifests():
        assert named_window(manifest.window, LENGTH).name == manifest.window
        assert manifest.seconds == LENGTH.total_seconds()
    # Neither keys nor journals stay of a window that is uploaded.
    uploaded = {manifest.window for manifest in site.manifests()}
    assert not uploaded & {path.name for path in site.journal.iterdir()}


def test_a_window_that_ended_while_the_collector_was_down_gets_its_manifest_at_the_next_start(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", window=LONG)
    report = os.urandom(site.campaign().sealed_bytes("reports"))
    with running(site) as collector:
        assert collector.post(report).status_code == 202
        collector.kill()
    with running(site, ahead=LENGTH):
        wait_for(lambda: any(manifest.segments for manifest in site.manifests()), what="the manifest")
    assert site.sealed() == [report]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(tmp_path / "site")


def target_of(site: Site) -> Target:
    campaign = site.campaign()
    length = campaign.sealed_bytes("reports")
    folder = f"words/{epoch_folder(campaign)}"
    return Target("words", 1, campaign.fingerprint, folder, "reports", length, length + 40)


def uploader_of(site: Site, name: str = "one") -> Uploader:
    """Return the steps to the store of a site, of a collector of that name."""
    segments = str(site.segments)
    write, look = partial(write_durably, segments), partial(probe, segments)
    return Uploader(site.journal, segments, name, write, look, lambda _: None, Metrics(), Tiling(HOUR))


async def collect_at(
    site: Site, moments: list[float], report: bytes, *, keep: bool = True, name: str = "one"
) -> list[str]:
    """Keep a report, or none, at each moment in one process, and return the names of the windows that it entered."""
    site.journal.mkdir(exist_ok=True)
    clock, metrics, entered = Hands(moments[0]), Metrics(), []
    uploads = UploadQueue(uploader_of(site, name), metrics)
    writer = Writer(
        site.journal, Tiling(HOUR), 1 << 20, 100, uploads.hand_over, metrics, WatchedClock(3600.0, clock.clock)
    )
    await writer.start()
    running_writer = asyncio.create_task(writer.run())
    for moment in moments:
        clock.now = moment
        await writer.turn([target_of(site)], {})
        assert not keep or await writer.keep(target_of(site), report, 1, None)
        assert writer.window is not None
        entered.append(writer.window.name)
    running_writer.cancel()
    await writer.stop()
    await uploads.stop()
    return entered


def test_a_clock_that_goes_back_opens_no_window_again(site: Site) -> None:
    report = os.urandom(target_of(site).sealed_bytes)
    assert asyncio.run(collect_at(site, [NOON, NOON + 3600, NOON + 60], report)) == [
        "20261121T120000Z",
        "20261121T130000Z",
        "20261121T130000Z",
    ]
    # After a restart too: noon was ended, so one o'clock goes on.
    assert asyncio.run(collect_at(site, [NOON + 60], report)) == ["20261121T140000Z"]
    assert sorted(path.name for path in site.windows()) == [
        "20261121T120000Z",
        "20261121T130000Z",
        "20261121T140000Z",
    ]
    assert {manifest.window for manifest in site.manifests()} == {"20261121T120000Z", "20261121T130000Z"}
    assert len(site.sealed()) == 4


def test_uploading_again_after_each_step_gives_the_same_segment_once(site: Site) -> None:
    report = os.urandom(target_of(site).sealed_bytes)
    asyncio.run(collect_at(site, [NOON], report))
    (segment,) = next(path for path in site.windows()).glob("reports/*.blocks")
    before = segment.read_bytes()
    # As if it had been killed between the writing of the segment and the end of the journal.
    (receipt,) = site.journal.glob("*/*/*/*.receipt")
    assert receipt.stat().st_size == 0
    asyncio.run(collect_at(site, [NOON + 3600], report))
    assert segment.read_bytes() == before
    first = next(manifest for manifest in site.manifests() if manifest.window == "20261121T120000Z")
    (part,) = first.segments["reports"]
    assert (part.name, part.records, part.bytes) == (segment.name, 1, len(before))


def test_half_a_removed_window_is_not_taken_for_a_window(tmp_path: Path) -> None:
    gone = tmp_path / "20261121T120000Z.gone"
    gone.mkdir()
    (gone / "key").write_bytes(b"k")
    assert window_folders.kept_windows(tmp_path) == []
    window_folders.remove_gone(tmp_path)
    assert not gone.exists()


def test_what_is_no_name_of_a_window_in_the_place_of_the_newest_is_refused_in_a_sentence(
    subtests: pytest.Subtests, site: Site
) -> None:
    for text in ["20261399T000000Z", "20261121T240000Z", "99991231T235959Z", "yesterday", ""]:
        with subtests.test(text=text):
            site.journal.mkdir(exist_ok=True)
            (site.journal / "over").write_text(f"{text}\n")
            with pytest.raises(HushcountError, match=str(site.journal / "over")):
                asyncio.run(collect_at(site, [NOON], b""))


def entered(root: Path, clock: str, length: timedelta) -> tuple[str, str]:
    """Return begin and end of the window that a collector enters at a time of the day, as HHMM; it notes its length."""
    window = window_notes.open_window(
        root, DAY + timedelta(hours=int(clock[:2]), minutes=int(clock[2:])), Tiling(length)
    )
    window_notes.set_seconds(root, window)
    return f"{window.start:%H%M}", f"{window.end:%d %H%M}"


def test_a_window_ends_as_it_was_begun_and_the_next_one_of_another_length_begins_there(tmp_path: Path) -> None:
    day = timedelta(days=1)
    assert entered(tmp_path, "1010", HOUR) == ("1000", "21 1100")
    # Started again with another length, within the window and behind its end.
    assert entered(tmp_path, "1020", day) == ("1000", "21 1100")
    assert entered(tmp_path, "1100", day) == ("1100", "22 0000")
    assert entered(tmp_path, "1220", HOUR) == ("1100", "22 0000")
    window_folders.remove_window(tmp_path, "20261121T100000Z")
    assert entered(tmp_path, "1230", timedelta(hours=7)) == ("1100", "22 0000")
    assert (tmp_path / "over").read_text() == "20261121T110000Z"


def test_an_hour_within_the_first_of_a_longer_window_gives_no_two_windows_one_name(tmp_path: Path) -> None:
    day = timedelta(days=1)
    assert entered(tmp_path, "0010", HOUR) == ("0000", "21 0100")
    window_folders.remove_window(tmp_path, "20261121T000000Z")
    window_notes.note_over(tmp_path, DAY + HOUR)
    assert entered(tmp_path, "0110", day) == ("0100", "22 0000")


def test_a_window_without_a_whole_note_ends_where_one_of_the_configured_length_does(tmp_path: Path) -> None:
    """A kill may come between its folder and its note."""
    (tmp_path / "20261121T110000Z").mkdir()
    (tmp_path / "over").write_text("20261121T110000Z")
    assert entered(tmp_path, "1110", timedelta(days=1)) == ("1100", "22 0000")


@settings(max_examples=200)
@given(steps=st.lists(st.tuples(st.integers(-90, 400), st.sampled_from([1, 7, 25, 60, 1440]), st.booleans())))
def test_no_two_windows_of_a_collector_overlap_whatever_settings_and_clock_do(
    steps: list[tuple[int, int, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root, now, seen = tmp_path_factory.mktemp("journal"), DAY, dict[str, Window]()
    for minutes, length, uploaded in steps:
        now += timedelta(minutes=minutes)
        window = window_notes.open_window(root, now, Tiling(timedelta(minutes=length)))
        window_notes.set_seconds(root, window)
        assert seen.setdefault(window.name, window) == window
        if uploaded:
            for name in window_folders.kept_windows(root):
                if name != window.name:
                    window_folders.remove_window(root, name)
    windows = sorted(seen.values())
    assert all(one.end <= other.start for one, other in pairwise(windows))


def test_a_folder_that_is_named_almost_as_a_window_is_none(site: Site) -> None:
    site.journal.mkdir()
    (site.journal / "20261399T000000Z").mkdir()
    assert asyncio.run(collect_at(site, [NOON, NOON + 3600], b"", keep=False)) == [
        "20261121T120000Z",
        "20261121T130000Z",
    ]
    assert (site.journal / "over").read_text() == "20261121T130000Z"


def test_a_damaged_key_is_refused_not_replaced(tmp_path: Path) -> None:
    key = window_notes.window_key(tmp_path, "20261121T120000Z")
    assert window_notes.window_key(tmp_path, "20261121T120000Z") == key
    path = tmp_path / "20261121T120000Z" / "key"
    assert path.stat().st_mode & 0o777 == 0o600
    write_over(path, b"short", 0o600)
    with pytest.raises(HushcountError, match="32"):
        window_notes.window_key(tmp_path, "20261121T120000Z")


def test_a_window_that_cannot_be_entered_refuses_its_reports_and_the_next_one_takes_them(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", window=LONG)
    report = os.urandom(site.campaign().sealed_bytes("reports"))
    with running(site) as collector:
        following = window_at(datetime.now(timezone.utc) + LENGTH, LENGTH)
        (site.journal / following.name).mkdir()
        (site.journal / following.name / "key").write_bytes(b"no key")
        collector.pass_by(LENGTH)
        wait_for(lambda: collector.post(report).status_code == 503, what="a refusal")
        assert collector.get("/readyz").status_code == 503
        collector.pass_by(LENGTH)
        wait_for(lambda: collector.post(report).status_code == 202, what="the next window")
        wait_for(lambda: collector.get("/readyz").status_code == 200)
        assert collector.stop() == 0
    assert report in site.sealed()


def test_a_window_that_ends_while_a_collector_starts_gets_its_manifest(site: Site) -> None:
    asyncio.run(collect_at(site, [NOON], os.urandom(target_of(site).sealed_bytes)))
    # The clock as it is read at the start: once before the end of the window, and after it from then on.
    readings = [NOON + 3599.9]

    async def run() -> None:
        uploads = UploadQueue(uploader_of(site), Metrics())
        clock = WatchedClock(3600.0, Clock(lambda: readings.pop() if readings else NOON + 3600.1))
        writer = Writer(site.journal, Tiling(HOUR), 1 << 20, 100, uploads.hand_over, Metrics(), clock)
        await writer.start()
        await writer.turn([target_of(site)], {})
        await writer.stop()
        await uploads.stop()

    asyncio.run(run())
    assert [manifest.window for manifest in site.manifests()] == ["20261121T120000Z"]
