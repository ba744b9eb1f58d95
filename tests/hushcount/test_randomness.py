"""Draws made from random words: exact, whatever the bound, and even over all orders."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hushcount.randomness import WORD_VALUES, SystemWords, below, drawn_secrets, event_bits, permutation, uniform
from tests.support.listed import ListedWords
from tests.support.statistics import FAILURE, chi_square_p, deviations

LARGEST = WORD_VALUES - 1


@given(threshold=st.integers(1, LARGEST))
def test_below_holds_for_exactly_threshold_words(threshold: int) -> None:
    source = ListedWords([0, threshold - 1, threshold, LARGEST])
    assert below(threshold, 4, source).tolist() == [True, True, False, False]


def test_secrets_fill_their_rows_and_never_recur() -> None:
    """Four zero bytes at a row's end come by chance in one of 2**32 rows; two rows are equal in one of 2**247 pairs."""
    rows = np.concatenate([drawn_secrets(count, 32) for count in (0, 1, 8, 400)])
    assert len({row.tobytes() for row in rows}) == len(rows) == 409
    assert rows[:, -4:].any(axis=1).all()


def test_below_zero_never_holds_and_below_all_always_does() -> None:
    assert not below(0, 2, ListedWords([0, LARGEST])).any()
    assert below(WORD_VALUES, 2, ListedWords([0, LARGEST])).all()


def test_below_takes_one_word_an_event_whatever_the_threshold(subtests: pytest.Subtests) -> None:
    for threshold in [0, 1, LARGEST, WORD_VALUES]:
        with subtests.test(threshold=threshold):
            source = ListedWords(range(7))
            below(threshold, 7, source)
            assert source.used == 7


# Many events at once: each bit of a word compares a number of its own with the threshold, digit by digit


def words_of_numbers(numbers: list[int], threshold: int) -> list[int]:
    """Return the words that give the 64 events these 64-bit numbers: a digit a word, and then what is undecided."""
    digits = [
        sum((number >> digit & 1) << place for place, number in enumerate(numbers)) for digit in range(63, 55, -1)
    ]
    # The lowest eight bits of a word that decides are of no use.
    late = [(number << 8) % WORD_VALUES | 0xA5 for number in numbers if number >> 56 == threshold >> 56]
    return digits + late


@given(threshold=st.integers(1, LARGEST), data=st.data())
@pytest.mark.long
def test_events_are_those_of_full_numbers_below_the_threshold(threshold: int, data: st.DataObject) -> None:
    near = st.integers(max(0, threshold - 3), min(LARGEST, threshold + 3))
    same_top = st.integers(0, (1 << 56) - 1).map(lambda low: threshold >> 56 << 56 | low)
    numbers = data.draw(st.lists(st.integers(0, LARGEST) | near | same_top, min_size=64, max_size=64))
    source = ListedWords(words_of_numbers(numbers, threshold))
    (found,) = event_bits(threshold, 1, source).tolist()
    assert found == sum((number < threshold) << place for place, number in enumerate(numbers))
    assert source.used == 8 + sum(number >> 56 == threshold >> 56 for number in numbers)


def test_events_of_many_words_keep_their_places() -> None:
    # Digit words come for all words together, late ones in the order of words and bits.
    threshold = 3 << 56 | 77
    numbers = [
        [(3 << 56 | 77) - (bit % 2) if bit % 3 else bit << 56 for bit in range(turn, turn + 64)] for turn in range(5)
    ]
    separate = [words_of_numbers(own, threshold) for own in numbers]
    digits = [words[digit] for digit in range(8) for words in separate]
    source = ListedWords(digits + [word for words in separate for word in words[8:]])
    expected = [sum((number < threshold) << place for place, number in enumerate(own)) for own in numbers]
    assert event_bits(threshold, 5, source).tolist() == expected


def bits_set_p(drawn: np.ndarray, p: float) -> float:
    """Return the p-value of how many bits are set in each word, Binomial(64, p); rare numbers are put together."""
    counts = np.bincount(np.unpackbits(drawn.view(np.uint8)).reshape(-1, 64).sum(axis=1), minlength=65)
    law = stats.binom.pmf(np.arange(65), 64, p)
    common = law * len(drawn) >= 50
    tail = np.array([law[~common].sum()])
    if tail * len(drawn) < 50:
        # What is too rare to be tested goes to the most frequent number.
        law[np.argmax(law)] += tail[0]
        counts[np.argmax(law)] += counts[~common].sum()
        return chi_square_p(counts[common], law[common])
    return chi_square_p(np.append(counts[common], counts[~common].sum()), np.append(law[common], tail))


AWKWARD = [
    (1 << 56) - 1,
    (1 << 56) + 1,
    1 << 63,
    (1 << 63) - 1,
    0x5555555555555555,
    0xFF00000000000001,
    0xE1D2C3B4A5968778,
]


def test_events_have_the_probability_of_the_threshold_and_are_independent(subtests: pytest.Subtests) -> None:
    """All together fail with probability FAILURE twice: chi-square, and normal bounds of every place of a word."""
    level = FAILURE / len(AWKWARD)
    for threshold in AWKWARD:
        with subtests.test(threshold=hex(threshold)):
            # 10 % more or less is rejected.
            count = 60_000
            drawn, p = event_bits(threshold, count, SystemWords()), threshold / WORD_VALUES
            assert bits_set_p(drawn, p) >= level
            for other in (0.9 * p, 1.1 * p) if p < 0.9 else (1.0 - 1.3 * (1.0 - p), 1.0 - 0.7 * (1.0 - p)):
                assert bits_set_p(drawn, other) < level
            ones = np.unpackbits(drawn.view(np.uint8), bitorder="little").reshape(count, 64).sum(axis=0)
            assert np.abs(ones - count * p).max() <= deviations(64 * len(AWKWARD)) * np.sqrt(count * p * (1 - p)) + 5.0


def test_events_next_to_impossible_do_not_happen_and_next_to_certain_ones_do() -> None:
    # Fails with probability 2 * 64 * 10,000 / 2**64.
    assert not event_bits(1, 10_000, SystemWords()).any()
    assert np.all(event_bits(LARGEST, 10_000, SystemWords()) == np.uint64(LARGEST))


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


def test_uniform_over_a_power_of_two_rejects_nothing(subtests: pytest.Subtests) -> None:
    for bound in [1, 2, 1 << 32, 1 << 63, WORD_VALUES]:
        with subtests.test(bound=bound):
            source = ListedWords([0, 1, LARGEST])
            assert uniform(bound, 3, source).tolist() == [0, 1 % bound, LARGEST % bound]
            assert source.used == 3


def test_uniform_is_even(subtests: pytest.Subtests) -> None:
    for bound in [3, 7, 100]:
        with subtests.test(bound=bound):
            drawn = uniform(bound, 200 * bound, SystemWords())
            counts = np.bincount(drawn.astype(int), minlength=bound)
            assert chi_square_p(counts, np.ones(bound)) >= FAILURE / 3


def test_a_permutation_is_even_over_all_orders() -> None:
    # All 5! orders, chi-square at FAILURE.
    orders = {order: index for index, order in enumerate(permutations(range(5)))}
    seen = np.zeros(len(orders))
    for _ in range(60 * len(orders)):
        seen[orders[tuple(permutation(5, SystemWords()).tolist())]] += 1
    assert chi_square_p(seen, np.full(len(orders), 1 / len(orders))) >= FAILURE


def test_a_permutation_with_tied_keys_is_drawn_anew_as_a_whole(subtests: pytest.Subtests) -> None:
    """The key that had no tie does not keep its rank either."""
    for tied in [[9, 5, 9], [9, 9, 5], [5, 9, 9], [7, 7, 7], [LARGEST, 0, LARGEST], [0, 0, LARGEST]]:
        for tries in [1, 3]:
            with subtests.test(tied=tied, tries=tries):
                source = ListedWords([*tied * tries, 3, 2, 1])
                assert permutation(3, source).tolist() == [2, 1, 0]
                assert source.used == 3 * tries + 3


def test_keys_next_to_each_other_are_no_tie() -> None:
    source = ListedWords([LARGEST, LARGEST - 1, 1, 0, 1 << 53, (1 << 53) + 1])
    assert permutation(6, source).tolist() == [3, 2, 4, 5, 1, 0]
    assert source.used == 6


SMALL, EXPANDED, SEVERAL = 100, 1000, (1 << 21) + 1000
"""Requests that go to the system itself, that are expanded from one key, and from more than one."""


def test_system_words_are_fresh_writable_and_of_full_range(subtests: pytest.Subtests) -> None:
    for count in [SMALL, EXPANDED, SEVERAL]:
        with subtests.test(count=count):
            one, other = SystemWords().words(count), SystemWords().words(count)
            assert one.dtype == np.uint64
            assert len(one) == len(other) == count
            assert one.flags.writeable
            # The beginnings of both requests and what their last keys made: two words are equal below 2**-42.
            ends = [part for drawn in (one, other) for part in (drawn[:100], drawn[100:][-900:])]
            assert len(np.unique(np.concatenate(ends))) == 2 * min(count, 1000)
            assert one.max() >= 1 << 63  # fails with probability 2**-100 at most


def test_requests_around_the_size_that_is_expanded_are_whole(subtests: pytest.Subtests) -> None:
    for count in [127, 128, 129]:
        with subtests.test(count=count):
            drawn = [SystemWords().words(count) for _ in range(50)]
            assert {len(words) for words in drawn} == {count}
            assert len(np.unique(np.concatenate(drawn))) == 50 * count  # fails with probability 2e7 / 2**64


def test_every_bit_of_a_system_word_is_fair(subtests: pytest.Subtests) -> None:
    for count in [SMALL, EXPANDED]:
        with subtests.test(count=count):
            drawn = np.concatenate([SystemWords().words(count) for _ in range(40_000 // count)])
            ones = np.array([int(((drawn >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(64)])
            assert np.abs(ones - 20_000).max() <= 6.0 * 100  # 64 bits at six deviations of sqrt(n)/2: 1.3e-7


# What is no request, and what asks for nothing.


def test_impossible_probabilities_and_bounds_are_refused(subtests: pytest.Subtests) -> None:
    cases = [(below, number, r"threshold is {}, .* 0\.\.2\*\*64$") for number in (-1, WORD_VALUES + 1)]
    cases += [(event_bits, number, r"threshold is {}, .* 1\.\.2\*\*64-1$") for number in (0, -1, WORD_VALUES)]
    cases += [(uniform, number, r"bound is {}, .* 1\.\.2\*\*64$") for number in (0, -1, WORD_VALUES + 1)]
    for draw, number, told in cases:
        with subtests.test(draw=draw.__name__, number=number), pytest.raises(ValueError, match=told.format(number)):
            draw(number, 1, ListedWords([0]))


def test_of_nothing_nothing_is_drawn() -> None:
    assert event_bits(5, 0, ListedWords([])).shape == (0,)
    assert SystemWords().words(0).shape == (0,)
    for count in (0, 1):
        assert permutation(count, SystemWords()).tolist() == list(range(count))
