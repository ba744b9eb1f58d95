"""What the disk altered is counted and put aside, and costs nothing but itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hushcount.collection.manifests import Manifest
from shuffler.collector.journals.journal import FRAME_HEADER_BYTES, HEADER_BYTES
from tests.shuffler.collector.running import LENGTH, LONG, Running, Site, make_site, running, start, wait_for


def metric(collector: Running, name: str) -> float:
    """Return the value of a metric without labels, or with the labels that the name has."""
    lines = collector.get("/metrics").text.splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"hushcount_collector_{name} "))


def kept_and_killed(site: Site, reports: list[bytes]) -> Path:
    """Let a collector acknowledge reports, one frame each, and kill it; return its journal."""
    collector = start(site)
    for report in reports:
        assert collector.post(report).status_code == 202
    collector.kill()
    (journal,) = site.journal.glob("*/*/*/*.journal")
    return journal


def frame(report: bytes, number: int) -> int:
    """Return where a frame of one report begins."""
    return HEADER_BYTES + number * (FRAME_HEADER_BYTES + 40 + len(report))


def flip(journal: Path, place: int) -> None:
    data = bytearray(journal.read_bytes())
    data[place] ^= 1
    journal.write_bytes(data)


def uploaded_manifest(site: Site, journal: Path) -> Manifest:
    """Wait for the manifest of a journal's window and return it."""
    window = journal.parts[-4]

    def found() -> list[Manifest]:
        return [manifest for manifest in site.manifests() if manifest.window == window]

    wait_for(found, what="the manifest")
    return found()[0]


@pytest.mark.parametrize(
    ("place", "lost"),
    [
        (lambda report: frame(report, 1) + 12, 1),
        (lambda report: frame(report, 1) + FRAME_HEADER_BYTES + 50, 1),
        (lambda report: frame(report, 5) - 1, 4),
        (lambda report: frame(report, 4) + 12, 4),
    ],
    ids=["length in the middle", "report in the middle", "report at the end", "length at the end"],
)
def test_a_damaged_frame_is_counted_put_aside_and_costs_only_itself(
    tmp_path: Path, place: Callable[[bytes], int], lost: int
) -> None:
    site = make_site(tmp_path / "site", window=LONG)
    reports = [os.urandom(site.campaign().sealed_bytes("reports")) for _ in range(5)]
    journal = kept_and_killed(site, reports)
    flip(journal, place(reports[0]))
    damaged = journal.read_bytes()
    with running(site, ahead=LENGTH) as collector:
        manifest = uploaded_manifest(site, journal)
        assert metric(collector, "damaged_frames_total") == 1
        assert metric(collector, "damaged_reports_total") == 1
    assert manifest.damaged == 1
    assert [part.records for part in manifest.segments["reports"]] == [4]
    assert site.sealed() == [report for number, report in enumerate(reports) if number != lost]
    (aside,) = (site.journal / "damaged").iterdir()
    assert aside.read_bytes() == damaged
    (event,) = [event for event in collector.events() if event["event"] == "journal damaged"]
    assert (event["frames"], event["reports"], event["stream"]) == (1, 1, "reports")


def test_a_torn_frame_is_no_damage(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", window=LONG)
    reports = [os.urandom(site.campaign().sealed_bytes("reports")) for _ in range(3)]
    journal = kept_and_killed(site, reports)
    journal.write_bytes(journal.read_bytes()[:-5])
    with running(site, ahead=LENGTH) as collector:
        manifest = uploaded_manifest(site, journal)
        assert metric(collector, "damaged_frames_total") == 0
    assert manifest.damaged == 0
    assert site.sealed() == reports[:2]
    assert not (site.journal / "damaged").exists()


def test_a_journal_without_its_header_is_put_aside_and_the_manifest_says_so(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", window=LONG)
    journal = kept_and_killed(site, [os.urandom(site.campaign().sealed_bytes("reports"))])
    flip(journal, 20)
    with running(site, ahead=LENGTH):
        manifest = uploaded_manifest(site, journal)
    assert (manifest.damaged, manifest.segments) == (1, {})
    assert len(list((site.journal / "damaged").iterdir())) == 1


def test_putting_a_damaged_journal_aside_again_changes_nothing(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", window=LONG)
    reports = [os.urandom(site.campaign().sealed_bytes("reports")) for _ in range(3)]
    journal = kept_and_killed(site, reports)
    flip(journal, frame(reports[0], 1) + 12)

    def upload() -> list[str]:
        with running(site):
            wait_for(lambda: not journal.exists(), what="the upload")
        return sorted(path.name for path in journal.parent.iterdir())

    left = upload()
    # As if it had been killed between the receipt and the move.
    (aside,) = (site.journal / "damaged").iterdir()
    aside.rename(journal)
    assert upload() == left
    assert site.sealed() == [reports[0], reports[2]]
    assert [name for name in left if name.endswith(".1.damaged")]
