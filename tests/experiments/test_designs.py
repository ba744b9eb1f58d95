"""Designs that are searched have their pairs covered alike, in few rows, and files of them are as the package reads."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments import designs
from experiments.designs import file_text, search_design
from hushcount.designs import sources
from hushcount.errors import HushcountError
from tests.hushcount.designs.test_designs import deviation, pair_weights


def test_a_search_finds_a_design_within_the_row_bound(subtests: pytest.Subtests) -> None:
    for width, size in ((4, 2), (6, 3), (8, 3), (9, 4), (12, 3), (12, 7), (15, 5), (16, 4)):
        with subtests.test(width=width, size=size):
            design = search_design(width, size)
            assert deviation(design) <= Fraction(1, 10**12)
            assert design.imbalance == pytest.approx(float(deviation(design)), rel=1e-9, abs=1e-18)
            assert design.rows <= width * (width - 1) // 2 + 1


@settings(max_examples=30, deadline=None)
@given(width=st.integers(3, 40), seed=st.integers(0, 1000), data=st.data())
def test_a_cyclic_search_covers_every_cell_exactly_alike(width: int, seed: int, data: st.DataObject) -> None:
    design = search_design(width, data.draw(st.integers(1, width - 1)), seed=seed)
    assert len(set(pair_weights(design).diagonal().tolist())) == 1
    assert deviation(design) <= Fraction(1, 10**12)
    assert design.rows <= width * (width - 1) // 2 + 1


def test_the_same_seed_finds_the_same_design_and_another_another() -> None:
    assert search_design(12, 4, seed=3) == search_design(12, 4, seed=3)
    assert search_design(12, 4, seed=3).digest != search_design(12, 4, seed=4).digest


def test_a_search_that_finds_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    # No sample has a block with the cell that stays, so that its pairs are in none.
    monkeypatch.setattr(designs, "_uniform_blocks", lambda width, size, count, _: np.tile(np.arange(size), (count, 1)))
    with pytest.raises(HushcountError, match=r"width 8 and size 3 in 8 attempts with seed 0"):
        search_design(8, 3)


def test_the_shipped_file_is_one_of_designs() -> None:
    raw = (Path(sources.__file__).parent / "designs.json").read_text(encoding="ascii")
    shapes = [(part["width"], part["size"]) for part in json.loads(raw)["designs"]]
    assert file_text([sources.find_design(*shape) for shape in shapes]) == raw
