"""Uniform subsets: the compiled loop against its plain twin, all subsets alike, and draws that must be made anew."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.arrays import UInt64Array
from hushcount.kernels.subsets import floyd
from hushcount.oracles.responders import subset
from hushcount.oracles.responders.subset import draw_subsets, floyd_numpy
from hushcount.randomness import SystemWords, Words
from tests.support.listed import ListedWords
from tests.support.statistics import FAILURE, chi_square_p
from tests.support.words import SeededWords

MANY = 200
"""Enough subsets at once for the compiled loop; fewer than 16 are drawn by the plain one."""


def uniform_subsets(width: int, size: int, own: UInt64Array, dropped: UInt64Array, words: Words) -> np.ndarray:
    found = np.empty((len(own), size), dtype=np.uint32)
    draw_subsets(found, width, own, dropped, words)
    return found


@settings(max_examples=60, derandomize=True)
@given(width=st.integers(2, 300), data=st.data())
def test_the_compiled_loop_is_its_plain_twin(width: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, width - 1))
    count = data.draw(st.integers(0, 40))
    generator = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    # Small words and large ones, so that unfair draws and repeated cells are frequent.
    top = data.draw(st.sampled_from([50, 1 << 16, 1 << 32]))
    drawn = generator.integers(0, top, (count, size)).astype(np.uint32)
    own = generator.integers(0, width, count).astype(np.uint64)
    dropped = generator.integers(0, size + 1, count).astype(np.uint64)
    chosen, plain = np.empty((2, count, size), dtype=data.draw(st.sampled_from([np.uint16, np.uint32])))
    again = floyd(drawn.copy(), own, dropped, width, chosen)
    assert np.array_equal(again, floyd_numpy(drawn.copy(), own, dropped, width, plain))
    assert np.array_equal(chosen, plain)
    assert np.all(chosen[:, 1:] > chosen[:, :-1])
    assert not count or chosen.max() < width
    assert np.array_equal((chosen == own[:, None]).any(axis=1), dropped < size)


def test_the_twins_agree_where_the_bitmap_is_full_or_ends(subtests: pytest.Subtests) -> None:
    for width in (2, 3, 63, 64, 65, 66, 128, 129):
        with subtests.test(width=width):
            for size in {1, width // 2, width - 1}:
                drawn = np.random.default_rng(width).integers(0, 1 << 32, (50, size)).astype(np.uint32)
                own = np.arange(50, dtype=np.uint64) % np.uint64(width)
                dropped = np.arange(50, dtype=np.uint64) % np.uint64(size + 1)
                chosen, plain = np.empty((2, 50, size), dtype=np.uint16)
                again = floyd(drawn.copy(), own, dropped, width, chosen)
                assert np.array_equal(again, floyd_numpy(drawn.copy(), own, dropped, width, plain))
                assert np.array_equal(chosen, plain)


def frequencies(found: np.ndarray, width: int) -> np.ndarray:
    """Return how often each subset of the other cells than 0 was drawn."""
    size = found.shape[1]
    places = {subset: index for index, subset in enumerate(combinations(range(1, width), size))}
    rows, counts = np.unique(found, axis=0, return_counts=True)
    result = np.zeros(len(places))
    result[[places[tuple(row)] for row in rows.tolist()]] = counts
    return result


def test_every_subset_of_the_others_is_equally_likely(subtests: pytest.Subtests) -> None:
    # Chi-square over all subsets at FAILURE, for all twelve cases together.
    for width, size in ((3, 1), (5, 2), (6, 3), (7, 1), (8, 6), (9, 4)):
        for loop, rows in (("compiled", MANY), ("plain", 10)):
            with subtests.test(width=width, size=size, loop=loop):
                turns = 14_000 // rows
                own, dropped = np.zeros(rows, dtype=np.uint64), np.full(rows, size, dtype=np.uint64)
                words = SystemWords()
                found = np.concatenate([uniform_subsets(width, size, own, dropped, words) for _ in range(turns)])
                seen = frequencies(found, width)
                assert chi_square_p(seen, np.full(len(seen), 1 / len(seen))) >= FAILURE / 12


def test_the_rest_is_uniform_where_a_uniform_member_gives_way() -> None:
    # Chi-square at FAILURE. The first drawn is no uniform member, early draws being early cells: always dropping it
    # is rejected, which is why clients draw the place.
    width, size, count = 7, 3, 30_000
    own = np.zeros(count, dtype=np.uint64)
    for places, even in ((np.arange(count, dtype=np.uint64) % np.uint64(size), True), (own, False)):
        found = uniform_subsets(width, size, own, places, SystemWords())
        assert np.all(found[:, 0] == 0)
        seen = frequencies(found[:, 1:], width)
        assert (chi_square_p(seen, np.full(len(seen), 1 / len(seen))) >= FAILURE) == even


def test_a_biased_sampler_is_rejected() -> None:
    # Repeated cells replaced by the next one instead of the last: what Floyd's method is not.
    width, size, count = 7, 3, 14_000
    drawn = np.random.default_rng(1).integers(0, np.arange(width - size, width), (count, size))
    for column in range(1, size):
        while (clash := (drawn[:, :column] == drawn[:, [column]]).any(axis=1)).any():
            drawn[clash, column] = (drawn[clash, column] + 1) % (width - 1)
    seen = frequencies(np.sort(drawn + 1, axis=1), width)
    assert chi_square_p(seen, np.full(len(seen), 1 / len(seen))) < FAILURE


def test_a_word_that_would_favour_a_cell_makes_the_subset_be_drawn_anew() -> None:
    # Of 3 other cells one: a draw is word * 3 >> 32, and 2**32 mod 3 is 1, so only the word 0 has a low half below 1.
    own = np.zeros(3, dtype=np.uint64)
    none = np.ones(3, dtype=np.uint64)
    listed = [0 << 32 | 1 << 31, 1 << 32 | (1 << 32) - 1]  # low halves first: 1 << 31, 0, (1 << 32) - 1, and one spare
    source = ListedWords([*listed, 1 << 31])
    # The second client's word is 0: refused; it alone draws again, one word for one member.
    assert uniform_subsets(4, 1, own, none, source).tolist() == [[2], [2], [3]]
    assert source.used == 3


def test_all_words_refused_are_drawn_until_they_are_fair() -> None:
    source = ListedWords([0, 0, 0, 1 << 31 | 1 << 63])
    found = uniform_subsets(4, 2, np.zeros(1, np.uint64), np.full(1, 2, np.uint64), source)
    # Bounds 2 and 3: halves 2**31 give cell 1 and cell 1 again, which the last, 2, replaces; then past the own cell 0.
    assert found.tolist() == [[2, 3]]
    assert source.used == 4


class Counting:
    def __init__(self) -> None:
        self.used = 0
        self._words = SystemWords()

    def words(self, count: int) -> UInt64Array:
        self.used += count
        return self._words.words(count)


def test_a_subset_takes_half_a_word_a_member() -> None:
    source = Counting()
    own = np.zeros(MANY, dtype=np.uint64)
    uniform_subsets(100, 27, own, np.full(MANY, 27, np.uint64), source)
    # A redraw has probability below 27 * 100 / 2**32 a subset.
    assert source.used == MANY * 27 // 2


def test_few_and_many_subsets_are_drawn_alike() -> None:
    own = np.arange(20, dtype=np.uint64)
    dropped = np.arange(20, dtype=np.uint64) % np.uint64(6)
    assert len(own) >= subset._FEW
    whole = uniform_subsets(20, 5, own, dropped, SeededWords(3))
    drawn = SeededWords(3).words(50).view("<u4").reshape(20, 5)
    plain = np.empty((20, 5), dtype=np.uint32)
    floyd_numpy(drawn, own, dropped, 20, plain)
    assert np.array_equal(whole, plain)


def test_large_requests_are_taken_in_parts() -> None:
    count, size = 3000, 200  # more members than are worked on at once
    own = np.zeros(count, dtype=np.uint64)
    found = uniform_subsets(401, size, own, np.full(count, size, np.uint64), SystemWords())
    assert found.shape == (count, size)
    assert np.all(np.diff(found.astype(int), axis=1) > 0)
    # Every cell is in half of the subsets: six deviations of sqrt(count)/2, 400 cells, below FAILURE.
    counts = np.bincount(found.reshape(-1), minlength=401)
    assert counts[0] == 0
    assert np.abs(counts[1:] - count / 2).max() <= 6.0 * np.sqrt(count) / 2


def test_clients_draw_subsets_without_numba() -> None:
    program = (
        "import sys; sys.modules['numba'] = None; sys.modules['scipy'] = None\n"
        "import numpy as np\n"
        "from hushcount.randomness import SystemWords\n"
        "from hushcount.oracles.catalogue import build\n"
        "mechanism = build('ss', 1.0, 20, {'s': 5})\n"
        "reports = mechanism.encode(np.arange(3, dtype=np.uint64), SystemWords())\n"
        "assert mechanism.pack(reports).shape == (3, mechanism.report_bytes)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603  # our own program
