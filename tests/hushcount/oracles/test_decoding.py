"""The three ways to decode equal their plain twins and the definition to the last unit; the choice is sound."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hushcount.kernels.candidates import candidates
from hushcount.kernels.group import group
from hushcount.kernels.progressions import Progressions
from hushcount.kernels.residues import exact_division, middle_of, residue_at, turn_of, turns
from hushcount.kernels.walk import walk
from hushcount.maths import field61
from hushcount.oracles.decoding import (
    AT_ONCE,
    DecodeLoad,
    candidates_cost,
    cheapest,
    decode,
    group_cost,
    walk_cost,
)
from hushcount.oracles.encoders.affine import Affine
from hushcount.oracles.responders.interval import Interval
from hushcount.oracles.responders.randomised_response import RandomisedResponse
from hushcount.oracles.responders.subset import Subset
from hushcount.oracles.responders.unary import Unary
from tests.support.plain_kernels import count_by_definition, group_numpy, walk_numpy

Way = Callable[[np.ndarray, Progressions, np.ndarray], None]
COMPILED: list[Way] = [walk, group, candidates]
TWINS: list[Way] = [walk_numpy, group_numpy, count_by_definition]
SMALL = (2, 3, 5, 7, 101, 257, 1009)
LARGE = (2**31 - 1, 2**31 - 19, 1_000_003, 65_537)


def random_progressions(prime: int, stride: int, count: int, slopes: int, seed: int) -> Progressions:
    """Return progressions as different as there are; `slopes` is the greatest slope, fewer make larger groups."""
    generator = np.random.default_rng(seed)
    longest = min(prime - 1, (prime - 1) // stride + 1)
    return Progressions(
        prime,
        stride,
        generator.integers(1, slopes + 1, count).astype(np.uint64),
        generator.integers(0, prime, count).astype(np.uint64),
        generator.integers(1, longest + 1, count).astype(np.uint64),
    )


def count(way: Way, progressions: Progressions, items: np.ndarray) -> np.ndarray:
    counts = np.full(len(items), 5, dtype=np.int64)
    way(counts, progressions, items)
    return counts


def by_plain_integers(progressions: Progressions, items: np.ndarray) -> list[int]:
    prime, stride = progressions.prime, progressions.stride
    rows = list(
        zip(progressions.slopes.tolist(), progressions.begins.tolist(), progressions.lengths.tolist(), strict=True)
    )
    return [
        5 + sum((a * x - w) % prime % stride == 0 and (a * x - w) % prime // stride < n for a, w, n in rows)
        for x in items.tolist()
    ]


@given(data=st.data(), prime=st.sampled_from(SMALL), reports=st.integers(0, 40), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=150)
def test_all_ways_and_their_twins_are_the_definition(data: st.DataObject, prime: int, reports: int, seed: int) -> None:
    stride = data.draw(st.just(1) | st.integers(1, prime - 1))
    progressions = random_progressions(prime, stride, reports, data.draw(st.integers(1, prime - 1)), seed)
    wanted = data.draw(st.integers(0, min(prime, 12)))
    items = np.random.default_rng(seed).permutation(prime)[:wanted].astype(np.uint64)
    expected = by_plain_integers(progressions, items)
    for way in (*COMPILED, *TWINS, decode):
        assert count(way, progressions, items).tolist() == expected, way.__name__


@given(
    data=st.data(),
    prime=st.sampled_from([101, 257, 1009, 65_521]),
    reports=st.integers(0, 3000),
    seed=st.integers(0, 2**32),
)
@settings(deadline=None, max_examples=25)
def test_many_reports_count_the_same_by_every_way(data: st.DataObject, prime: int, reports: int, seed: int) -> None:
    # Enough for several tiles, and by few slopes for tables of one, two and more bytes.
    stride = data.draw(st.just(1) | st.integers(1, prime - 1))
    slopes = data.draw(st.sampled_from([1, 2, min(prime - 1, 100)]))
    progressions = random_progressions(prime, stride, reports, slopes, seed)
    items = np.random.default_rng(seed).permutation(prime)[:101].astype(np.uint64)
    expected = count(count_by_definition, progressions, items)
    for way in COMPILED:
        assert np.array_equal(count(way, progressions, items), expected), way.__name__


def test_tables_hold_as_many_reports_as_one_slope_has(subtests: pytest.Subtests) -> None:
    # All of them support item 3, none supports item 0: the count just fits, or needs the next larger integer.
    for reports in (255, 256, 65_535, 65_536):
        with subtests.test(reports=reports):
            ones = np.ones(reports, dtype=np.uint64)
            items = np.array([0, 3], dtype=np.uint64)
            for stride, length in ((1, 4), (2, 2)):
                progressions = Progressions(7, stride, ones, 2 * ones if stride == 1 else ones, length * ones)
                for way in (*COMPILED, group_numpy):
                    assert count(way, progressions, items).tolist() == [5, 5 + reports], way.__name__


@given(
    data=st.data(),
    prime=st.sampled_from([*LARGE, field61.PRIME]),
    seed=st.integers(0, 2**32),
    reports=st.integers(0, 40),
)
@settings(deadline=None, max_examples=200)
def test_candidates_of_large_fields_are_the_definition(
    data: st.DataObject, prime: int, seed: int, reports: int
) -> None:
    stride = data.draw(st.sampled_from([1, 2, 3, 4, 148, 20_011, prime // 2, prime - 1]))
    progressions = random_progressions(prime, stride, reports, prime - 1, seed)
    items = np.array([*data.draw(st.lists(st.integers(0, prime - 1), max_size=5)), prime - 1], dtype=np.uint64)
    expected = by_plain_integers(progressions, items)
    for way in (candidates, count_by_definition, decode):
        assert count(way, progressions, items).tolist() == expected, way.__name__


def test_candidates_at_both_ends_of_a_progression(subtests: pytest.Subtests) -> None:
    # Items chosen for the residues just inside and just outside, on random slopes: where rounding would show first.
    for prime in (101, 65_521, 65_537, 2**31 - 1, field61.PRIME):
        for stride in (1, 3, 4):
            with subtests.test(prime=prime, stride=stride):
                generator = np.random.default_rng(prime)
                for slope, begin in generator.integers(1, prime, (20, 2)).tolist():
                    length = min(20, prime // stride - 1)
                    residues = [
                        begin - stride,
                        begin - 1,
                        begin,
                        begin + (length - 1) * stride,
                        begin + length * stride,
                    ]
                    items = np.array([pow(slope, -1, prime) * residue % prime for residue in residues], dtype=np.uint64)
                    one = Progressions(
                        prime, stride, *(np.array([value], dtype=np.uint64) for value in (slope, begin, length))
                    )
                    assert count(candidates, one, items).tolist() == [5, 5, 6, 6, 5]


# Arithmetic


@given(prime=st.sampled_from([*SMALL, *LARGE]), data=st.data())
@settings(max_examples=200)
@pytest.mark.long
def test_a_word_multiplied_lies_in_the_arc_of_the_product(prime: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, prime - 1))
    factor = data.draw(st.integers(0, 2 * prime - 1))
    turn, middle = int(turn_of(np.uint64(value), np.uint64(prime))), int(middle_of(np.uint64(prime)))
    assert turn == -(-(value << 64) // prime)
    word = (turn * factor + middle) % 2**64
    assert residue_at(np.uint64(word), np.uint64(prime)) == value * factor % prime


@given(prime=st.sampled_from([*SMALL, *LARGE, 65_521]), data=st.data())
def test_turns_are_rounded_up(prime: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.integers(0, prime - 1), min_size=1))
    array = np.array(values, dtype=np.uint64)
    assert turns(array, prime, np.uint64).tolist() == [-(-(value << 64) // prime) for value in values]
    if prime < 1 << 16:
        assert turns(array, prime, np.uint32).tolist() == [-(-(value << 32) // prime) for value in values]


@given(value=st.integers(0, 2**64 - 1), divisor=st.integers(1, 2**61) | st.integers(1, 100))
@example(value=2**64 - 1, divisor=1)
@example(value=0, divisor=2**60)
def test_exact_division_tells_quotients_from_all_else(value: int, divisor: int) -> None:
    inverse, twos = exact_division(divisor)
    for dividend in (value, value // divisor * divisor):
        word = dividend * inverse % 2**64
        rotated = (word >> twos | word << (64 - twos)) % 2**64
        quotient, rest = divmod(dividend, divisor)
        assert rotated == quotient if rest == 0 else rotated > (2**64 - 1) // divisor


# The choice

USUAL = DecodeLoad(progressions=170_000, prime=26_003, length=6_993, items=26_000)


def test_operations_are_those_of_the_formulas() -> None:
    assert walk_cost(USUAL).operations == 170_000 * 6_993 + 26_003
    assert candidates_cost(USUAL).operations == 170_000 * 26_000
    everyone = replace(USUAL, progressions=10**9)
    assert group_cost(everyone).operations == pytest.approx(13_001 * (26_003 + 26_000) + 10**9, rel=1e-9)
    lonely = replace(USUAL, progressions=1)
    assert group_cost(lonely).operations == pytest.approx(26_003 + 26_000 + 1, rel=1e-4)


def test_the_way_with_the_fewest_seconds_is_chosen(subtests: pytest.Subtests) -> None:
    cases = [
        (replace(USUAL, length=174), "walk"),
        (replace(USUAL, progressions=2_000_000), "group"),
        (USUAL, "candidates"),
        (replace(USUAL, items=10), "candidates"),
        (DecodeLoad(100_000, 101, 27, 100), "group"),
        (replace(USUAL, progressions=2_000, items=10), "candidates"),
        (DecodeLoad(1_000, 2**31 - 1, 2**20, 5), "candidates"),
        (replace(USUAL, prime=field61.PRIME, items=10**6), "candidates"),
    ]
    for load, way in cases:
        with subtests.test(load=load, way=way):
            best = cheapest(load)
            assert best.way == way
            if load.prime != field61.PRIME:
                every = [walk_cost(load), group_cost(load), candidates_cost(load)]
                assert best.seconds == min(cost.seconds for cost in every)


def test_decode_goes_each_way(subtests: pytest.Subtests) -> None:
    for way, progressions, wanted in [
        ("walk", replace(random_progressions(10_007, 1, 100, 10_006, 1), lengths=np.full(100, 2, np.uint64)), 10_007),
        ("group", random_progressions(101, 1, 10_000, 50, 1), 101),
        ("candidates", random_progressions(1009, 7, 50, 504, 1), 3),
    ]:
        with subtests.test(way=way, progressions=progressions):
            items = np.arange(wanted, dtype=np.uint64)
            length = float(progressions.lengths.mean())
            load = DecodeLoad(len(progressions.slopes), progressions.prime, length, wanted, progressions.stride)
            assert cheapest(load).way == way
            assert np.array_equal(count(decode, progressions, items), count(count_by_definition, progressions, items))


def test_any_number_of_threads_counts_the_same(subtests: pytest.Subtests) -> None:
    """Also more threads than there are slopes or items."""
    for threads in (2, 3, 7):
        for way in COMPILED:
            for slopes in (1, 2, 504):
                with subtests.test(threads=threads, way=way.__name__, slopes=slopes):
                    progressions = random_progressions(1009, 4, 300, slopes, threads)
                    for wanted in (1, 5, 1009):
                        items = np.arange(wanted, dtype=np.uint64)
                        expected = np.full(wanted, 5, dtype=np.int64)
                        counts = expected.copy()
                        count_by_definition(expected, progressions, items)
                        way(counts, progressions, items, threads)
                        assert np.array_equal(counts, expected)


def test_the_cost_of_a_mechanism_is_that_of_its_progressions() -> None:
    window, cell = Interval.spending(1.0, 26_003, 6_993), RandomisedResponse.spending(1.0, 4)
    assert Affine(26_000, 26_003, 26_003).decode_cost(window, 170_000, 26_000) == cheapest(USUAL)
    folded = DecodeLoad(170_000, 26_003, 26_003 / 4, 26_000, stride=4)
    assert Affine(26_000, 26_003, 4).decode_cost(cell, 170_000, 26_000) == cheapest(folded)
    subset = Subset.spending(1.0, 12, 3)
    assert Affine(100, 101, 12).decode_cost(subset, 1_000, 100) == cheapest(DecodeLoad(3_000, 101, 101 / 12, 100, 12))


def test_more_reports_than_are_decoded_at_once_cost_in_proportion() -> None:
    encoder, responder = Affine(26_000, 26_003, 26_003), Interval.spending(1.0, 26_003, 6_993)
    one, ten = (encoder.decode_cost(responder, calls * AT_ONCE, 26_000) for calls in (1, 10))
    assert one.way == ten.way == "group"
    assert math.isclose(ten.seconds, 10 * one.seconds)
    assert math.isclose(ten.operations, 10 * one.operations)


def test_nothing_costs_nothing_but_the_passes_over_the_dictionary() -> None:
    encoder, responder = Affine(26_000, 26_003, 26_003), Interval.spending(1.0, 26_003, 6_993)
    assert encoder.decode_cost(responder, 0, 26_000).seconds == 0.0
    with pytest.raises(ValueError, match="bits are no runs"):
        Affine(100, 101, 4).decode_cost(Unary.symmetric(1.0, 4), 10, 20)
