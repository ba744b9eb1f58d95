"""The functions of a pool: even over the cells, and three items collide as three independent ones would."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from hushcount.arrays import UInt64Array
from hushcount.maths.field61 import PRIME
from hushcount.maths.fingerprints import OTHER, fingerprints
from hushcount.oracles.encoders.pool import Pool
from hushcount.wire.fields import report_dtype
from tests.hushcount.oracles.cases import pool_seed
from tests.support.statistics import FAILURE, chi_square_p

ROWS, CELLS = 1 << 16, 16
CONSECUTIVE = np.arange(5, dtype=np.uint64)
STRINGS = np.concatenate([fingerprints(["a", "b", "ab", ""]), np.array([OTHER], dtype=np.uint64)])
ITEMS = {"consecutive": CONSECUTIVE, "fingerprints": STRINGS}


def cells_of(pool: Pool, items: UInt64Array) -> np.ndarray:
    """Return uint64[items, rows]: where every function of the pool puts each item."""
    reports = np.zeros(pool.rows, dtype=report_dtype(pool.fields))
    reports["row"] = np.arange(pool.rows)
    return np.stack([pool.cell(reports, np.full(pool.rows, item, dtype=np.uint64)) for item in items])


def test_every_item_is_spread_evenly_over_the_cells(subtests: pytest.Subtests) -> None:
    # Fixed seed; would fail for FAILURE of all seeds and items.
    for name, items in ITEMS.items():
        with subtests.test(items=name):
            for row in cells_of(Pool(ROWS, CELLS, pool_seed(1)), items):
                assert (
                    chi_square_p(np.bincount(row.astype(int), minlength=CELLS), np.full(CELLS, 1.0 / CELLS)) >= FAILURE
                )


def test_pairs_collide_in_one_row_of_m(subtests: pytest.Subtests) -> None:
    # Fixed seed; exact binomial at FAILURE for each pair.
    for name, items in ITEMS.items():
        with subtests.test(items=name):
            cells = cells_of(Pool(ROWS, CELLS, pool_seed(2)), items)
            for one, other in combinations(cells, 2):
                assert stats.binomtest(int((one == other).sum()), ROWS, 1.0 / CELLS).pvalue >= FAILURE


def test_triples_collide_as_independent_items_do(subtests: pytest.Subtests) -> None:
    # Three-wise independence, on which the collision term of the variance rests. Exact binomial at FAILURE each.
    for name, items in ITEMS.items():
        with subtests.test(items=name):
            cells = cells_of(Pool(ROWS, CELLS, pool_seed(3)), items)
            for first, second, third in combinations(cells, 3):
                both = int(((first == second) & (first == third)).sum())
                assert stats.binomtest(both, ROWS, 1.0 / CELLS**2).pvalue >= FAILURE


def test_plain_affine_functions_would_fail_the_test_of_triples() -> None:
    # What the polynomials of degree two are for: c0 + c1 x puts 0, 1, 2 in one cell too often.
    generator = np.random.default_rng(1)
    shift, slope = (generator.integers(0, PRIME, ROWS).astype(object) for _ in range(2))
    cells = [((shift + slope * item) % PRIME) % CELLS for item in range(3)]
    both = int(((cells[0] == cells[1]) & (cells[0] == cells[2])).sum())
    assert stats.binomtest(both, ROWS, 1.0 / CELLS**2).pvalue < FAILURE


def test_bad_parameters_raise_with_name_value_and_range(subtests: pytest.Subtests) -> None:
    cases = [
        ((0, 16, pool_seed(1)), r"k is 0,.*1\.\.262144"),
        ((4, 1, pool_seed(1)), r"m is 1,.*2\.\.16777216"),
        ((4, 16, "abc"), r"seed is 'abc',.* 64 "),
        ((4, 16, "A" * 64), "seed is .* 64 "),
    ]
    for arguments, message in cases:
        with subtests.test(arguments=arguments), pytest.raises(ValueError, match=message):
            Pool(*arguments)
