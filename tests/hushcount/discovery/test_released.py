"""Released records: the pair alone, or the pair and a count of eight bytes."""

from __future__ import annotations

import numpy as np
import pytest

from aux_server.bins import Bins
from aux_server.keep import kept_records
from hushcount.discovery.keep_rules import KeepRule
from hushcount.discovery.pairs import DiscoveryFormat, join_released, released_bytes, split_released
from hushcount.randomness import SystemWords

FORM = DiscoveryFormat(b"b" * 16, b"k" * 32, 4)
PAIRS = np.arange(3 * FORM.pair_bytes, dtype=np.uint16).astype(np.uint8).reshape(3, FORM.pair_bytes)


def test_a_record_is_split_as_it_was_joined(subtests: pytest.Subtests) -> None:
    for shown in (None, np.array([1, 2**40, 2**62])):
        with subtests.test(shown=shown):
            counts = shown is not None
            records = join_released(PAIRS, shown)
            assert records.shape == (3, released_bytes(FORM, counts))
            split = [split_released(row.tobytes(), FORM, counts) for row in records]
            assert [pair for pair, _ in split] == [row.tobytes() for row in PAIRS]
            assert [count for _, count in split] == ([None] * 3 if shown is None else shown.tolist())


def test_counts_are_little_endian() -> None:
    (record,) = join_released(PAIRS[:1], np.array([0x0102]))
    assert record.tobytes()[FORM.pair_bytes :] == b"\x02\x01" + bytes(6)


def test_a_record_of_another_length_is_refused(subtests: pytest.Subtests) -> None:
    for counts in (False, True):
        with subtests.test(counts=counts):
            right = released_bytes(FORM, counts)
            for length in (0, right - 1, right + 1, released_bytes(FORM, not counts)):
                with pytest.raises(ValueError, match=f"{length} bytes,.* {right}"):
                    split_released(bytes(length), FORM, counts)


def test_the_auxiliary_server_releases_the_counts_that_bins_show() -> None:
    rule = KeepRule("optimal", 1.0, 1e-8, counts=True)
    pairs = PAIRS.view(f"S{FORM.pair_bytes}").reshape(-1)
    counts = np.array([1, 100, 5_000])
    records = list(kept_records(rule, Bins(pairs, counts), SystemWords()))
    # The first is kept with a chance of 1e-8; the others are off by more than 60 with one below 1e-10.
    (second, shown), (third, more) = (split_released(record, FORM, True) for record in records)
    assert [second, third] == [row.tobytes() for row in PAIRS[1:]]
    assert shown is not None
    assert more is not None
    assert 40 <= shown <= 129
    assert 4_940 <= more <= 5_029
