"""Pool: k hash functions fixed for the campaign; a report names its function, its row. Collisions are a bias."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Protocol

import numpy as np
from nacl.bindings import randombytes_buf_deterministic

from hushcount.arrays import Counts, FloatArray, Reports, UInt64Array
from hushcount.maths import field61
from hushcount.maths.group_spreads import of_groups
from hushcount.maths.variance import Numbers, SupportLaw, supporting
from hushcount.oracles.decoding import DecodeCost, cells_cost
from hushcount.oracles.encoders.base import Encoder, Family, Grouped, Scored
from hushcount.oracles.estimates import Estimate, SharedCells
from hushcount.oracles.groups import Groups
from hushcount.oracles.random_cells import cell_sum
from hushcount.oracles.responders.base import Responder
from hushcount.oracles.tally import Tally
from hushcount.threads import available_threads
from hushcount.wire.fields import Number

MOST_FUNCTIONS = 1 << 18
"""Most functions of a pool; a client expands all functions of the pool from its seed, 24 bytes for each function."""
_CHUNK_HASHES = 1 << 20
_FREQUENT = 50
"""An item that causes more than 1/50 of the variance of the cells has a law of its own.

At most 50 items that clients hold can do that. Forged reports can make more items seem to cause so much variance; only
the 50 largest get a law of their own."""


@dataclass(frozen=True)
class CellPairs:
    """The law of one report's scores of the cells of its row.

    Attributes:
        own, other: the mean score of the client's own cell, and of another cell.
        own_covariance: the covariance of the scores of the own cell and another cell.
        covariance: the covariance of the scores of two other cells.
    """

    own: float
    other: float
    own_covariance: float = 0.0
    covariance: float = 0.0


class PoolEncoder(Encoder, Protocol):
    """An encoder of k fixed functions, its `rows`."""

    @property
    def rows(self) -> int: ...

    @property
    def pool(self) -> Pool:
        """The fixed functions. Results of one pool share the bias from collisions."""

    @property
    def pool_cells(self) -> int:
        """m, the number of cells over which the fixed functions spread the items."""

    def cell_scores(self, tally: Counts) -> Counts:
        """Return int64[k, m]: what each cell adds to the score of the items in the cell; `scores` sums it over rows."""

    def cells_of(self, item: int) -> UInt64Array:
        """Return uint64[k]: the item's cell under every function."""

    def cell_pairs(self, responder: Responder) -> CellPairs:
        """Return the joint law of the scores of two cells of a row, over the fresh randomness of a report."""

    def cell_squares(self, tally: Counts, reports: int, responder: Responder) -> float:
        """Estimate `sum over rows and cells of N^2`, unbiased; N is the number of the row's clients in the cell."""


class Pooled(Family):
    """The laws and estimates of a `PoolEncoder`."""

    domain = None

    @property
    def pooled(self: PoolEncoder) -> PoolEncoder:
        return self

    def law(self: PoolEncoder, p: Numbers, q: Numbers) -> SupportLaw:
        return supporting(p, q, float(self.collision), 1.0 / (self.rows * (self.pool_cells - 1)))

    def estimate(self: PoolEncoder, scored: Scored) -> Estimate:
        n, held, law, m = scored.tally.reports, scored.held, scored.law, self.pool_cells
        # Counts are whole, so the squared counts of other items add up to at least the number of their reports.
        others = np.maximum(sum_of_squares(self, scored.tally, scored.responder) - held**2, n - held)
        collisions = np.sqrt(np.multiply(law.clash, others))
        matrix, gain = self.cell_scores(scored.tally.counts), float(law.gain)
        cells = cell_sum(matrix)
        # `part` is the variance that an item's users add to the cells. In the item's own score they are no collision.
        part = law.clash * np.maximum(scored.count, 0.0) ** 2 * gain**2
        largest = np.argsort(-part, kind="stable")[:_FREQUENT]
        places = largest[part[largest] > cells.variance / _FREQUENT]
        frequent = {int(place): cell_sum(matrix, self.cells_of(int(scored.items[place]))) for place in places}
        own, widening = float(law.own), math.sqrt(m / (m - 1.0))
        return SharedCells(
            scored.count, scored.noise(), collisions, scored.scores, n, cells, frequent, gain, own, widening
        )

    def group_law(self: PoolEncoder, asked: Grouped) -> SupportLaw:
        """The noise of one report, on average over pools: x, the number of the group's items in a cell, is Bin(g, 1/m).

        T is `sum over cells of x * score`; the mean of T varies with the row that a client draws. The noise of a fixed
        pool differs from the average by about `sqrt(2/(mk))`. The law is derived here (docs/mathematics.md section 5);
        the tests simulate it.
        """
        cells, m, sizes = self.cell_pairs(asked.scored.responder), self.pool_cells, asked.groups.sizes
        spread, other_spread = cells.own * (1.0 - cells.own), cells.other * (1.0 - cells.other)
        others = sizes - 1.0

        def noise(own_square: FloatArray, own_other: FloatArray, free: FloatArray) -> FloatArray:
            """Return the noise of `free` items on random cells, from E[x^2] of the own cell and E[x x'] of two."""
            pairs = free * (free - 1.0) / m**2
            among = (m - 1.0) * ((free / m + pairs) * other_spread + (m - 2.0) * pairs * cells.covariance)
            rows = (cells.own - cells.other) ** 2 * (1.0 - 1.0 / self.rows) * free / m * (1.0 - 1.0 / m)
            return own_square * spread + among + 2.0 * (m - 1.0) * own_other * cells.own_covariance + rows

        shared = others * (others - 1.0) / m**2
        inside = noise(1.0 + 3.0 * others / m + shared, others / m + shared, others)
        pairs = sizes * others / m**2
        return of_groups(asked.scored.law, sizes, inside, noise(sizes / m + pairs, pairs, sizes))

    def group_collisions(self: PoolEncoder, asked: Grouped, held: bool = True) -> FloatArray:
        """A shared cell adds an outside item's count to the error, or both counts if both items are in the group.

        The mean square error is `clash (g (S - Q) + (g-2) Q + F^2)`. S is the sum of the squared counts of all items, Q
        the sum of the squared counts of the group's items, and F the count of the group. The terms for two pairs
        without a common item need four-wise independence, which the functions lack; so the formula errs by 4 % at most.
        """
        scored, sizes = asked.scored, asked.groups.sizes
        n, clash = scored.tally.reports, float(scored.law.clash)
        total = sum_of_squares(self, scored.tally, scored.responder)
        if not held:
            return clash * sizes * max(total, n)
        squared = asked.held**2
        errors = scored.noise() ** 2 + clash * max(total, n)
        mine = np.clip(asked.groups.sums(scored.count**2 - errors), squared / sizes, squared)
        return clash * np.maximum(sizes * (max(total, n) - mine) + (sizes - 2.0) * mine + squared, 0.0)

    def group_lean(self: PoolEncoder, asked: Grouped) -> FloatArray:
        """The moment of g independent random cells of a row is g times that of one cell, which the tally shows."""
        matrix, cubes = self.cell_scores(asked.scored.tally.counts), 0.0
        step = max(1, _CHUNK_HASHES // self.pool_cells)
        for start in range(0, len(matrix), step):
            rows = matrix[start : start + step]
            cubes += float(((rows - rows.mean(axis=1, keepdims=True)) ** 3).mean(axis=1).sum())
        return asked.groups.sizes * cubes / float(asked.scored.law.gain) ** 3


def sum_of_squares(encoder: PoolEncoder, tally: Tally, responder: Responder) -> float:
    """Estimate the sum over all items of their squared counts from a pool's tally alone, without a dictionary.

    On average over rows and functions, the squared counts of cells, N_jc^2, add up to
    `n(1 - 1/k) + S/k + (n^2 - S)/(mk)`, which is solved for S. The formula is derived here; the tests simulate it.
    """
    k, m, n = encoder.rows, encoder.pool_cells, tally.reports
    squares = encoder.cell_squares(tally.counts, n, responder)
    return (squares - n * (1.0 - 1.0 / k) - n * n / (m * k)) * k / (1.0 - 1.0 / m)


@dataclass(frozen=True)
class Pool(Pooled):
    """`h_j(x) = (c0_j + c1_j x + c2_j x^2 mod 2**61-1) mod m`, j = 0..k-1, over 61-bit fingerprints of strings.

    Polynomials of degree two are three-wise independent, which the collision term of the variance needs. A pool of
    affine functions would exceed that term by 10 % on average and 50 % for some items (docs/mathematics.md section 5).

    Args:
        rows: k, the number of functions, at least 1.
        cells: m, at least 2.
        seed: 64 hexadecimal digits from which every party expands the same coefficients. Public.

    Reference: [J] section 4.1; docs/mathematics.md section 5.
    """

    rows: int
    cells: int
    seed: str
    least_collision: ClassVar[Fraction] = Fraction(0)

    def __post_init__(self) -> None:
        if not 1 <= self.rows <= MOST_FUNCTIONS:
            raise ValueError(f"k is {self.rows}, must be in 1..{MOST_FUNCTIONS} hash functions")
        if not 2 <= self.cells <= 1 << 24:
            raise ValueError(f"m is {self.cells}, must be in 2..{1 << 24} cells")
        if len(self.seed) != 64 or set(self.seed) - set("0123456789abcdef"):
            raise ValueError(f"seed is {self.seed!r}, must be 64 lower-case hexadecimal digits")

    @property
    def pool(self) -> Pool:
        return self

    @property
    def pool_cells(self) -> int:
        return self.cells

    @property
    def fields(self) -> tuple[Number, ...]:
        return (Number("row", self.rows),)

    @property
    def collision(self) -> Fraction:
        return Fraction(1, self.cells)

    def tally_shape(self, items: UInt64Array) -> tuple[int, int]:
        return self.rows, self.cells

    def cell(self, reports: Reports, items: UInt64Array) -> UInt64Array:
        return self._hash(coefficients(self.rows, self.seed)[:, reports["row"]], items)

    def accumulate(self, tally: Counts, responder: Responder, reports: Reports, items: UInt64Array) -> None:
        responder.count_cells(tally, reports, reports["row"])

    def reach(self, cells: int) -> Fraction:
        return Fraction(cells, self.cells)

    def decode_cost(self, responder: Responder, reports: int, items: int) -> DecodeCost:
        return cells_cost(responder.count_cost(reports), items, hashes=float(items * self.rows))

    def scores(self, tally: Counts, items: UInt64Array, wanted: UInt64Array) -> Counts:
        return self.sum_of_cells(tally, wanted)

    def sum_of_cells(self, matrix: Counts, wanted: UInt64Array) -> Counts:
        """Return int64[c]: the sum over all rows of `matrix`, int64[rows, >= cells], at each wanted item's cells."""
        # Imported here: clients encode without numba, only servers read tallies.
        from hushcount.kernels.cells import sum_of_cells

        table = coefficients(self.rows, self.seed)
        return sum_of_cells(matrix, table, self.cells, wanted, available_threads())

    def cell_scores(self, tally: Counts) -> Counts:
        return tally

    def cell_pairs(self, responder: Responder) -> CellPairs:
        p, q = responder.p, responder.q
        pair = Groups(np.zeros(2, dtype=np.uint64), np.zeros(1, dtype=np.int64))
        own, apart = (float(spread[0]) for spread in responder.group_spreads(pair, np.zeros(self.cells)))
        flips = q * (1.0 - q)
        return CellPairs(p, q, (own - p * (1.0 - p) - flips) / 2.0, apart / 2.0 - flips)

    def cells_of(self, item: int) -> UInt64Array:
        return self._hash(coefficients(self.rows, self.seed), np.full(self.rows, item, dtype=np.uint64))

    def cell_squares(self, tally: Counts, reports: int, responder: Responder) -> float:
        """In row j with n_j reports, `sum_c (M_jc - q n_j)^2` has mean `n_j v + (p-q)^2 sum_c N_jc^2`.

        M_jc is the tally's count and N_jc the number of clients of cell c in row j; `v` is the variance of one report,
        summed over the cells. If reports support a varying number of cells, n_j is unknown; it is estimated as the
        row's sum divided by the mean size S, which lowers v by `(2q/S - m q^2/S^2) size_variance`. The formula is
        derived here; the tests simulate it.
        """
        p, q, m, varying = responder.p, responder.q, self.cells, responder.size_variance
        size = p + (m - 1) * q
        step, spread = max(1, _CHUNK_HASHES // m), 0.0
        for start in range(0, len(tally), step):
            rows = tally[start : start + step]
            spread += float(((rows - (q / size) * rows.sum(axis=1, keepdims=True)) ** 2).sum())
        variance = p * (1.0 - p) + (m - 1) * q * (1.0 - q) - varying * (2.0 * q / size - m * (q / size) ** 2)
        return (spread - reports * variance) / (p - q) ** 2

    def _hash(self, table: UInt64Array, items: UInt64Array) -> UInt64Array:
        value = field61.add(field61.multiply(table[2], items), table[1])
        return field61.add(field61.multiply(value, items), table[0]) % np.uint64(self.cells)


@lru_cache(maxsize=8)
def coefficients(rows: int, seed: str) -> UInt64Array:
    """Return uint64[3, rows] below 2**61-1: the coefficients c0, c1, c2 of every function, expanded by ChaCha20.

    Each word is reduced modulo the prime; the bias of this reduction is below 2**-58.
    """
    stream = randombytes_buf_deterministic(24 * rows, bytes.fromhex(seed))
    table = field61.reduce(np.frombuffer(stream, dtype="<u8").astype(np.uint64)).reshape(3, rows)
    table.setflags(write=False)
    return table
