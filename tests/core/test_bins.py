"""Bins: exact counts of equal pairs, in constant memory a bin, whatever the order of merging."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aux_server.bins import Bins, bins_of, merge
from aux_server.keep import Keep
from hushcount.privacy.keep_rules import KeepRule

PAIR = 7


def pair(name: int) -> bytes:
    """A pair; those of even names end in zeros, which numpy's byte strings like to drop, the others in 0xff."""
    return bytes([name % 3 * 127, name]).ljust(PAIR, b"\0" if name % 2 == 0 else b"\xff")


def block(names: list[int]) -> bytes:
    return b"".join(map(pair, names))


def counts(bins: Bins) -> dict[bytes, int]:
    rows = bins.pairs.view(np.uint8).reshape(-1, PAIR)
    return {row.tobytes(): int(count) for row, count in zip(rows, bins.counts, strict=True)}


def same(one: Bins, other: Bins) -> bool:
    return np.array_equal(one.pairs, other.pairs) and np.array_equal(one.counts, other.counts)


blocks_of_names = st.lists(st.lists(st.integers(0, 9), max_size=25), max_size=5)


@given(blocks=blocks_of_names)
@settings(deadline=None)
def test_counts_agree_with_a_plain_dictionary(blocks: list[list[int]]) -> None:
    total = bins_of(b"", PAIR)
    for names in blocks:
        total = merge(total, bins_of(block(names), PAIR))
    sent = Counter(pair(name) for names in blocks for name in names)
    assert counts(total) == sent
    assert list(counts(total)) == sorted(sent)
    assert total.counts.dtype == np.int64


@given(blocks=st.lists(st.lists(st.integers(0, 9), max_size=25), min_size=3, max_size=3))
@settings(deadline=None)
def test_merging_is_commutative_and_associative(blocks: list[list[int]]) -> None:
    one, two, three = (bins_of(block(names), PAIR) for names in blocks)
    assert same(merge(one, two), merge(two, one))
    assert same(merge(merge(one, two), three), merge(one, merge(two, three)))
    assert same(merge(one, bins_of(b"", PAIR)), one)
    assert same(merge(one, two), bins_of(block(blocks[0] + blocks[1]), PAIR))


def test_merging_changes_neither_side() -> None:
    one, two = bins_of(block([1, 1, 2]), PAIR), bins_of(block([1, 3]), PAIR)
    before = counts(one), counts(two)
    merge(one, two)
    assert (counts(one), counts(two)) == before


def test_a_bin_takes_the_same_memory_however_many_fall_in_it() -> None:
    total = bins_of(b"", PAIR)
    for _ in range(50):
        total = merge(total, bins_of(block([1, 2] * 40), PAIR))
        assert total.pairs.nbytes == 2 * PAIR
        assert total.counts.nbytes == 2 * 8
    assert counts(total) == {pair(1): 2000, pair(2): 2000}


def test_a_bin_of_few_holds_no_part_of_its_block() -> None:
    bins = bins_of(block([1] * 10_000), PAIR)
    assert bins.pairs.base is None or bins.pairs.base.nbytes <= 2 * PAIR


def test_a_pair_with_another_value_is_a_bin_of_its_own() -> None:
    honest, forged = pair(1), pair(1)[:-1] + b"\x00"
    assert counts(bins_of(honest * 5 + forged, PAIR)) == {honest: 5, forged: 1}


def test_kept_pairs_are_released_whole_once_and_no_others() -> None:
    # Counts far beyond the rule's certainty, and of one report, which delta makes hopeless (1e-9 at most).
    rule = KeepRule("optimal", 10.0, 1e-9, "add-remove")
    bins = bins_of(block([0] * 90 + [1] * 80 + [2] + [4] * 70 + [5]), PAIR)
    assert sorted(Keep(rule).process((0, bins))) == sorted([pair(0), pair(1), pair(4)])
    assert list(Keep(rule).process((0, bins_of(b"", PAIR)))) == []
