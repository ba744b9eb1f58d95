"""Nested functions: signs of a pool's cells, tallied in one matrix and read by one transform a row."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hushcount.maths.fingerprints import fingerprints
from hushcount.oracles.encoders.hadamard import Hadamard
from hushcount.oracles.encoders.nested import Nested
from hushcount.oracles.encoders.pool import Pool
from hushcount.oracles.responders.randomised_response import RandomisedResponse
from hushcount.wire.fields import report_dtype
from tests.hushcount.oracles.cases import pool_seed
from tests.support.enumeration import repeated
from tests.support.words import SeededWords

ITEMS = fingerprints(f"item {number}" for number in range(40))


def nested(rows: int, cells: int) -> Nested:
    return Nested(Pool(rows, cells, pool_seed(9)), Hadamard(cells))


def test_two_items_share_a_sign_always_in_one_cell_and_else_half_of_the_time(subtests: pytest.Subtests) -> None:
    for cells in (2, 5, 8, 11):
        with subtests.test(cells=cells):
            encoder = nested(3, cells)
            pairs = [(row, column) for row in range(3) for column in range(encoder.inner.order)]
            functions = np.array(pairs, dtype=report_dtype(encoder.fields))
            signs = np.stack([encoder.cell(functions, repeated(item, len(pairs))) for item in ITEMS[:12]])
            placed = np.stack([encoder.outer.cell(functions, repeated(item, len(pairs))) for item in ITEMS[:12]])
            assert set(signs.ravel().tolist()) == {0, 1}
            for one in range(12):
                for other in range(one):
                    for row in range(3):
                        here = functions["row"] == row
                        shared = Fraction(int((signs[one] == signs[other])[here].sum()), int(here.sum()))
                        assert shared == (1 if placed[one][here][0] == placed[other][here][0] else Fraction(1, 2))


def test_scores_are_the_reports_that_support_each_item(subtests: pytest.Subtests) -> None:
    # 200 rows: most of them empty.
    for rows, cells in ((1, 2), (3, 5), (7, 8), (200, 11)):
        with subtests.test(rows=rows, cells=cells):
            encoder, responder = nested(rows, cells), RandomisedResponse.spending(1.0, 2)
            reports = np.zeros(120, dtype=report_dtype((*encoder.fields, *responder.fields)))
            words = SeededWords(rows)
            encoder.draw(reports, words)
            responder.respond(reports, encoder.cell(reports, np.resize(ITEMS, 120)), words)
            tally = np.zeros(encoder.tally_shape(ITEMS), dtype=np.int64)
            encoder.accumulate(tally, responder, reports, ITEMS)
            assert tally.sum() == 120
            expected = [(encoder.cell(reports, repeated(item, 120)) == reports["cell"]).sum() for item in ITEMS]
            assert encoder.scores(tally, ITEMS, ITEMS).tolist() == expected


def test_the_inner_function_must_be_over_the_pools_cells_in_one_block(subtests: pytest.Subtests) -> None:
    for inner, given in ((Hadamard(6), 6), (Hadamard(5, 2), 5)):
        with subtests.test(inner=inner, given=given), pytest.raises(ValueError, match=rf"inner\b.*\b{given}\b.*\b5\b"):
            Nested(Pool(3, 5, pool_seed(1)), inner)
