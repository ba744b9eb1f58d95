"""Weighted designs as a responder: the exact law, its exact loss, and the draws that follow it."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.designs import sources
from hushcount.designs.balanced import Design
from hushcount.errors import UsageError
from hushcount.oracles.responders import weighted_design
from hushcount.oracles.responders.weighted_design import WeightedDesign
from hushcount.randomness import WORD_VALUES, SystemWords
from hushcount.wire.fields import report_dtype
from tests.support.statistics import FAILURE, chi_square_p, draws_to_tell_apart

FANO = ((0, 1, 2), (0, 3, 4), (0, 5, 6), (1, 3, 5), (1, 4, 6), (2, 3, 6), (2, 4, 5))
"""Blocks of seven cells that hold each pair once."""
TRIPLES = tuple(combinations(range(7), 3))
FOUND = {
    "all cells turn": sources.find_design(21, 4),
    "one cell stays": sources.find_design(10, 4),
    "no cell turns": Design(7, 3, 1, TRIPLES, tuple(3 << 40 if one in FANO else 1 << 40 for one in TRIPLES)),
    "windows": sources.find_design(11, 3),
    "single cells": sources.find_design(5, 1),
    "all but one": sources.find_design(6, 5),
}


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, Design]:
    """Let responders know these designs too, by their names, and what a test adds."""
    designs = {design.name: design for design in FOUND.values()}
    monkeypatch.setattr(
        weighted_design, "_loaded", lambda name: designs[name] if name in designs else sources.load_design(name)
    )
    return designs


def support(design: Design) -> np.ndarray[Any, Any]:
    """Return bool[rows, width], written out by the rule of the docstring."""
    rows = [
        [(cell + turn) % design.turns if cell < design.turns else cell for cell in block]
        for block in design.blocks
        for turn in range(design.turns)
    ]
    held = np.zeros((len(rows), design.width), dtype=np.bool_)
    held[np.arange(len(rows))[:, None], rows] = True
    return held


def law(responder: WeightedDesign, design: Design) -> list[list[Fraction]]:
    """Return the exact probability of every row, for each cell, from weights and support alone."""
    held, p = support(design), Fraction(responder.keep, WORD_VALUES)
    weights = [weight for weight in design.weights for _ in range(design.turns)]
    result = []
    for cell in range(design.width):
        holding = sum(weight for weight, row in zip(weights, held, strict=True) if row[cell])
        share = {True: p / holding, False: (1 - p) / (sum(weights) - holding)}
        result.append([weight * share[bool(row[cell])] for weight, row in zip(weights, held, strict=True)])
    return result


def logarithm(ratio: Fraction) -> Decimal:
    with localcontext() as context:
        context.prec = 80
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


# The law and its loss


def test_the_stated_loss_is_the_worst_over_all_rows_and_cells(subtests: pytest.Subtests) -> None:
    for name, design in FOUND.items():
        for epsilon in (0.01, 0.5, 1.0, 4.0):
            with subtests.test(design=name, epsilon=epsilon):
                responder = WeightedDesign.of_design(epsilon, design)
                columns = list(zip(*law(responder, design), strict=True))
                worst = logarithm(max(max(column) / min(column) for column in columns))
                assert worst <= Decimal(responder.epsilon)
                assert Decimal(math.nextafter(responder.epsilon, 0.0)) < worst
                assert responder.epsilon <= epsilon
                assert (
                    WeightedDesign(design.width, design.size, responder.keep + 1, design.digest).epsilon
                    >= epsilon - 1e-15
                )
                assert responder.epsilon == pytest.approx(epsilon, rel=1e-12)


@given(share=st.floats(1e-12, 0.999))
@settings(max_examples=40, deadline=None)
def test_the_loss_of_any_threshold_is_the_worst_over_all_rows_and_cells(share: float) -> None:
    for design in (FOUND["no cell turns"], FOUND["one cell stays"]):
        least = design.size * WORD_VALUES // design.width + 2**20
        responder = WeightedDesign(design.width, design.size, least + int(share * (WORD_VALUES - least)), design.digest)
        columns = list(zip(*law(responder, design), strict=True))
        worst = logarithm(max(max(column) / min(column) for column in columns))
        assert Decimal(math.nextafter(responder.epsilon, 0.0)) < worst <= Decimal(responder.epsilon)


def test_own_cell_is_supported_with_p_and_others_with_q(subtests: pytest.Subtests) -> None:
    for name, design in FOUND.items():
        with subtests.test(design=name):
            responder = WeightedDesign.of_design(1.0, design)
            held = support(design)
            p = Fraction(responder.keep, WORD_VALUES)
            q = (design.size - p) / (design.width - 1)
            assert float(q) == pytest.approx(responder.q, rel=1e-15)
            for cell, exact in enumerate(law(responder, design)):
                given_cell = [
                    sum(x for x, row in zip(exact, held, strict=True) if row[other]) for other in range(design.width)
                ]
                assert given_cell[cell] == p
                others = np.array([float(abs(x - q)) for x in np.delete(np.array(given_cell, dtype=object), cell)])
                assert others.max() <= 5.0 * design.imbalance * responder.p


def test_an_imbalance_moves_q_by_no_more_than_stated(known: dict[str, Design]) -> None:
    design = FOUND["no cell turns"]
    worse = replace(design, weights=tuple(w + (w >> 32) * (n % 3) for n, w in enumerate(design.weights)))
    assert 1e-11 < worse.imbalance < 1e-9
    known[worse.name] = worse
    responder, held = WeightedDesign.of_design(1.0, worse), support(worse)
    p = Fraction(responder.keep, WORD_VALUES)
    q = (worse.size - p) / (worse.width - 1)
    moved = max(
        abs(sum(x for x, row in zip(exact, held, strict=True) if row[other]) - q)
        for cell, exact in enumerate(law(responder, worse))
        for other in range(worse.width)
        if other != cell
    )
    assert 0.1 * worse.imbalance * responder.p < moved <= 5.0 * worse.imbalance * responder.p


# The sampler


def test_the_sampler_follows_the_law_and_another_is_rejected(subtests: pytest.Subtests) -> None:
    # Chi-square at FAILURE for all designs and cells; so many draws that the law of 1.3 epsilon would pass with
    # probability FAILURE.
    for name, design in FOUND.items():
        for place in ("first", "middle", "last"):
            with subtests.test(design=name, place=place):
                cell = {"first": 0, "middle": design.width // 2, "last": design.width - 1}[place]
                responder, other = (WeightedDesign.of_design(epsilon, design) for epsilon in (1.0, 1.3))
                exact, off = (np.array([float(x) for x in law(one, design)[cell]]) for one in (responder, other))
                draws = draws_to_tell_apart(exact, off)
                sent = np.zeros(draws, dtype=report_dtype(responder.fields))
                responder.respond(sent, np.full(draws, cell, np.uint64), SystemWords())
                counts = np.bincount(sent["block"], minlength=len(exact))
                assert chi_square_p(counts, exact) >= FAILURE / (3 * len(FOUND))
                assert chi_square_p(counts, off) < FAILURE


def test_rows_of_equal_weight_are_rejected_where_weights_differ(subtests: pytest.Subtests) -> None:
    # Chi-square at FAILURE for both, so many draws that equal weights would pass with probability FAILURE.
    for name in ("one cell stays", "no cell turns"):
        with subtests.test(name=name):
            design, cell = FOUND[name], 2
            assert len(set(design.weights)) > 1
            responder = WeightedDesign.of_design(1.0, design)
            exact = np.array([float(x) for x in law(responder, design)[cell]])
            held = support(design)[:, cell]
            equal = np.where(held, responder.p / held.sum(), (1.0 - responder.p) / (~held).sum())
            draws = draws_to_tell_apart(exact, equal)
            sent = np.zeros(draws, dtype=report_dtype(responder.fields))
            responder.respond(sent, np.full(draws, cell, np.uint64), SystemWords())
            counts = np.bincount(sent["block"], minlength=len(exact))
            assert chi_square_p(counts, exact) >= FAILURE / 2
            assert chi_square_p(counts, equal) < FAILURE


def test_clients_of_different_cells_each_follow_their_own_law() -> None:
    # One call for all cells, mixed: 10 chi-squares, each at FAILURE / 10.
    design = FOUND["one cell stays"]
    responder = WeightedDesign.of_design(1.0, design)
    laws = np.array([[float(x) for x in exact] for exact in law(responder, design)])
    draws = math.ceil(30.0 / laws.min())
    cells = np.random.default_rng(3).permutation(np.repeat(np.arange(design.width), draws)).astype(np.uint64)
    sent = np.zeros(len(cells), dtype=report_dtype(responder.fields))
    responder.respond(sent, cells, SystemWords())
    for cell in range(design.width):
        counts = np.bincount(sent["block"][cells == cell], minlength=design.rows)
        assert chi_square_p(counts, laws[cell]) >= FAILURE / design.width
    mixed = np.bincount(sent["block"][cells == 1], minlength=design.rows)
    assert chi_square_p(mixed, laws[2]) < FAILURE


# The value


def test_a_hundred_items_cost_what_theorem_4_1_promises() -> None:
    (field,) = WeightedDesign.of_design(1.0, sources.find_design(100, 27)).fields
    assert field.values == 4950 <= 100 * 99 // 2 + 1


def test_a_design_that_is_not_here_raises_at_once() -> None:
    with pytest.raises(UsageError, match=f"design 10-4-{'0' * 64} "):
        WeightedDesign(10, 4, WORD_VALUES // 2, "0" * 64)
    with pytest.raises(ValueError, match=r"p is 0\.25,.* 0\.4"):
        WeightedDesign(10, 4, WORD_VALUES // 4, FOUND["one cell stays"].digest)
