"""The sum of a random cell of each row: its law against enumeration, and detection that no pool makes too bold."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from hushcount.oracles import random_cells
from hushcount.oracles.random_cells import CellSum, cell_sum


def enumerated(matrix: np.ndarray) -> np.ndarray:
    """Return every sum of a cell of each row, all equally likely."""
    return np.array([sum(cells) for cells in product(*matrix.tolist())])


def convolved(matrix: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the law over 0, 1, ... from the least sum on, and that sum: rows added one by one."""
    law = np.ones(1)
    for row in matrix:
        law = np.convolve(law, np.bincount(row - row.min()) / len(row))
    return law, int(matrix.min(axis=1).sum())


MATRICES = {
    "two rows": np.array([[3, 5, 9], [0, 0, 7]]),
    "one row": np.array([[4, 4, 4, 90]]),
    "equal": np.full((3, 4), 6),
    "negative": np.array([[-4, 3, 1], [2, -9, 2], [0, 1, 1]]),
    "six rows": np.random.default_rng(1).poisson(9, (6, 5)),
}


def test_the_law_is_that_of_all_choices_of_cells(subtests: pytest.Subtests) -> None:
    for name, matrix in MATRICES.items():
        with subtests.test(name=name):
            sums, law = enumerated(matrix), cell_sum(matrix)
            assert law.mean == pytest.approx(sums.mean(), abs=1e-9)
            assert law.variance == pytest.approx(sums.var(), abs=1e-9)
            asked = np.arange(sums.min() - 2, sums.max() + 3)
            exact = (sums[None, :] >= asked[:, None]).mean(axis=1)
            found = law.at_least(asked)
            assert found == pytest.approx(exact, abs=1e-12)
            assert np.all(found >= exact - 1e-15)
            # A detection at a level is falsely made with that probability at most: at every level that there is.
            p_values = law.at_least(sums)
            for level in np.unique(p_values):
                assert (p_values <= level).mean() <= level
            for tail in (0.5, 0.2, 0.05, 0.001):
                below, above = law.deviations(tail)
                assert (sums - law.mean >= above + 1e-9).mean() <= tail
                assert (law.mean - sums >= below + 1e-9).mean() <= tail


def heavy(rows: int, cells: int, noise: float, weight: int) -> np.ndarray:
    """Return a tally with one cell of each row far above the others."""
    random = np.random.default_rng(7)
    matrix = random.poisson(noise, (rows, cells))
    matrix[np.arange(rows), random.integers(0, cells, rows)] += weight
    return matrix


def test_counts_that_are_rounded_to_a_grid_keep_mean_and_tails(subtests: pytest.Subtests) -> None:
    for rows, cells, noise, weight in ((48, 32, 3000.0, 200), (48, 16, 30_000.0, 0)):
        with subtests.test(rows=rows, cells=cells):
            matrix = heavy(rows, cells, noise, weight)
            law, (exact, least) = cell_sum(matrix), convolved(matrix)
            assert law.step > 1
            sums = least + np.arange(len(exact))
            assert law.mean == pytest.approx((exact * sums).sum(), rel=1e-9)
            tails = np.cumsum(exact[::-1])[::-1]
            for tail in (0.1, 1e-3, 1e-6):
                at = sums[int(np.searchsorted(-tails, -tail))]
                assert law.at_least(np.array([at]))[0] == pytest.approx(tail, rel=0.2)
                assert law.at_least(np.array([at + 0.3 * law.variance**0.5]))[0] < 0.8 * tail


def test_a_window_holds_the_sums_that_there_can_be() -> None:
    """Thousands of rows: the grid is far shorter than the range, and no sum comes round its end.

    Fails with probability below 1e-6: 3,000 of 100,000 draws are 0.15 of themselves off by eight deviations.
    """
    matrix = np.random.default_rng(3).poisson(4.0, (1000, 16))
    law = cell_sum(matrix)
    assert len(law.tail) < int((matrix.max(axis=1) - matrix.min(axis=1)).sum())
    sums = np.zeros(100_000, dtype=np.int64)
    for number, row in enumerate(matrix):
        sums += row[np.random.default_rng(number).integers(0, 16, len(sums))]
    for tail in (0.3, 0.03):
        _, above = law.deviations(tail)
        assert (sums - law.mean >= above).mean() == pytest.approx(tail, rel=0.15)


def test_a_row_is_left_without_the_cell_that_is_named() -> None:
    matrix = np.array([[1, 2, 30], [4, 50, 6]])
    without = cell_sum(matrix, np.array([2, 1], dtype=np.uint64))
    rest = cell_sum(np.array([[1, 2], [4, 6]]))
    assert isinstance(without, CellSum)
    assert (without.mean, without.variance) == (rest.mean, rest.variance)
    assert np.array_equal(without.tail, rest.tail)


@pytest.mark.parametrize("stuffed", [1, 7])
def test_cells_that_a_forger_filled_cost_little_and_keep_the_law(stuffed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One high cell made every row as wide: 20,000 forged reports kept a sketch of 1024 x 1024 for five minutes."""
    honest = np.random.default_rng(5).poisson(3.0, (64, 128))
    matrix = honest.copy()
    matrix[:stuffed, 0] += 5_000
    work = 0
    row_laws = random_cells._row_laws

    def counted(offsets: np.ndarray, step: int, width: int) -> np.ndarray:
        nonlocal work
        laws = row_laws(offsets, step, width)
        work += laws.size
        return laws

    monkeypatch.setattr(random_cells, "_row_laws", counted)
    law, (exact, least) = cell_sum(matrix), convolved(matrix)
    # Without the forger it is 2,000; every row as wide as the widest made it 200,000 and more.
    assert work <= 60_000
    # Rounding to the grid spreads the noise around each multiple of the high cell, and moves none to another.
    spread = int(2.0 * law.step * len(matrix) ** 0.5)
    tails = np.concatenate([np.ones(spread), np.cumsum(exact[::-1])[::-1], np.zeros(spread)])
    asked = np.arange(0, len(exact), 25)
    found = law.at_least(asked + least)
    assert np.all(found <= tails[asked] + 1e-4)
    assert np.all(found >= tails[asked + 2 * spread] - 1e-4)
