"""Pairwise balanced weighted designs: rows of s cells in which all pairs of cells have the same total weight."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcount.arrays import IntArray
from hushcount.errors import UsageError
from hushcount.maths.primes import is_prime

LARGEST_WIDTH = 1024
"""Most cells of a design. The tables of a design grow with the square of the number of cells, and the mechanism `ais`,
which needs no design, can be used for more cells.
"""
_LARGEST_TOTAL = 1 << 62


@dataclass(frozen=True)
class Design:
    """Weighted rows, each with `size` of the `width` cells; the rows are stored as base blocks that are turned.

    Row `b * turns + u` is block b with every cell `c < turns` moved to `(c + u) mod turns`; cells `c >= turns` are not
    moved. All rows that are turns of one block have the block's weight. With one turn, the rows are the blocks
    themselves.

    Args:
        width: m, the number of cells, 2..1024.
        size: s, the number of cells in a row, 1..m-1.
        turns: the number of turns of each block: 1, m-1 (the last cell is not moved) or m.
        blocks: for each block, its `size` cells in ascending order.
        weights: the weight of each block, at least 1; the sum over all rows is below 2**62.

    Raises:
        UsageError: an argument is out of its range. Whether the design is balanced is not checked here, but by
            `imbalance`.

    Reference: [P26] section 5.3 and Appendix C, which call a row a response, and the row's weight its base probability.
    """

    width: int
    size: int
    turns: int
    blocks: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        require_shape(self.width, self.size)
        if self.turns not in (1, self.width - 1, self.width):
            raise UsageError(
                f"turns is {self.turns}, must be 1, {self.width - 1} or {self.width} for {self.width} cells"
            )
        if not self.blocks or len(self.blocks) != len(self.weights):
            raise UsageError(f"the design has {len(self.blocks)} blocks and {len(self.weights)} weights, must be equal")
        if min(self.weights) < 1 or self.total >= _LARGEST_TOTAL:
            raise UsageError("the weights of a design must be at least 1 and those of all rows below 2**62 together")
        for number, block in enumerate(self.blocks):
            rising = all(low < high for low, high in pairwise(block))
            if not (len(block) == self.size and rising and block[0] >= 0 and block[-1] < self.width):
                raise UsageError(f"block {number} must be {self.size} ascending cells in 0..{self.width - 1}")

    @property
    def rows(self) -> int:
        """The number of rows; a report names one row."""
        return len(self.blocks) * self.turns

    @property
    def total(self) -> int:
        """The sum of the weights of all rows."""
        return self.turns * sum(self.weights)

    @cached_property
    def digest(self) -> str:
        """BLAKE2b-256 of the rows, their order and their weights; this hash identifies the design."""
        parts = [self.width, self.size, self.turns, self.blocks, self.weights]
        canonical = json.dumps(parts, separators=(",", ":"))
        return hashlib.blake2b(canonical.encode(), digest_size=32, person=b"hushcount design").hexdigest()

    @property
    def name(self) -> str:
        """Width, size and digest, as in `100-27-...`: the name by which a campaign names and loads the design."""
        return f"{self.width}-{self.size}-{self.digest}"

    @cached_property
    def cells(self) -> IntArray:
        """int64[blocks, size]: the blocks."""
        return np.array(self.blocks, dtype=np.int64)

    @cached_property
    def members(self) -> npt.NDArray[np.bool_]:
        """bool[blocks, width]: whether each block holds each cell."""
        result = np.zeros((len(self.blocks), self.width), dtype=np.bool_)
        np.put_along_axis(result, self.cells, True, axis=1)
        return result

    @cached_property
    def cell_weights(self) -> tuple[int, ...]:
        """R: for each cell, the total weight of the rows that hold this cell."""
        weights = np.array(self.weights, dtype=np.int64)
        moved = int(weights @ self.members[:, : self.turns].sum(axis=1))
        staying = self.turns * (weights @ self.members[:, self.turns :])
        return (*[moved] * self.turns, *(int(weight) for weight in staying))

    @property
    def odds(self) -> Fraction:
        """The greatest `(T - R_x') / R_x` of two cells x, x', T the weight of all rows; `(m-s)/s` if all R are equal.

        A row of weight w that holds x and not x' has probability `p w / R_x` given x and `(1-p) w / (T - R_x')` given
        x'. A balanced design has such a row for every two cells x and x'. Therefore the local privacy loss is the
        logarithm of `odds p / (1-p)`. The greatest ratio occurs for the two cells x and x' with the smallest R.
        """
        low, second = sorted(self.cell_weights)[:2]
        return max(Fraction(self.total - second, low), Fraction(self.total - low, second))

    @cached_property
    def imbalance(self) -> float:
        """The largest relative deviation of a cell's or a pair's weight from its balanced weight; 0: exact balance.

        Reference: [P26] Appendix C: the balanced weight is `T s(s-1) / (m(m-1))` for every pair of cells, which implies
            the weight `T s / m` for every cell.
        """
        cell = Fraction(self.total * self.size, self.width)
        worst = max(abs(weight - cell) / cell for weight in set(self.cell_weights))
        if self.size == 1:
            return float(worst)
        pair = cell * (self.size - 1) / (self.width - 1)
        for one in (0, *range(self.turns, self.width)):
            weights = np.delete(self._weights_beside(one), one)
            worst = max(worst, *(abs(int(weight) - pair) / pair for weight in (weights.min(), weights.max())))
        return float(worst)

    def _weights_beside(self, cell: int) -> npt.NDArray[np.int64]:
        """Return int64[width]: the weight of the rows with `cell` and each other cell; cell 0 is any moved cell."""
        turns, pairs = self.turns, np.zeros(self.width, dtype=np.int64)
        if cell >= turns:
            holding = self.members[self.members[:, cell]]
            weights = np.array(self.weights, dtype=np.int64)[self.members[:, cell]]
            pairs = turns * (weights @ holding)
            pairs[:turns] = int(weights @ holding[:, :turns].sum(axis=1))
            return np.asarray(pairs, dtype=np.int64)
        for block, weight in zip(self.cells, self.weights, strict=True):
            moved, staying = block[block < turns], block[block >= turns]
            steps = (moved[:, None] - moved[None, :]) % turns
            pairs[:turns] += np.bincount(steps.reshape(-1), minlength=turns) * weight
            pairs[staying] += len(moved) * weight
        return pairs


def require_shape(width: int, size: int) -> None:
    """Raise UsageError unless a design can have `width` cells, and `size` of them in a row."""
    if not 2 <= width <= LARGEST_WIDTH:
        raise UsageError(f"width is {width}, must be in 2..{LARGEST_WIDTH} cells for a design")
    if not 1 <= size < width:
        raise UsageError(f"size is {size}, must be in 1..{width - 1} for {width} cells")


def constructed_design(width: int, size: int) -> Design | None:
    """Return an exactly balanced design that needs no search; None if no such design is known for this shape.

    The rows are single cells, all cells except one, all pairs, or for a prime width the windows
    `{x : a x - w mod m < s}` for a in 1..(m-1)/2, since a and -a have the same windows. All rows have the same weight,
    and there are at most `m(m-1)/2` rows.

    Reference: docs/mathematics.md section 4; [P26] Theorem 4.1.
    """
    require_shape(width, size)
    if size in (1, width - 1):
        return _equal(width, size, width, [range(size)])
    if size == 2:
        turns = turns_of(width)
        pairs = [(0, step) for step in range(1, (turns + 1) // 2)]
        return _equal(width, size, turns, pairs if turns == width else [*pairs, (0, turns)])
    if is_prime(width):
        inverses = (pow(factor, -1, width) for factor in range(1, (width + 1) // 2))
        return _equal(width, size, width, [[inverse * place % width for place in range(size)] for inverse in inverses])
    return None


def turns_of(width: int) -> int:
    """Return over how many cells it is best to turn blocks: an odd number, so that all turns of a pair are different.

    The `turns (turns-1)/2` pairs of moved cells, and for even m the `turns` pairs with the cell that is not moved, form
    `floor(m/2)` orbits. With `floor(m/2)` blocks, the rows can balance all pairs, so that for odd and for even m at
    most `m(m-1)/2` rows are needed.
    """
    return width if width % 2 else width - 1


def _equal(width: int, size: int, turns: int, blocks: Any) -> Design:
    ordered = tuple(tuple(sorted(block)) for block in blocks)
    return Design(width, size, turns, ordered, (1,) * len(ordered))
