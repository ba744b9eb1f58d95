"""Manifests come from other machines: none is read that a run could not add up, or of which no date can be reckoned."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest

from hushcount.campaigns.campaign import GREATEST_EPOCH
from hushcount.collection.manifests import read_manifest
from hushcount.collection.windows import window_start
from hushcount.errors import FormatError

SEGMENT: dict[str, Any] = {"name": "one-000001-00000000.blocks", "records": 1, "bytes": 1, "digest": "0" * 64}
MANIFEST: dict[str, Any] = {
    "collector": "one",
    "campaign": "words",
    "epoch": 1,
    "fingerprint": "0" * 64,
    "window": "20261121T000000Z",
    "seconds": 3600,
    "segments": {"reports": [SEGMENT]},
}


def written(**changes: Any) -> bytes:
    return json.dumps({**MANIFEST, **changes}).encode()


def segments(**changes: Any) -> dict[str, Any]:
    return {"reports": [{**SEGMENT, **changes}]}


def test_a_segment_holds_no_more_than_a_database_can_add_up(subtests: pytest.Subtests) -> None:
    for field in ["records", "bytes"]:
        with subtests.test(field=field):
            most = 1 << 40
            (part,) = read_manifest(written(segments=segments(**{field: most})), "m").segments["reports"]
            assert getattr(part, field) * (1 << 20) < 1 << 63
            for number in (most + 1, (1 << 63) - 1):
                with pytest.raises(FormatError, match=f"segments.reports.0.{field} is {number}"):
                    read_manifest(written(segments=segments(**{field: number})), "m")


def test_a_window_near_the_ends_of_time_is_refused(subtests: pytest.Subtests) -> None:
    for window in ["00010101T000000Z", "19691231T235959Z", "90000101T000000Z", "99991231T000000Z"]:
        with subtests.test(window=window):
            with pytest.raises(FormatError, match=f"window is '{window}'.*1970.*8999"):
                read_manifest(written(window=window), "m")
            with pytest.raises(ValueError, match=r"1970.*8999"):
                window_start(window)


def test_the_first_and_the_last_window_are_taken() -> None:
    for window in ("19700101T000000Z", "89991231T235959Z"):
        assert read_manifest(written(window=window), "m").window == window
    assert window_start("89991231T235959Z") == datetime(8999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)


def test_the_greatest_epoch_is_taken_and_the_next_is_not() -> None:
    assert read_manifest(written(epoch=GREATEST_EPOCH), "m").epoch == GREATEST_EPOCH
    with pytest.raises(FormatError, match="epoch"):
        read_manifest(written(epoch=GREATEST_EPOCH + 1), "m")


def test_counts_of_refusals_are_numbers_that_can_be_added_up(subtests: pytest.Subtests) -> None:
    """One of minus a million hid as many refusals; one of 400 digits ended status with the database's error."""
    for number in [-1, (1 << 40) + 1, 10**400, 1.5]:
        with subtests.test(number=repr(number)[:20]):
            with pytest.raises(FormatError, match=r"refused|401"):
                read_manifest(written(refused={"too_long": number}), "m")
            for name in ("", "Too long", "x" * 65, "\u202e"):
                with pytest.raises(FormatError, match="refused"):
                    read_manifest(written(refused={name: 1}), "m")
            with pytest.raises(FormatError, match="refused"):
                read_manifest(written(refused={f"reason_{index}": 1 for index in range(257)}), "m")
            most = {"too_long": 1 << 40, "wrong_length": 0}
            assert read_manifest(written(refused=most), "m").refused == most
