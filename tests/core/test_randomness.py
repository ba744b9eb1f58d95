"""Draws made from random words: exact, whatever the bound, and even over all orders."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.randomness import WORD_VALUES, SystemWords, below, distinct_words, permutation, uniform
from tests.support.listed import ListedWords
from tests.support.statistics import FAILURE, chi_square_p
from tests.support.words import SeededWords

LARGEST = WORD_VALUES - 1


@given(threshold=st.integers(1, LARGEST))
def test_below_holds_for_exactly_threshold_words(threshold: int) -> None:
    source = ListedWords([0, threshold - 1, threshold, LARGEST])
    assert below(threshold, 4, source).tolist() == [True, True, False, False]


def test_below_zero_never_holds_and_below_all_always_does() -> None:
    assert not below(0, 2, ListedWords([0, LARGEST])).any()
    assert below(WORD_VALUES, 2, ListedWords([0, LARGEST])).all()


@pytest.mark.parametrize("threshold", [0, 1, LARGEST, WORD_VALUES])
def test_below_takes_one_word_an_event_whatever_the_threshold(threshold: int) -> None:
    source = ListedWords(range(7))
    below(threshold, 7, source)
    assert source.used == 7


@pytest.mark.parametrize("threshold", [-1, WORD_VALUES + 1])
def test_below_refuses_what_is_no_probability(threshold: int) -> None:
    with pytest.raises(ValueError, match=rf"threshold is {threshold}, must be in 0\.\.2\*\*64"):
        below(threshold, 1, ListedWords([0]))


@given(bound=st.integers(2, LARGEST))
def test_uniform_accepts_a_whole_number_of_stretches(bound: int) -> None:
    # The accepted words are 0..limit-1 with limit a multiple of the bound, so every remainder has equally many.
    limit = WORD_VALUES - WORD_VALUES % bound
    assert uniform(bound, 1, ListedWords([limit - 1])).tolist() == [bound - 1]
    if limit < WORD_VALUES:
        for refused in (limit, LARGEST):
            source = ListedWords([refused, 1])
            assert uniform(bound, 1, source).tolist() == [1]
            assert source.used == 2


def test_uniform_rejects_as_often_as_needed_and_only_what_must_be() -> None:
    # 2**64 mod 3 is 1: only the largest word is refused. Second, then first and third draw are repeated.
    source = ListedWords([4, LARGEST, 5, LARGEST, LARGEST, 7])
    assert uniform(3, 3, source).tolist() == [1, 1, 2]
    assert source.used == 6


def test_uniform_repeats_draws_in_their_own_places() -> None:
    bound = (1 << 63) + 1  # nearly half of all words are refused
    source = ListedWords([LARGEST, 1, LARGEST - 1, LARGEST, 3, 2])
    assert uniform(bound, 3, source).tolist() == [2, 1, 3]


@pytest.mark.parametrize("bound", [1, 2, 1 << 32, 1 << 63, WORD_VALUES])
def test_uniform_over_a_power_of_two_rejects_nothing(bound: int) -> None:
    source = ListedWords([0, 1, LARGEST])
    assert uniform(bound, 3, source).tolist() == [0, 1 % bound, LARGEST % bound]
    assert source.used == 3


@given(bound=st.integers(1, WORD_VALUES), count=st.integers(0, 50), seed=st.integers(0, 2**32))
def test_uniform_stays_below_its_bound(bound: int, count: int, seed: int) -> None:
    drawn = uniform(bound, count, SeededWords(seed))
    assert drawn.dtype == np.uint64
    assert len(drawn) == count
    assert all(value < bound for value in drawn.tolist())


@pytest.mark.parametrize("bound", [0, -1, WORD_VALUES + 1])
def test_uniform_refuses_an_impossible_bound(bound: int) -> None:
    with pytest.raises(ValueError, match=rf"bound is {bound}, must be in 1\.\.2\*\*64"):
        uniform(bound, 1, ListedWords([0]))


@pytest.mark.parametrize("bound", [3, 7, 100])
def test_uniform_is_even(bound: int) -> None:
    drawn = uniform(bound, 200 * bound, SystemWords())
    assert chi_square_p(np.bincount(drawn.astype(int), minlength=bound), np.full(bound, 1 / bound)) >= FAILURE


def test_a_permutation_is_even_over_all_orders() -> None:
    # All 5! orders, chi-square at FAILURE.
    orders = {order: index for index, order in enumerate(permutations(range(5)))}
    seen = np.zeros(len(orders))
    for _ in range(60 * len(orders)):
        seen[orders[tuple(permutation(5, SystemWords()).tolist())]] += 1
    assert chi_square_p(seen, np.full(len(orders), 1 / len(orders))) >= FAILURE


def test_a_permutation_with_tied_keys_is_drawn_anew_as_a_whole() -> None:
    source = ListedWords([9, 5, 9, 3, 2, 1])
    assert permutation(3, source).tolist() == [2, 1, 0]
    assert source.used == 6


@pytest.mark.parametrize("count", [0, 1])
def test_a_permutation_of_little_is_itself(count: int) -> None:
    assert permutation(count, SystemWords()).tolist() == list(range(count))


def test_distinct_words_have_no_tie() -> None:
    assert distinct_words(2, ListedWords([4, 4, 4, 4, 4, 8])).tolist() == [4, 8]


def test_system_words_are_fresh_writable_and_of_full_range() -> None:
    one, other = SystemWords().words(1000), SystemWords().words(1000)
    assert one.dtype == np.uint64
    assert one.flags.writeable
    assert not np.isin(one, other).any()  # fails with probability 1e6 / 2**64
    assert one.max() >= 1 << 63  # fails with probability 2**-1000
    assert SystemWords().words(0).shape == (0,)


def test_every_bit_of_a_system_word_is_fair() -> None:
    drawn = SystemWords().words(40_000)
    ones = np.array([int(((drawn >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(64)])
    assert np.abs(ones - 20_000).max() <= 6.0 * 100  # 64 bits at six deviations of sqrt(n)/2: 1.3e-7
