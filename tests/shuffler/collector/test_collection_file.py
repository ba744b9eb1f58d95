"""collection.json: which epoch is current and which reports are accepted, and what is refused."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from hushcount.campaigns.campaign import GREATEST_EPOCH, Campaign
from hushcount.collection.epochs import CollectionFile, read_collection, read_epoch
from hushcount.collection.manifests import Manifest
from hushcount.errors import UsageError
from tests.shuffler.collector.running import make_site

DAY = datetime(2026, 11, 21, tzinfo=timezone.utc)
TWO: list[dict[str, Any]] = [
    {
        "epoch": 1,
        "file": "epoch-000001.json",
        "begins": "2026-11-21T00:00:00Z",
        "ends": "2026-11-23T00:00:00Z",
        "grace_ends": "2026-11-24T00:00:00Z",
    },
    {"epoch": 2, "file": "epoch-000002.json", "begins": "2026-11-23T00:00:00Z"},
]


def written(path: Path, epochs: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"epochs": epochs}))
    return path


def test_each_moment_has_its_epochs(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for number, (hours, current, accepted) in enumerate(
        [
            (-1, None, []),
            (0, 1, [1]),
            (47, 1, [1]),
            (48, 2, [1, 2]),
            (71, 2, [1, 2]),
            (72, 2, [2]),
            (10_000, 2, [2]),
        ]
    ):
        home = tmp_path / str(number)
        home.mkdir()
        with subtests.test(hours=hours):
            collection = read_collection(written(home / "collection.json", TWO))
            moment = DAY + timedelta(hours=hours)
            found = collection.current(moment)
            assert (None if found is None else found.epoch) == current
            assert [epoch for epoch in (1, 2, 3) if collection.accepts(epoch, moment)] == accepted


def test_it_is_written_and_read_alike(tmp_path: Path) -> None:
    collection = read_collection(written(tmp_path / "collection.json", TWO))
    assert CollectionFile.model_validate_json(collection.model_dump_json()) == collection


def test_a_wrong_one_is_refused_in_a_sentence(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for number, (change, says) in enumerate(
        [
            ({"begins": "2026-11-21T00:00:00"}, "UTC"),
            ({"begins": "2026-11-21T00:00:00+01:00"}, "UTC"),
            ({"ends": "2026-11-20T00:00:00Z"}, "begins"),
            ({"grace_ends": "2026-11-22T00:00:00Z"}, "ends"),
            ({"ends": None, "grace_ends": None}, "end"),
            ({"epoch": 2}, "greater"),
            ({"epoch": GREATEST_EPOCH + 1}, "epochs.0.epoch"),
            ({"file": "../epoch.json"}, "file"),
            ({"file": "/etc/passwd.json"}, "file"),
            ({"more": 1}, "more"),
        ]
    ):
        home = tmp_path / str(number)
        home.mkdir()
        with subtests.test(change=change):
            path = written(home / "collection.json", [{**TWO[0], **change}, TWO[1]])
            with pytest.raises(UsageError, match=says) as caught:
                read_collection(path)
            assert str(path) in str(caught.value)


def test_an_epoch_that_is_collected_is_one_that_a_manifest_takes(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site")
    data = json.loads(site.campaign_file().read_text())
    path = site.campaign_file().with_name("last.json")
    path.write_text(json.dumps({**data, "epoch": GREATEST_EPOCH}))
    (part,) = CollectionFile.model_validate(
        {"epochs": [{**TWO[1], "epoch": GREATEST_EPOCH, "file": "last.json"}]}
    ).epochs
    epoch = read_epoch(path.parent, part).epoch
    Manifest(collector="one", campaign="words", epoch=epoch, fingerprint="0" * 64, window="20261121T000000Z", seconds=1)
    path.write_text(json.dumps({**data, "epoch": GREATEST_EPOCH + 1}))
    with pytest.raises(UsageError, match="epoch is 2147483648"):
        Campaign.read(path)
