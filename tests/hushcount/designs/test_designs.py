"""Balanced designs: every one that is constructed or shipped has its pairs covered alike, in few rows."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hushcount.designs import sources
from hushcount.designs.balanced import Design, constructed_design
from hushcount.errors import UsageError
from hushcount.maths.objectives import Objective, best_size
from hushcount.maths.primes import is_prime
from hushcount.maths.probability import spending_probability
from hushcount.maths.variance import supporting

WIDTHS = (10, 16, 20, 21, 32, 33, 50, 51, 64, 65, 100)
"""Of shipped designs."""
SHIPPED = json.loads((Path(sources.__file__).parent / "designs.json").read_text(encoding="ascii"))["designs"]


def rows_of(design: Design) -> np.ndarray[Any, Any]:
    """Return float64[rows, width]: every row, written out by the rule of the docstring."""
    blocks, turns = np.array(design.blocks)[:, None, :], np.arange(design.turns)[None, :, None]
    cells = np.where(blocks < design.turns, (blocks + turns) % design.turns, blocks)
    rows = np.zeros((design.rows, design.width))
    np.put_along_axis(rows, cells.reshape(design.rows, -1), 1.0, axis=1)
    return rows


def pair_weights(design: Design, rows: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
    """Return int64[width, width]: the weight of the rows that hold both cells, exact: halves of words fit a float."""
    rows = rows_of(design) if rows is None else rows
    weights = np.repeat(np.array(design.weights), design.turns)
    low, high = (rows.T @ (half[:, None] * rows) for half in (weights % (1 << 25), weights >> 25))
    return high.astype(np.int64) * (1 << 25) + low.astype(np.int64)


def deviation(design: Design, weights: np.ndarray[Any, Any] | None = None) -> Fraction:
    """Return the largest relative deviation of a cell's or a pair's weight, exact."""
    weights = pair_weights(design) if weights is None else weights
    m, s = design.width, design.size
    pairs = {int(weight) for weight in weights[np.triu_indices(m, 1)]}
    cells = {int(weight) for weight in weights.diagonal()}
    due = {1: cells, s - 1: pairs} if s > 1 else {1: cells}
    total = Fraction(design.total * s, m)
    return max(
        abs(weight / (total * share / (1 if found is cells else m - 1)) - 1)
        for share, found in due.items()
        for weight in found
    )


# Balance and rows


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.long(but=("10", "64"))
def test_a_shipped_design_covers_every_pair_alike(width: int, subtests: pytest.Subtests) -> None:
    shipped = [part for part in SHIPPED if part["width"] == width]
    assert len(shipped) > 1
    for part in shipped:
        design = sources.find_design(width, part["size"])
        with subtests.test(design=design.name):
            assert design.digest == part["digest"]
            assert design.size > 2
            rows = rows_of(design)
            weights = pair_weights(design, rows)
            found = deviation(design, weights)
            assert found <= Fraction(1, 10**12)
            assert design.imbalance == pytest.approx(float(found), rel=1e-9)
            assert set(weights.diagonal().tolist()) == set(design.cell_weights) == {design.total * design.size // width}
            assert np.array_equal(rows.sum(axis=1), np.full(design.rows, design.size))
            assert design.rows <= width * (width - 1) // 2 + 1
            assert len(set(map(bytes, rows.astype(np.uint8)))) == design.rows


def test_the_shipped_designs_are_those_of_common_budgets() -> None:
    for size in (27, 12, 5, 2, 1):
        assert sources.find_design(100, size).size == size
        assert sources.find_design(101, size).imbalance == 0.0
    for width in WIDTHS:
        for epsilon in (0.5, 1.0, 2.0, 3.0, 4.0):
            assert best_size(epsilon, width, width, Objective()) in sources.known_sizes(width)


@given(width=st.integers(2, 40), data=st.data())
@pytest.mark.long
def test_a_constructed_design_is_exact(width: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, width - 1))
    design = constructed_design(width, size)
    assert (design is not None) == (size in (1, 2, width - 1) or is_prime(width))
    assume(design is not None)
    assert design is not None
    assert deviation(design) == 0
    assert design.imbalance == 0.0
    assert design.odds == Fraction(width - size, size)
    assert design.rows <= width * (width - 1) // 2 + 1


def test_imbalance_is_the_exact_deviation_of_any_weights() -> None:
    for turns, width in ((1, 9), (8, 9), (9, 9)):
        generator = np.random.default_rng(turns)
        blocks = tuple(tuple(sorted(generator.permutation(width)[:4].tolist())) for _ in range(30))
        design = Design(width, 4, turns, blocks, tuple(generator.integers(1, 9, 30).tolist()))
        assert design.imbalance == pytest.approx(float(deviation(design)), rel=1e-15)
        assert design.imbalance > 1e-9


def test_odds_are_those_of_the_two_lightest_cells() -> None:
    design = Design(4, 2, 1, ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)), (1, 2, 3, 4, 5, 6))
    weights, total = design.cell_weights, design.total
    assert weights == (6, 10, 12, 14)
    assert design.odds == max(Fraction(total - other, own) for own in weights for other in weights if own is not other)


def test_what_is_no_design_raises(subtests: pytest.Subtests) -> None:
    cases = [
        ({"width": 1025}, r"width is 1025,.*2\.\.1024"),
        ({"size": 4}, r"size is 4,.*1\.\.3"),
        ({"turns": 2}, "turns is 2,.*1, 3 or 4"),
        ({"weights": (1,)}, "2 blocks and 1 weights"),
        ({"blocks": (), "weights": ()}, "0 blocks"),
        ({"weights": (1, 0)}, r"at least 1 .* below 2\*\*62"),
        ({"weights": (1 << 60, 1 << 60)}, r"at least 1 .* below 2\*\*62"),
        ({"blocks": ((0, 1), (1, 1))}, r"block 1 .*\b2\b.* 0\.\.3"),
        ({"blocks": ((0, 1), (1, 4))}, r"block 1 .*\b2\b.* 0\.\.3"),
        ({"blocks": ((0, 1), (0, 1, 2))}, r"block 1 .*\b2\b.* 0\.\.3"),
    ]
    for change, wrong in cases:
        with subtests.test(change=change, wrong=wrong), pytest.raises(UsageError, match=wrong):
            replace(Design(4, 2, 4, ((0, 1), (0, 2)), (2, 1)), **change)


def test_constructed_and_shipped_designs_are_loaded_by_name() -> None:
    for width, size in [(101, 27), (100, 27), (100, 2), (64, 17)]:
        design = sources.find_design(width, size)
        assert sources.load_design(design.name) == design


# Finding


def test_an_absent_design_says_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"width 90 and size 24 .*mechanism ais"):
        sources.find_design(90, 24)
    name = f"90-24-{'0' * 64}"
    with pytest.raises(UsageError, match=f"design {name} .*update"):
        sources.load_design(name)
    for wrong in ("90-24", f"90-24-{'0' * 63}", f"../90-24-{'0' * 64}", ""):
        with pytest.raises(UsageError, match="width-size-digest"):
            sources.load_design(wrong)
    with pytest.raises(UsageError, match=r"size is 90,.*1\.\.89"):
        sources.find_design(90, 90)


def extension_loss(domain: int, width: int, size: int, epsilon: float) -> float:
    """Return by what factor the loss exceeds that of the best subset size for the dictionary as it is.

    Reference: [P26] Corollary 5.2 bounds it for OCMS; here it is the exact variance of the two.
    """

    def loss(width: int, size: int) -> float:
        p = spending_probability(epsilon, width, size)
        return float(Objective().loss(supporting(p, (size - p) / (width - 1)), domain))

    return loss(width, size) / min(loss(domain, chosen) for chosen in range(1, domain))


def test_a_dictionary_is_extended_to_the_nearest_design() -> None:
    def shape(domain: int, epsilon: float, size: int | None = None) -> tuple[int, int]:
        design = sources.nearest_design(domain, epsilon, size=size)
        return design.width, design.size

    assert shape(100, 1.0) == (100, 27)
    assert shape(98, 1.0) == (100, 27)
    assert shape(90, 1.0) == (97, 26)
    assert shape(100, 1.0, 30) == (101, 30)
    assert extension_loss(100, 100, 27, 1.0) == 1.0
    assert extension_loss(98, 100, 27, 1.0) == pytest.approx(1.00045, abs=1e-5)
    assert extension_loss(100, 101, 27, 1.0) == pytest.approx(1.00027, abs=1e-5)
    assert shape(1021, 1.0)[0] == 1021


def test_what_has_no_design_at_hand_raises() -> None:
    with pytest.raises(UsageError, match=r"domain is 1022,.*2\.\.1021 .*mechanism ais"):
        sources.nearest_design(1022, 1.0)
    with pytest.raises(UsageError, match=r"domain is 1, "):
        sources.nearest_design(1, 1.0)
    with pytest.raises(UsageError, match=r"size is 101,.*1\.\.100"):
        sources.nearest_design(100, 1.0, size=101)
