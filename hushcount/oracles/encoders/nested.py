"""Nested: a pool's cell is the item of a second, fresh function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hushcount.arrays import Counts, Reports, UInt64Array
from hushcount.oracles.decoding import DecodeCost, cells_cost
from hushcount.oracles.encoders.hadamard import Hadamard, walsh_hadamard
from hushcount.oracles.encoders.pool import CellPairs, Pool, Pooled
from hushcount.oracles.responders.base import Responder
from hushcount.wire.fields import Number

_CHUNK_CELLS = 1 << 20


@dataclass(frozen=True)
class Nested(Pooled):
    """`h(x) = sign(h_j(x))`: a function of the pool, then a column of a Hadamard matrix over the pool's cells.

    Two items share a sign with probability 1 if they share the pool's cell, else 1/2. Only the pool's functions are
    fixed for the campaign; the column is fresh for every report.

    Args:
        outer: the pool.
        inner: one block over the pool's cells.

    Reference: Apple's private Hadamard count mean sketch; [P25] section 4.5.
    """

    outer: Pool
    inner: Hadamard

    def __post_init__(self) -> None:
        if self.inner.domain != self.outer.cells or self.inner.blocks != 1:
            raise ValueError(f"inner has {self.inner.domain} items, must be the pool's {self.outer.cells} in one block")

    @property
    def cells(self) -> int:
        return self.inner.cells

    @property
    def rows(self) -> int:
        return self.outer.rows

    @property
    def pool(self) -> Pool:
        return self.outer

    @property
    def pool_cells(self) -> int:
        return self.outer.cells

    @property
    def fields(self) -> tuple[Number, ...]:
        return (*self.outer.fields, *self.inner.fields)

    @property
    def collision(self) -> Fraction:
        return self.outer.collision + (1 - self.outer.collision) * self.inner.collision

    @property
    def least_collision(self) -> Fraction:
        return self.inner.collision

    def tally_shape(self, items: UInt64Array) -> tuple[int, int]:
        return self.outer.rows, self.inner.order * self.cells

    def cell(self, reports: Reports, items: UInt64Array) -> UInt64Array:
        return self.inner.cell(reports, self.outer.cell(reports, items))

    def accumulate(self, tally: Counts, responder: Responder, reports: Reports, items: UInt64Array) -> None:
        order = np.int64(self.inner.order)
        rows = reports["row"].astype(np.int64) * order + reports["column"]
        responder.count_cells(tally.reshape(-1, self.cells), reports, rows)

    def reach(self, cells: int) -> Fraction:
        return self.inner.reach(cells)

    def decode_cost(self, responder: Responder, reports: int, items: int) -> DecodeCost:
        steps = self.outer.rows * self.inner.order * math.log2(max(2, self.inner.order))
        hashes = float(items * self.outer.rows)
        return cells_cost(responder.count_cost(reports), items, steps, hashes)

    def scores(self, tally: Counts, items: UInt64Array, wanted: UInt64Array) -> Counts:
        return self.outer.sum_of_cells(self.cell_scores(tally), wanted)

    def cell_scores(self, tally: Counts) -> Counts:
        """Reports of a row support or oppose each cell, so supports are (signed score + reports of the row) / 2."""
        signed = self._signed(tally)[:, : self.outer.cells]
        scores: Counts = (signed + tally.sum(axis=1, keepdims=True)) // 2
        return scores

    def cell_pairs(self, responder: Responder) -> CellPairs:
        """Two rows of the matrix agree in sign half of the time, independently of a third row."""
        return CellPairs(responder.p, 0.5 * (responder.p + responder.q))

    def cells_of(self, item: int) -> UInt64Array:
        return self.outer.cells_of(item)

    def cell_squares(self, tally: Counts, reports: int, responder: Responder) -> float:
        """Each report adds 1 or -1 to a signed count, so its mean is `(p-q) N` and its variance `n_j - (p-q)^2 N`."""
        gain = (responder.p - responder.q) ** 2
        step, squares = max(1, _CHUNK_CELLS // self.inner.order), 0.0
        for start in range(0, len(tally), step):
            signed = self._signed(tally[start : start + step])[:, : self.outer.cells]
            squares += float((signed.astype(np.float64) ** 2).sum())
        return (squares - reports * (self.outer.cells - gain)) / gain

    def _signed(self, tally: Counts) -> Counts:
        """Return int64[rows, K]: the reports that support minus those that oppose each row and cell."""
        pairs = tally.reshape(len(tally), self.inner.order, 2)
        result = np.zeros((len(tally), self.inner.order), dtype=np.int64)
        step = max(1, _CHUNK_CELLS // self.inner.order)
        for start in range(0, len(tally), step):
            part = pairs[start : start + step]
            # Rows of a large pool that no report names need no transform.
            used = np.flatnonzero(part.any(axis=(1, 2)))
            result[start + used] = walsh_hadamard(part[used, :, 0] - part[used, :, 1])
        return result
