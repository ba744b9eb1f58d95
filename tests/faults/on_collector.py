"""The collector killed fifty times under load, and on disks that are really full or become read-only."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shuffler.collector.crashing import Load, crash_and_recover
from tests.shuffler.collector.running import Site, make_site, running, wait_for


def run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, capture_output=True)  # noqa: S603


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB of its own; mounting one needs root."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    path = tmp_path / "disk"
    path.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", path)
    yield path
    run("umount", "-l", path)


def site_on(disk: Path, base: Path) -> Site:
    # The least free space is none, so that the disk itself refuses.
    return make_site(base, collector={"journal": str(disk / "journal"), "least_free_bytes": 0})


def test_acknowledged_reports_survive_fifty_crashes_exactly_once(tmp_path: Path) -> None:
    crash_and_recover(make_site(tmp_path / "site", collector={"segment_bytes": 1 << 16}), times=50, seconds=0.3)


def test_a_disk_that_fills_up_loses_nothing_and_recovers_when_there_is_room(tmp_path: Path, small_disk: Path) -> None:
    site = site_on(small_disk, tmp_path / "site")
    length = site.campaign().sealed_bytes("reports")
    with running(site) as collector:
        load = Load(collector, {"reports": length})
        (small_disk / "filler").write_bytes(os.urandom(1_900_000))
        wait_for(lambda: load.refused[503] > 20, seconds=60, what="a full disk")
        failing = [event for event in collector.events() if event["event"] == "storage failing"]
        assert failing[0]["failure"] == "ENOSPC"
        before = len(load.acknowledged)
        (small_disk / "filler").unlink()
        wait_for(lambda: len(load.acknowledged) > before + 50, what="recovery")
        load.stop()
        wait_for(lambda: collector.get("/readyz").status_code == 200)
        assert collector.stop() == 0
    assert Counter(site.sealed()) == load.acknowledged


def test_a_disk_that_becomes_read_only_refuses_and_recovers(tmp_path: Path, small_disk: Path) -> None:
    site = site_on(small_disk, tmp_path / "site")
    length = site.campaign().sealed_bytes("reports")
    kept = os.urandom(length)
    with running(site) as collector:
        # No journal is open yet: a file system with files open for writing cannot be made read-only.
        run("mount", "-o", "remount,ro", small_disk)
        assert collector.post(os.urandom(length)).status_code == 503
        assert "EROFS" in collector.get("/readyz").text
        run("mount", "-o", "remount,rw", small_disk)
        assert collector.post(kept).status_code == 202
        assert collector.stop() == 0
    assert site.sealed() == [kept]
