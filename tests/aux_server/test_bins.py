"""Bins: exact counts of equal pairs, and which of them are released."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aux_server.bins import Bins
from aux_server.keep import kept_records
from hushcount.discovery.keep_rules import KeepRule
from hushcount.randomness import SystemWords
from tests.support.bins import bins_of_pairs

PAIR = 11


def pair(name: int) -> bytes:
    """A pair; those of even names end in zeros, which numpy's byte strings like to drop, the others in 0xff."""
    return bytes([name % 3 * 127]).ljust(6, b"\7") + bytes([name]).ljust(PAIR - 6, b"\0" if name % 2 == 0 else b"\xff")


def block(names: list[int]) -> bytes:
    return b"".join(map(pair, names))


def counts(bins: Bins) -> dict[bytes, int]:
    rows = bins.pairs.view(np.uint8).reshape(-1, PAIR)
    return {row.tobytes(): int(count) for row, count in zip(rows, bins.counts, strict=True)}


@given(names=st.lists(st.integers(0, 9), max_size=100))
@settings(deadline=None)
def test_counts_agree_with_a_plain_dictionary(names: list[int]) -> None:
    total = bins_of_pairs(block(names), PAIR)
    sent = Counter(map(pair, names))
    assert counts(total) == sent
    assert total.counts.dtype == np.int64


def test_a_bin_of_few_holds_no_part_of_its_block() -> None:
    bins = bins_of_pairs(block([1] * 10_000), PAIR)
    assert bins.pairs.base is None or bins.pairs.base.nbytes <= 2 * PAIR


def test_a_pair_with_another_value_is_a_bin_of_its_own() -> None:
    honest, forged = pair(1), pair(1)[:-1] + b"\x00"
    assert counts(bins_of_pairs(honest * 5 + forged, PAIR)) == {honest: 5, forged: 1}


def test_kept_pairs_are_released_whole_once_and_no_others() -> None:
    # Counts far beyond the rule's certainty, and of one report, which delta makes hopeless (1e-9 at most).
    rule = KeepRule("optimal", 10.0, 1e-9, "add-remove")
    bins = bins_of_pairs(block([0] * 90 + [1] * 80 + [2] + [4] * 70 + [5]), PAIR)
    assert sorted(kept_records(rule, bins, SystemWords())) == sorted([pair(0), pair(1), pair(4)])
    assert list(kept_records(rule, bins_of_pairs(b"", PAIR), SystemWords())) == []
