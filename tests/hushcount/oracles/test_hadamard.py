"""Hadamard functions: the matrix, its fast transform, and blocks that never meet."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.oracles.encoders.hadamard import Hadamard, parity, walsh_hadamard
from hushcount.oracles.responders.randomised_response import RandomisedResponse
from hushcount.wire.fields import report_dtype
from tests.support.enumeration import repeated
from tests.support.words import SeededWords


def sylvester(order: int) -> np.ndarray:
    """Return the Sylvester matrix by its definition: the double of a matrix is [[H, H], [H, -H]]."""
    if order == 1:
        return np.ones((1, 1), dtype=np.int64)
    half = sylvester(order // 2)
    return np.block([[half, half], [half, -half]])


def all_cells(encoder: Hadamard) -> np.ndarray:
    """Return uint64[items, columns]: the cell of every item under every column."""
    functions = np.zeros(encoder.order, dtype=report_dtype(encoder.fields))
    functions["column"] = np.arange(encoder.order)
    return np.stack([encoder.cell(functions, repeated(item, encoder.order)) for item in range(encoder.domain)])


def test_a_sign_is_an_entry_of_the_sylvester_matrix(subtests: pytest.Subtests) -> None:
    for domain in (2, 3, 8, 9, 16):
        with subtests.test(domain=domain):
            encoder = Hadamard(domain)
            matrix = sylvester(encoder.order)
            assert encoder.order < 2 * domain
            assert np.array_equal(1 - 2 * all_cells(encoder).astype(np.int64), matrix[:domain])


def test_items_of_a_block_meet_in_half_of_the_columns_and_others_never(subtests: pytest.Subtests) -> None:
    for domain, blocks in ((2, 1), (7, 1), (8, 2), (7, 2), (9, 4), (5, 5), (64, 8), (33, 16)):
        with subtests.test(domain=domain, blocks=blocks):
            encoder = Hadamard(domain, blocks)
            cells, block = all_cells(encoder), encoder.block_of(np.arange(domain, dtype=np.uint64))
            assert np.array_equal(cells // np.uint64(2), np.broadcast_to(block[:, None], cells.shape))
            assert cells.max() < encoder.cells == 2 * blocks
            for one, other in combinations(range(domain), 2):
                shared = Fraction(int((cells[one] == cells[other]).sum()), encoder.order)
                assert shared == (encoder.collision if block[one] == block[other] else 0)


@settings(max_examples=40)
@given(exponent=st.integers(0, 8), lines=st.integers(1, 3), seed=st.integers(0, 1 << 30))
def test_the_fast_transform_is_the_product_with_the_matrix(exponent: int, lines: int, seed: int) -> None:
    order = 1 << exponent
    values = np.random.default_rng(seed).integers(-(10**6), 10**6, (lines, order))
    kept = values.copy()
    assert np.array_equal(walsh_hadamard(values), values @ sylvester(order))
    assert np.array_equal(values, kept)
    assert np.array_equal(walsh_hadamard(walsh_hadamard(values)), order * values)


@given(values=st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_parity_is_that_of_the_set_bits(values: list[int]) -> None:
    found = parity(np.array(values, dtype=np.uint64))
    assert found.tolist() == [value.bit_count() % 2 for value in values]


@settings(max_examples=25)
@given(domain=st.integers(2, 70), data=st.data())
def test_scores_are_the_transform_of_the_tally_for_any_blocks(domain: int, data: st.DataObject) -> None:
    blocks = data.draw(st.integers(1, min(domain, 9)))
    encoder, items = Hadamard(domain, blocks), np.arange(domain, dtype=np.uint64)
    responder = RandomisedResponse.spending(1.0, encoder.cells)
    words = SeededWords(data.draw(st.integers(0, 1000)))
    reports = np.zeros(90, dtype=report_dtype((*encoder.fields, *responder.fields)))
    encoder.draw(reports, words)
    responder.respond(reports, encoder.cell(reports, np.resize(items, 90)), words)
    tally = np.zeros(encoder.tally_shape(items), dtype=np.int64)
    encoder.accumulate(tally, responder, reports, items)
    cells = np.stack([encoder.cell(reports, repeated(item, 90)) for item in items], axis=1)
    named = reports["cell"].astype(np.uint64)[:, None]
    supporting, opposing = (named == cells).sum(axis=0), (named == cells ^ np.uint64(1)).sum(axis=0)
    expected = supporting - opposing if blocks > 1 else supporting
    assert np.array_equal(encoder.scores(tally, items, items), expected)
    assert np.array_equal(encoder.block_reports(tally, items), supporting + opposing)


def test_bad_parameters_raise_with_name_value_and_range(subtests: pytest.Subtests) -> None:
    cases = [
        ((1,), r"domain is 1,.*2\.\.2147483648"),
        (((1 << 31) + 1,), r"domain is 2147483649,.*2\.\.2147483648"),
        ((5, 0), r"blocks is 0,.*1\.\.5"),
        ((5, 6), r"blocks is 6,.*1\.\.5"),
    ]
    for arguments, message in cases:
        with subtests.test(arguments=arguments), pytest.raises(ValueError, match=message):
            Hadamard(*arguments)


def test_items_outside_the_dictionary_raise() -> None:
    encoder = Hadamard(5)
    reports = np.zeros(1, dtype=report_dtype(encoder.fields))
    with pytest.raises(ValueError, match=r"item.* 0\.\.4"):
        encoder.cell(reports, np.array([5], dtype=np.uint64))
    with pytest.raises(ValueError, match=r"item.* 0\.\.4"):
        encoder.scores(np.zeros((1, 16), dtype=np.int64), np.arange(5, dtype=np.uint64), np.array([7], np.uint64))
