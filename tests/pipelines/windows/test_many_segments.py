"""More segments than a file can list: the rest waits and is counted, and that is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hushcount.collection.manifests import Manifest, SegmentPart, divided, read_manifest
from hushcount.errors import HushcountError
from hushcount.formats.reading import LISTING_BYTES, MOST_SEGMENTS, RECORD_BYTES
from hushcount.senders import WEAKEST
from hushcount.wire.tags import MOST_PLACES
from pipelines.files import storage
from pipelines.windows import closing, waiting
from tests.support.collecting import collect
from tests.support.site import FLOOR, Site, account_at

LONG = "z" * 64
STREAMS = ("reports", "discovery")


def segments(number: int) -> tuple[SegmentPart, ...]:
    """Return segments of the longest names and the greatest numbers."""
    names = (f"{'z' * 80}-{index:06d}-{index:08x}"[-96:].lstrip("-") for index in range(number))
    return tuple(SegmentPart(name=f"{name}.blocks", records=1 << 40, bytes=1 << 40, digest="f" * 64) for name in names)


def test_the_longest_manifest_can_be_read() -> None:
    manifest = Manifest(
        collector="z" * 32, campaign=LONG, epoch=1, fingerprint="f" * 64, window="20261121T000000Z", seconds=1,
        authentication=WEAKEST, segments={stream: segments(MOST_SEGMENTS) for stream in STREAMS},
    )  # fmt: skip
    raw = storage.json_bytes(manifest.model_dump(mode="json"))
    assert RECORD_BYTES < len(raw) < LISTING_BYTES
    assert read_manifest(raw, "m") == manifest
    with pytest.raises(HushcountError, match=f"must hold at most {MOST_SEGMENTS}"):
        read_manifest(json.dumps({**manifest.model_dump(), "segments": {"reports": [
            part.model_dump() for part in segments(MOST_SEGMENTS + 1)
        ]}}).encode(), "m")  # fmt: skip


def test_what_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    with pytest.raises(HushcountError, match=r"summary\.json would have"):
        storage.write_json(str(path), {"long": "x" * RECORD_BYTES})
    assert not path.exists()


def test_a_signed_summary_lists_few_files() -> None:
    """As many as there are places, whatever the batch has: a thousand, of some 150 bytes."""
    listed = [{"name": "z" * 64, "bytes": 1 << 62, "digest": "f" * 64}] * MOST_PLACES
    assert (
        len(storage.json_bytes({"files": dict.fromkeys(("reports", "discovery", "bins"), listed)})) < RECORD_BYTES / 8
    )


def test_what_no_manifest_holds_is_in_the_next() -> None:
    parts = segments(2 * MOST_SEGMENTS + 1)
    found = divided({"reports": parts, "discovery": parts[:3]}, "f" * 16)
    assert [id for id, _ in found] == ["f" * 16, "0" * 16, f"{1:016x}"]
    assert [part for _, listed in found for part in listed.get("reports", ())] == list(parts)
    assert [len(listed.get("discovery", ())) for _, listed in found] == [3, 0, 0]
    assert divided({}, "0" * 16) == [("0" * 16, {})]


def test_a_batch_takes_as_many_segments_as_its_file_lists_and_the_rest_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closing, "MOST_SEGMENTS", 2)
    monkeypatch.setattr(waiting, "MOST_SEGMENTS", 2)
    site = Site(tmp_path)
    for collector, number in (("one", FLOOR), ("two", FLOOR + 2), ("three", FLOOR + 1), ("four", 1)):
        collect(site.store, site.campaign, ["nobody"] * number, day=0, collector=collector, streams=("reports",))
    (waits,) = site.run(1.1).waiting
    # The largest were taken.
    assert site.result(0)["streams"]["reports"]["accepted"] == 2 * FLOOR + 3
    assert f"{FLOOR + 1:,} reports wait" in waits
    assert "that a batch of 2 segments left" in waits
    collect(site.store, site.campaign, ["nobody"] * 7, day=1, collector="one", streams=("reports",))
    (waits,) = site.run(2.1).waiting
    assert site.result(1)["streams"]["reports"]["accepted"] == FLOOR + 1
    assert "7 reports wait" in waits
    assert account_at(site, 2.1).differences == []
