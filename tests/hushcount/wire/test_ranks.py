"""Long integers against Python's own, ranks of subsets by enumeration, and the kernels against their plain twins."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.kernels.ranks import sum_binomials
from hushcount.kernels.ranks import unrank as unrank_compiled
from hushcount.wire import ranks

SHAPES = [(1, 1), (2, 1), (2, 2), (7, 1), (7, 3), (7, 6), (12, 5), (14, 7)]
LARGE = [(64, 17), (300, 5), (1024, 47), (1024, 275), (65536, 2), (70000, 3), (400, 399)]

factors = (
    st.integers(1, 1 << 62) | st.integers(1, 1 << 34) | st.sampled_from([1 << 32, (1 << 32) - 1, 1 << 48, 1 << 62])
)


def integers_of(limbs: ranks.Limbs) -> list[int]:
    return [sum(int(limb) << (32 * place) for place, limb in enumerate(column)) for column in limbs.T]


def long_integers(limbs: int) -> st.SearchStrategy[list[int]]:
    top = 1 << (32 * limbs)
    return st.lists(st.integers(0, top - 1) | st.sampled_from([0, top - 1, top >> 1]), min_size=0, max_size=5)


def random_subsets(bound: int, count: int, n: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    rows = [np.sort(generator.choice(bound, count, replace=False)) for _ in range(n)]
    return np.array(rows, dtype=np.uint32).reshape(n, count)


def edge_subsets(bound: int, count: int) -> np.ndarray:
    """The first, the last, and the two beside them."""
    first, last = list(range(count)), list(range(bound - count, bound))
    rows = [first, last]
    if count < bound:
        rows += [[*first[:-1], count], [bound - count - 1, *last[1:]]]
    return np.array(rows, dtype=np.uint32)


# Long integers


@given(st.data())
def test_bytes_and_limbs_are_two_forms_of_one_integer(data: st.DataObject) -> None:
    limbs = data.draw(st.integers(1, 6))
    numbers = data.draw(long_integers(limbs))
    integers = ranks.from_integers(numbers, limbs)
    assert integers.shape == (limbs, len(numbers))
    assert integers_of(integers) == numbers
    for length in range(4 * limbs - 3, 4 * limbs + 1):
        low = [number % 256**length for number in numbers]
        octets = ranks.to_octets(integers, length)
        assert [row.tobytes() for row in octets] == [number.to_bytes(length, "little") for number in low]
        assert integers_of(ranks.from_octets(octets, limbs)) == low


@given(st.data())
def test_multiplying_and_dividing_are_those_of_python(data: st.DataObject) -> None:
    limbs, factor = data.draw(st.integers(1, 6)), data.draw(factors)
    numbers = data.draw(long_integers(limbs))
    addends = [data.draw(st.integers(0, factor - 1) | st.just(factor - 1)) for _ in numbers]
    longer = ranks.from_integers(numbers, limbs + 2)
    ranks.multiply_add(longer, factor, np.array(addends, dtype=np.uint64))
    products = [factor * number + addend for number, addend in zip(numbers, addends, strict=True)]
    assert integers_of(longer) == products
    assert ranks.divide(longer, factor).tolist() == addends
    assert integers_of(longer) == numbers


@given(st.data())
def test_comparing_is_that_of_python(data: st.DataObject) -> None:
    limbs = data.draw(st.integers(1, 4))
    numbers = data.draw(long_integers(limbs))
    edges = st.sampled_from(numbers) if numbers else st.nothing()
    bound = data.draw(edges | edges.map(lambda edge: edge + 1) | st.integers(0, 1 << (32 * limbs + 8)))
    assert ranks.are_below(ranks.from_integers(numbers, limbs), bound).tolist() == [one < bound for one in numbers]


# Subsets


def test_the_rank_of_a_subset_is_its_place_in_colexicographic_order(subtests: pytest.Subtests) -> None:
    for bound, count in SHAPES:
        with subtests.test(bound=bound, count=count):
            subsets = sorted(combinations(range(bound), count), key=lambda subset: subset[::-1])
            elements = np.array(subsets, dtype=np.uint16).reshape(-1, count)
            places = list(range(comb(bound, count)))
            assert [ranks.rank_integer(subset) for subset in subsets] == places
            assert [tuple(ranks.unrank_integer(bound, count, place)) for place in places] == subsets
            for rows in (elements[:5], np.resize(elements, (100, count)), elements):
                assert integers_of(ranks.rank(bound, rows)) == [ranks.rank_integer(row) for row in rows.tolist()]
            for unrank in (ranks.unrank, ranks.unrank_integers):
                found = unrank(bound, count, ranks.from_integers(places, 1))
                assert found.dtype == np.uint32
                assert np.array_equal(found, elements)


@given(st.data())
def test_ranking_one_subset_is_the_sum_of_binomials(data: st.DataObject) -> None:
    bound = data.draw(st.integers(1, 60) | st.integers(1, 1 << 32))
    elements = sorted(data.draw(st.sets(st.integers(0, bound - 1), min_size=1, max_size=20)))
    rank = sum(comb(element, index + 1) for index, element in enumerate(elements))
    assert ranks.rank_integer(elements) == rank
    assert ranks.unrank_integer(bound, len(elements), rank) == elements


@settings(max_examples=40)
@given(st.data())
def test_the_kernels_are_their_plain_twins(data: st.DataObject) -> None:
    bound = data.draw(st.integers(1, 120))
    count, n = data.draw(st.integers(1, bound)), data.draw(st.integers(0, 100))
    subsets = random_subsets(bound, count, n, data.draw(st.integers(0, 1 << 32)))
    table, limbs = ranks.binomials(bound, count), ranks.row_limbs(bound, count)
    sums = np.zeros((n, limbs[-1]), dtype=np.uint64)
    sum_binomials(sums, subsets, table, limbs)
    numbers = ranks.from_integers(map(ranks.rank_integer, subsets.tolist()), limbs[-1])
    added = np.ascontiguousarray(sums.T)
    ranks.carry(added)
    assert np.array_equal(added, numbers)
    assert np.array_equal(ranks.rank(bound, subsets), numbers)
    assert np.array_equal(unrank_compiled(table, limbs, numbers), ranks.unrank_integers(bound, count, numbers))
    assert np.array_equal(ranks.unrank(bound, count, numbers), subsets)


def test_large_subsets(subtests: pytest.Subtests) -> None:
    for bound, count in LARGE:
        with subtests.test(bound=bound, count=count):
            few = np.concatenate([edge_subsets(bound, count), random_subsets(bound, count, 4, 1)])
            many = np.resize(few, (70, count))
            numbers = ranks.rank(bound, few)
            assert integers_of(numbers) == [
                sum(comb(element, index + 1) for index, element in enumerate(row)) for row in few.tolist()
            ]
            assert integers_of(numbers)[:2] == [0, comb(bound, count) - 1]
            assert np.array_equal(ranks.rank(bound, many)[:, : len(few)], numbers)
            assert np.array_equal(ranks.unrank(bound, count, numbers), few)
            assert np.array_equal(ranks.unrank_integers(bound, count, numbers), few)


def test_a_rank_beside_a_binomial_has_the_subset_of_its_side(subtests: pytest.Subtests) -> None:
    """The search compares leading bits first, which a binomial and its neighbours share."""
    for bound, count in [(40, 20), (300, 5), (1024, 4)]:
        with subtests.test(bound=bound, count=count):
            steps = [comb(count - 1 + place, count) for place in range(bound - count + 1)]
            near = [rank for step in steps for rank in (step - 1, step, step + 1) if 0 <= rank < comb(bound, count)]
            numbers = ranks.from_integers(near, ranks.row_limbs(bound, count)[-1])
            assert ranks.unrank(bound, count, numbers).tolist() == [
                ranks.unrank_integer(bound, count, rank) for rank in near
            ]


def test_ranks_of_any_length_are_found_again(subtests: pytest.Subtests) -> None:
    """Also far below the leading bits of a row, where hundreds of binomials tie."""
    for bound, count in [(64, 17), (1024, 19), (1024, 275), (400, 399)]:
        with subtests.test(bound=bound, count=count):
            powers = [0, *(1 << bit for bit in range(comb(bound, count).bit_length() - 1))]
            found = ranks.unrank(bound, count, ranks.from_integers(powers, ranks.row_limbs(bound, count)[-1]))
            assert found.max() < bound
            assert (np.diff(found.astype(np.int64), axis=1) > 0).all()
            assert list(map(ranks.rank_integer, found.tolist())) == powers


def test_the_table_holds_the_binomials(subtests: pytest.Subtests) -> None:
    for bound, count in [*SHAPES, (40, 20), (300, 5), (130, 100)]:
        with subtests.test(bound=bound, count=count):
            table = ranks.binomials(bound, count)
            assert table.nbytes == ranks.table_octets(bound, count, 1 << 26)
            assert table.shape[:2] == (count, bound - count + 1)
            for index in range(count):
                expected = [comb(index + place, index + 1) for place in range(bound - count + 1)]
                assert integers_of(table[index].T.astype(np.uint64)) == expected
                # What is left when element `index` is looked for needs no more limbs than its row says.
                assert ranks.row_limbs(bound, count)[index] == ranks.limbs_below(
                    comb(bound - count + index + 1, index + 1)
                )


def test_sizes_that_need_no_table_are_found_without_the_binomial() -> None:
    # C(2**30, 2**29) has a thousand million bits: this would not end.
    assert ranks.table_octets(1 << 30, 1 << 29, 1 << 26) > 1 << 26


def test_any_integer_for_a_rank_crashes_nothing() -> None:
    bound, count = 100, 30
    limbs = ranks.row_limbs(bound, count)[-1]
    found = ranks.unrank(bound, count, np.full((limbs, 3), (1 << 32) - 1, dtype=np.uint64))
    assert found.max() < bound


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import numpy as np
from hushcount.wire import ranks
subsets = np.array([[0, 3, 50], [1, 2, 3], [97, 98, 99]] * 30, dtype=np.uint16)
numbers = ranks.rank(100, subsets)
assert (ranks.unrank(100, 3, numbers) == subsets).all()
print(numbers[0, :3].tolist(), "hushcount.kernels.ranks" in sys.modules)
"""


def test_a_client_without_numba_ranks_and_unranks() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True, check=False)  # noqa: S603
    assert run.returncode == 0, run.stderr
    assert run.stdout.split("] ") == [f"[{comb(3, 2) + comb(50, 3)}, 3, {comb(100, 3) - 1}", "False\n"]
