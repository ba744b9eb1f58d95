"""The compiled sum over a pool's cells equals its plain twin and the definition, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hushcount.kernels import cells
from hushcount.kernels.cells import sum_of_cells
from hushcount.maths.field61 import PRIME
from tests.support.plain_kernels import sum_of_cells_numpy

ENDS = (0, 1, 2**31 - 1, 2**31, 2**60, PRIME - 1)
residues = st.one_of(st.sampled_from(ENDS), st.integers(0, PRIME - 1))


@given(
    table=st.lists(st.tuples(residues, residues, residues), min_size=1, max_size=6),
    items=st.lists(residues, max_size=8),
    width=st.sampled_from([1, 2, 3, 16, 37, 1024]),
)
@example(table=[(PRIME - 1,) * 3], items=[PRIME - 1], width=37)
@settings(deadline=None)
def test_sums_are_those_of_the_definition(table: list[tuple[int, int, int]], items: list[int], width: int) -> None:
    """In Python's own integers, which no product is too long for."""
    matrix = np.arange(len(table) * (width + 1)).reshape(len(table), width + 1) ** 2
    coefficients = np.array(table, dtype=np.uint64).T
    expected = [
        sum(int(matrix[row, (c + b * item + a * item * item) % PRIME % width]) for row, (c, b, a) in enumerate(table))
        for item in items
    ]
    wanted = np.array(items, dtype=np.uint64)
    for way in (sum_of_cells, sum_of_cells_numpy):
        assert way(matrix, coefficients, width, wanted).tolist() == expected


@pytest.mark.parametrize("width", [1024, 1000])
def test_more_items_than_a_tile_on_any_number_of_threads(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "_WORTH_A_THREAD", 1)
    generator = np.random.default_rng(1)
    matrix = generator.integers(-(2**40), 2**40, (20, width))
    table = generator.integers(0, PRIME, (3, 20)).astype(np.uint64)
    items = generator.integers(0, PRIME, 2500).astype(np.uint64)
    expected = sum_of_cells_numpy(matrix, table, width, items)
    for threads in (1, 2, 5):
        assert np.array_equal(sum_of_cells(matrix, table, width, items, threads), expected)
