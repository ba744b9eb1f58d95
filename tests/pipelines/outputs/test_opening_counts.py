"""Counts of which engine opened: strict on our own jobs, bounded in what another party wrote, and not needed there."""

from __future__ import annotations

from typing import Any

import pytest

from hushcount.errors import HushcountError, UsageError
from pipelines.outputs.counts import CountsError, HopCounts, Opening, StreamCounts, counts_of, opening_of
from pipelines.outputs.received_summary import counts_in

SUMS = {"reports:received": 9, "reports:accepted": 9, "opening:lanes": 7, "opening:libsodium": 2, "opening:rescued": 1}
ALL = StreamCounts(9, 9, {})


def test_counts_of_opening_are_none_of_a_stream() -> None:
    assert opening_of(SUMS, ALL) == Opening(7, 2, 1)
    assert opening_of({}, StreamCounts(0, 0, {})) == Opening(0, 0, 0)
    assert counts_of(SUMS, ("reports",)) == {"reports": StreamCounts(9, 9, {})}


def test_a_job_opens_by_no_other_engine() -> None:
    with pytest.raises(HushcountError, match="'lane'"):
        opening_of({**SUMS, "opening:lane": 1}, ALL)


def test_no_more_is_rescued_than_the_lanes_had() -> None:
    assert opening_of({**SUMS, "opening:rescued": 7}, ALL).rescued == 7
    with pytest.raises(CountsError, match=r"rescued is 8.* 7"):
        opening_of({**SUMS, "opening:rescued": 8}, ALL)


def test_no_fewer_boxes_are_opened_than_accepted_and_no_more_than_received() -> None:
    for accepted, rejected in (
        (8, 0),
        (10, 0),
        (10, 5),
    ):
        received = accepted + rejected
        with pytest.raises(CountsError, match=f"9 boxes .*{accepted} to {received}"):
            opening_of(SUMS, StreamCounts(received, accepted, {"wrong_campaign": rejected}))


def test_records_that_are_no_boxes_are_opened_by_no_engine() -> None:
    assert opening_of(SUMS, StreamCounts(14, 8, {"wrong_campaign": 6})) == Opening(7, 2, 1)


def counts(opening: object) -> dict[str, Any]:
    return {**HopCounts.of("release", {"discovery": StreamCounts(9, 9, {})}).data(), "opening": opening}


def test_counts_come_back_as_they_were_with_and_without() -> None:
    for opening in (None, Opening(7, 2, 1)):
        made = HopCounts.of("release", {"discovery": StreamCounts(9, 9, {})}, opening)
        assert ("opening" in made.data()) == (opening is not None)
        assert counts_in(made.data(), "summary") == made


def test_another_party_may_have_an_engine_that_is_new() -> None:
    assert counts_in(counts({"lanes": 1, "later": 2}), "summary").opening == Opening(1, 0, 0)
    assert counts_in(counts({"later": 9, "rescued": 3}), "summary").opening == Opening(0, 0, 3)


def test_what_another_party_cannot_have_counted_is_refused_in_one_sentence(subtests: pytest.Subtests) -> None:
    for opening in (
        [],
        "all",
        3,
        {"lanes": -1},
        {"lanes": 1 << 41},
        {"lanes": "many"},
        {"rescued": -1},
        {"lanes": 0.5},
        {"libsodium": None},
    ):
        with subtests.test(opening=opening):
            with pytest.raises(UsageError, match="opening") as caught:
                counts_in(counts(opening), "summary")
            assert "\n" not in str(caught.value)
